// The words, in the reader's language. A word that is missing in one language is taken from English.

import { en } from "./i18n/en.js";
import { zh } from "./i18n/zh.js";

const TABLES = { en, zh };
const KEPT = "diagnoser.language";
const listeners = new Set();
let language = "en";
let words = null; // the Chinese of the service's messages

export const current = () => language;
export const onLanguage = (listener) => listeners.add(listener);

/** The phrase of that key; {name} is filled in. */
export function t(key, values = {}) {
  const text = TABLES[language][key] ?? en[key] ?? key;
  return text.replace(/\{(\w+)\}/g, (whole, name) => (name in values ? String(values[name]) : whole));
}

/** Does the reader's language have that key itself? */
export const has = (key) => key in TABLES[language];

/** An entry of the messages' own tables, such as ("remedies", "fp8_kv"); undefined in English. */
export const word = (table, key) => (language === "zh" && words ? words[table]?.[key] : undefined);

/** "12 min" in the reader's language. */
export function unit(text) {
  const [, number, name] = /^(?:(.*) )?(\S+)$/.exec(text) ?? [];
  const own = word("units", name);
  return own === undefined ? text : number === undefined ? own : `${number} ${own}`;
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

export async function choose(name) {
  if (name === "zh" && words === null) words = await fetched();
  language = name;
  document.documentElement.lang = name === "zh" ? "zh-Hans" : "en";
  label(document);
  for (const listener of listeners) listener();
}

async function fetched() {
  try {
    const answer = await fetch("/static/words/zh.json", { cache: "no-cache" });
    return answer.ok ? await answer.json() : null;
  } catch {
    return null; // the page's own words are there all the same
  }
}

export async function start(button) {
  button.addEventListener("click", async () => {
    const next = language === "zh" ? "en" : "zh";
    try {
      localStorage.setItem(KEPT, next);
    } catch {
      // private browsing: it holds for this page
    }
    await choose(next);
  });
  onLanguage(() => {
    button.textContent = language === "zh" ? "English" : "中文";
    button.lang = language === "zh" ? "en" : "zh";
  });
  await choose(wanted());
}

/** Elements that stand in index.html. */
export function label(root) {
  for (const node of root.querySelectorAll("[data-t]")) node.textContent = t(node.dataset.t);
  for (const node of root.querySelectorAll("[data-t-label]")) node.setAttribute("aria-label", t(node.dataset.tLabel));
  for (const node of root.querySelectorAll("[data-t-placeholder]")) node.placeholder = t(node.dataset.tPlaceholder);
}
