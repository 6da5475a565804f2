// GET requests to the service.

import { current } from "./i18n.js";
import { token } from "./token.js";

/** An answer that is no success; status 0: no answer at all. */
export class ApiError extends Error {
  constructor(status, detail, wait = 0) {
    super(detail);
    this.status = status;
    this.wait = wait;
  }
}

let ahead = 0; // seconds that the service's clock is ahead of ours

/** The service's present, in unix seconds. */
export const now = () => Date.now() / 1000 + ahead;

export function headers(more = {}) {
  const held = token();
  const asked = { "Accept-Language": current(), ...more };
  return held ? { ...asked, Authorization: `Bearer ${held}` } : asked;
}

/** A response that is a success (or 304). */
export async function request(path, options = {}) {
  let answer;
  try {
    answer = await fetch(path, { cache: "no-store", credentials: "omit", redirect: "error", ...options, headers: headers(options.headers) });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, String(error.message));
  }
  const date = Date.parse(answer.headers.get("Date") ?? "");
  // Whole seconds, and the way here takes time: only what is more than that is a difference of clocks.
  if (date) ahead = Math.abs(date - Date.now()) > 2500 ? (date - Date.now()) / 1000 : 0;
  if (answer.ok || answer.status === 304) return answer;
  const said = await answer.json().catch(() => ({}));
  throw new ApiError(answer.status, String(said.detail ?? answer.statusText), Number(answer.headers.get("Retry-After")) || 0);
}

/** JSON of a path below /api/v1. */
export async function get(path, query = {}, signal = undefined) {
  const asked = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== undefined));
  const answer = await request(`/api/v1/${path}${asked.size ? `?${asked}` : ""}`, { signal });
  return answer.json();
}

export const engine = (id, rest) => `engines/${encodeURIComponent(id)}/${rest}`;

/** Asks again and again with an ETag: `ask()` gives new JSON, or null if it is still the same. */
export function polled(path) {
  let tag = "";
  return async (signal) => {
    const answer = await request(`/api/v1/${path}`, { signal, headers: tag ? { "If-None-Match": tag } : {} });
    if (answer.status === 304) return null;
    const found = await answer.json();
    tag = answer.headers.get("ETag") ?? "";
    return found;
  };
}
