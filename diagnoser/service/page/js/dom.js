// Elements are made, never parsed: whatever comes from the network becomes text.

const PROPERTIES = new Set(["value", "hidden", "disabled", "tabIndex", "open", "checked", "className", "title", "type"]);

/** el("td", {className: "n", onclick: f, "aria-label": "..."}, "text", node, null) */
export function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) set(node, name, value);
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== ""));
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

/** A new content in place of the old: what was unfolded stays so, and the focus stays where it was. */
export function replace(parent, ...children) {
  const open = new Map([...parent.querySelectorAll("details[data-key]")].map((node) => [node.dataset.key, node.open]));
  const focused = parent.contains(document.activeElement) ? document.activeElement.closest("[data-key]")?.dataset.key : null;
  parent.replaceChildren(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== ""));
  for (const node of parent.querySelectorAll("[data-key]")) {
    if (node.tagName === "DETAILS" && open.has(node.dataset.key)) node.open = open.get(node.dataset.key);
    if (focused && node.dataset.key === focused) (node.tagName === "DETAILS" ? node.querySelector("summary") : node).focus({ preventScroll: true });
  }
}

export const byId = (id) => document.getElementById(id);
