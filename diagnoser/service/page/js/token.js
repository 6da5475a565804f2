// The token: asked for when the service wants one, kept in sessionStorage only.

import { byId } from "./dom.js";
import { onLanguage, t } from "./i18n.js";

const KEPT = "diagnoser.token";
let waiting = null;
let why = "";

export const token = () => sessionStorage.getItem(KEPT) ?? "";

export function forget() {
  sessionStorage.removeItem(KEPT);
  byId("forget").hidden = true;
}

/** Asks once for all who want to know; resolves when there is a new one. `reason` is a key of a sentence. */
export function ask(reason) {
  why = reason;
  byId("token-why").textContent = t(why);
  waiting ??= new Promise((resolve) => {
    const dialog = byId("token");
    dialog.showModal();
    byId("token-value").focus();
    dialog.addEventListener("told", () => resolve(), { once: true });
  }).finally(() => (waiting = null));
  return waiting;
}

export function start() {
  const dialog = byId("token");
  byId("forget").hidden = token() === "";
  byId("token-form").addEventListener("submit", (event) => {
    event.preventDefault();
    const field = byId("token-value");
    sessionStorage.setItem(KEPT, field.value.trim());
    field.value = "";
    byId("forget").hidden = false;
    dialog.close();
    dialog.dispatchEvent(new Event("told"));
  });
  dialog.addEventListener("cancel", (event) => event.preventDefault());
  byId("forget").addEventListener("click", () => {
    forget();
    location.reload();
  });
  onLanguage(() => why && (byId("token-why").textContent = t(why)));
}
