// The words of the page itself, in the reader's language; sentences about engines come from the service in that language.
// A word that is missing in one language is taken from English.

import { en } from "./i18n/en.js";
import { zh } from "./i18n/zh.js";

const TABLES = { en, zh };
const KEPT = "diagnoser.language";
const listeners = new Set();
let language = "en";

export const current = () => language;
export const onLanguage = (listener) => listeners.add(listener);

/** The phrase of that key; {name} is filled in. */
export function t(key, values = {}) {
  const text = TABLES[language][key] ?? en[key] ?? key;
  return text.replace(/\{(\w+)\}/g, (whole, name) => (name in values ? String(values[name]) : whole));
}

/** Does the reader's language have that key itself? */
export const has = (key) => key in TABLES[language];

/** "12 min" in the reader's language. */
export function unit(text) {
  const [, number, name] = /^(?:(.*) )?(\S+)$/.exec(text) ?? [];
  if (!has(`unit_${name}`)) return text;
  return number === undefined ? t(`unit_${name}`) : `${number} ${t(`unit_${name}`)}`;
}

function wanted() {
  const kept = stored();
  if (kept in TABLES) return kept;
  return (navigator.languages?.[0] ?? navigator.language ?? "en").toLowerCase().startsWith("zh") ? "zh" : "en";
}

function stored() {
  try {
    return localStorage.getItem(KEPT) ?? "";
  } catch {
    return "";
  }
}

export function choose(name) {
  language = name;
  document.documentElement.lang = name === "zh" ? "zh-Hans" : "en";
  label(document);
  for (const listener of listeners) listener();
}

export function start(button) {
  button.addEventListener("click", () => {
    const next = language === "zh" ? "en" : "zh";
    try {
      localStorage.setItem(KEPT, next);
    } catch {
      // private browsing: it holds for this page
    }
    choose(next);
  });
  onLanguage(() => {
    button.textContent = language === "zh" ? "English" : "中文";
    button.lang = language === "zh" ? "en" : "zh";
  });
  choose(wanted());
}

/** Elements that stand in index.html. */
export function label(root) {
  for (const node of root.querySelectorAll("[data-t]")) node.textContent = t(node.dataset.t);
  for (const node of root.querySelectorAll("[data-t-label]")) node.setAttribute("aria-label", t(node.dataset.tLabel));
  for (const node of root.querySelectorAll("[data-t-placeholder]")) node.placeholder = t(node.dataset.tPlaceholder);
}
