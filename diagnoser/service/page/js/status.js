// Is the connection there, how old is what is shown, and is the service itself well?

import { get, now } from "./api.js";
import { byId, el, replace, say } from "./dom.js";
import { age, clock } from "./format.js";
import { onLanguage, t } from "./i18n.js";

const EVERY_SECONDS = 10;
const OLD_SECONDS = 60;

export class Status {
  constructor(retry, newest) {
    this.state = "connecting";
    this.more = {};
    this.status = null;
    this.newest = newest; // time of the newest window that is shown
    byId("retry").addEventListener("click", retry);
    onLanguage(() => this.render());
    setInterval(() => this.render(), 1000);
  }

  /** What the stream tells of itself. */
  told(state, more) {
    const before = this.state;
    this.state = state;
    this.more = more;
    if (state === "live" && before !== "live") this.poll();
    this.render();
  }

  /** One chain of polls, for as long as the stream lives. */
  async poll() {
    clearTimeout(this.timer);
    if (this.state !== "live") return;
    try {
      if (document.visibilityState === "visible" || !this.status) this.status = await get("status");
    } catch {
      // the stream says what is wrong
    }
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.poll(), EVERY_SECONDS * 1000);
    this.render();
  }

  render() {
    const link = byId("link");
    link.className = `link ${this.state}`;
    say(byId("link-text"), this.state === "lost" && this.more.reason ? t("lost_said", { reason: this.more.reason }) : t(this.state));
    const at = Math.max(this.newest(), this.status?.last_evaluation_at ?? 0);
    say(byId("link-age"), [this.data(at), this.next()].filter(Boolean).map((said) => ` · ${said}`).join(""));
    link.title = at ? clock(at) : "";
    byId("retry").hidden = this.state !== "lost";
    document.body.classList.toggle("stale", this.state === "lost");
    this.problems(at);
  }

  data(at) {
    if (!at) return "";
    return t(this.state === "live" ? "evaluated" : "data_age", { age: age(now() - at) });
  }

  next() {
    if (this.state !== "lost") return "";
    const seconds = (this.more.until - Date.now()) / 1000;
    return seconds > 0.5 ? t("again_in", { time: age(seconds) }) : t("again_now");
  }

  problems(at) {
    const found = [...(this.status?.problems ?? [])];
    if (this.state === "live" && at && now() - at > OLD_SECONDS) found.unshift(t("silent_service", { age: age(now() - at) }));
    const box = byId("problems");
    box.hidden = found.length === 0;
    const key = found.join("\n");
    if (key !== this.problemsShown) replace(box, el("ul", {}, found.map((one) => el("li", {}, one))));
    this.problemsShown = key;
  }
}
