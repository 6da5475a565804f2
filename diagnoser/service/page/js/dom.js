// Elements are made, never parsed: whatever comes from the network becomes text.

const PROPERTIES = new Set(["value", "hidden", "disabled", "tabIndex", "open", "checked", "className", "title", "type"]);

/** el("td", {className: "n", onclick: f, "aria-label": "..."}, "text", node, null) */
export function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) set(node, name, value);
  node.append(...real(children));
  return node;
}

function set(node, name, value) {
  if (value === null || value === undefined || value === false) return;
  if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
  else if (PROPERTIES.has(name)) node[name] = value;
  else node.setAttribute(name, value === true ? "" : String(value));
}

/** Writes only what changed, so that a screen reader hears only that. */
export function say(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

const real = (children) => children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== "");

/** A new content in place of the old, of which only what differs is touched: what was unfolded stays so, and focus, scroll
 *  position and what somebody is just marking with the mouse are left alone.
 */
export function replace(parent, ...children) {
  const next = real(children).map((child) => (child instanceof Node ? child : document.createTextNode(child)));
  const open = new Map([...parent.querySelectorAll("details[data-key]")].map((node) => [node.dataset.key, node.open]));
  const focused = parent.contains(document.activeElement) ? document.activeElement.closest("[data-key]")?.dataset.key : null;
  for (const node of next.flatMap(foldable)) if (open.has(node.dataset.key)) node.open = open.get(node.dataset.key);
  become(parent, next);
  if (focused && !parent.contains(document.activeElement)) refocus(parent, focused);
}

function foldable(node) {
  if (!(node instanceof Element)) return [];
  return [...(node.matches("details[data-key]") ? [node] : []), ...node.querySelectorAll("details[data-key]")];
}

function refocus(parent, key) {
  const node = [...parent.querySelectorAll("[data-key]")].find((one) => one.dataset.key === key);
  (node?.tagName === "DETAILS" ? node.querySelector("summary") : node)?.focus({ preventScroll: true });
}

function become(parent, next) {
  const old = [...parent.childNodes];
  next.forEach((node, place) => (old[place] ? morph(old[place], node) : parent.append(node)));
  for (const node of old.slice(next.length)) node.remove();
}

/** Of a key there is one node: its listeners do the same whoever made it. */
function morph(old, next) {
  if (old.nodeName !== next.nodeName || old.dataset?.key !== next.dataset?.key) return old.replaceWith(next);
  if (old.nodeType === Node.TEXT_NODE) return void (old.data !== next.data && (old.data = next.data));
  for (const { name } of [...old.attributes]) if (!next.hasAttribute(name)) old.removeAttribute(name);
  for (const { name, value } of next.attributes) if (old.getAttribute(name) !== value) attribute(old, name, value);
  become(old, [...next.childNodes]);
}

/** The page's policy forbids the attribute style, not the styles of an element. */
function attribute(node, name, value) {
  if (name === "style") node.style.cssText = value;
  else node.setAttribute(name, value);
}

export const byId = (id) => document.getElementById(id);
