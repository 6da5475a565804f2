// The live stream: fetch instead of EventSource (which cannot send a token), and it comes back by itself.

import { ApiError, request } from "./api.js";
import { Parser } from "./sse.js";
import { ask, forget, token } from "./token.js";

const FIRST_SECONDS = 0.5;
const LONGEST_SECONDS = 20;
const SILENCE_SECONDS = 40; // the service says something every 15 s

/** state: "connecting" | "live" | "lost"; `until` (ms) says when a lost one is tried again. */
export class Stream {
  constructor(path, { event, state }) {
    this.path = path;
    this.told = { event, state };
    this.lastId = "";
    this.failures = 0;
    this.wake = () => {};
    this.renewed = false;
    addEventListener("online", () => this.retry());
    addEventListener("offline", () => this.abort?.abort());
    document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && this.retry());
  }

  /** Runs for ever. */
  async run() {
    for (;;) {
      if (this.failures === 0 && !this.renewed) this.told.state("connecting", {});
      this.renewed = false;
      try {
        await this.once();
        this.failures = Math.max(1, this.failures); // an end in good order: the service stops or restarts
        this.told.state("lost", { reason: "", until: this.pause() });
      } catch (error) {
        if (this.renewed || (await this.refused(error))) continue;
        this.failures += 1;
        this.told.state("lost", { reason: error.status ? error.message : "", until: this.pause(error.wait) });
      }
      await this.rest();
    }
  }

  /** Does a token help? */
  async refused(error) {
    if (!(error instanceof ApiError) || ![401, 403].includes(error.status)) return false;
    if (error.status === 403 && !token()) return false;
    const had = token() !== "";
    forget();
    await ask(error.status === 403 ? "token_scope" : had ? "token_wrong" : "token_needed");
    this.failures = 0;
    return true;
  }

  pause(least = 0) {
    const longest = Math.min(LONGEST_SECONDS, FIRST_SECONDS * 2 ** this.failures);
    this.until = Date.now() + 1000 * Math.max(least, longest * (0.5 + Math.random() / 2));
    return this.until;
  }

  rest() {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, this.until - Date.now());
      this.wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  /** Does not wait any longer. */
  retry() {
    this.wake();
  }

  /** Asks for everything anew, as in another language. */
  again() {
    this.lastId = "";
    this.renewed = true;
    this.abort?.abort();
    this.wake();
  }

  async once() {
    const abort = (this.abort = new AbortController());
    let silence = setTimeout(() => abort.abort(), SILENCE_SECONDS * 1000);
    const heard = () => {
      clearTimeout(silence);
      silence = setTimeout(() => abort.abort(), SILENCE_SECONDS * 1000);
    };
    try {
      const answer = await request(this.path, { signal: abort.signal, headers: this.lastId ? { "Last-Event-ID": this.lastId } : {} });
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      const parser = new Parser((name, data, id) => this.event(name, data, id));
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return;
        heard();
        parser.feed(value);
      }
    } finally {
      clearTimeout(silence);
      abort.abort();
    }
  }

  event(name, data, id) {
    this.told.event(name, JSON.parse(data));
    this.lastId = id;
    if (name === "fleet") {
      this.failures = 0;
      this.told.state("live", {});
    }
  }
}
