// Light or dark: what the system prefers, unless the reader chose.

import { byId } from "./dom.js";

const KEPT = "diagnoser.theme";
const listeners = new Set();
const dark = matchMedia("(prefers-color-scheme: dark)");

/** Called when the colours have changed: a canvas has to be drawn again. */
export const onTheme = (listener) => listeners.add(listener);

export const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function use(name) {
  document.documentElement.dataset.theme = name === "auto" ? (dark.matches ? "dark" : "light") : name;
  for (const listener of listeners) listener();
}

export function start() {
  const select = byId("theme");
  let kept = "auto";
  try {
    kept = localStorage.getItem(KEPT) ?? "auto";
  } catch {
    // private browsing
  }
  select.value = ["light", "dark"].includes(kept) ? kept : "auto";
  select.addEventListener("change", () => {
    use(select.value);
    try {
      localStorage.setItem(KEPT, select.value);
    } catch {
      // it holds for this page
    }
  });
  dark.addEventListener("change", () => use(select.value));
  use(select.value);
}
