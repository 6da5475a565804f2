// One engine: its verdict, the pool, what to do, how it came to be, and the checklist.

import { engine, now, polled } from "../api.js";
import { list } from "../changes.js";
import { byId, el, replace, say } from "../dom.js";
import { age, clock } from "../format.js";
import { current, t } from "../i18n.js";
import { engineName, family, GLYPHS, gravity, span } from "../words.js";
import { bars } from "./bars.js";
import { checklist, findings } from "./checklist.js";
import { Course } from "./course.js";
import { remedies, whatIf } from "./remedies.js";

const EVERY_SECONDS = 5;

const card = (id) => {
  const title = el("h2", { id: `${id}-title` });
  const body = el("div", { className: id });
  return { title, body, node: el("section", { className: "card", "aria-labelledby": title.id }, title, body) };
};

export class EngineView {
  constructor(changes, redraw) {
    this.id = "";
    this.changes = changes;
    this.redraw = redraw;
    this.course = new Course();
    this.build();
    this.label();
    document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && this.refresh());
  }

  build() {
    this.back = el("a", { href: "#/", className: "back" });
    this.title = el("h1", { id: "engine-title", tabIndex: -1 });
    this.who = el("p", { className: "who" });
    this.verdict = el("div", { className: "verdict" });
    this.problem = el("p", { className: "problem", hidden: true });
    this.cards = Object.fromEntries(["bars", "remedies", "checklist", "findings", "what_if", "transitions"].map((name) => [name, card(name)]));
    const { bars: pool, remedies: todo, checklist: asked, findings: found, what_if: changed, transitions } = this.cards;
    byId("engine").append(this.back, this.title, this.who, this.problem, this.verdict, el("div", { className: "columns" },
      el("div", { className: "column" }, pool.node, todo.node, this.course.node),
      el("div", { className: "column" }, asked.node, found.node, changed.node, transitions.node)));
  }

  label() {
    say(this.back, `← ${t("back")}`);
    const titles = { bars: "L1 · L2 · TTFT", remedies: t("remedies"), checklist: t("checklist"), findings: t("findings"), what_if: t("what_if"), transitions: t("changes") };
    for (const [name, one] of Object.entries(this.cards)) one.title.textContent = titles[name];
    this.course.words();
    this.render();
  }

  show(id) {
    if (id === this.id) return;
    this.id = id;
    this.diagnosis = this.line = null;
    this.abort?.abort();
    this.problem.hidden = true;
    replace(this.verdict);
    this.course.begin(id);
    say(this.title, id.replace(/\/0$/, ""));
    say(this.who, "");
    this.node.classList.add("empty");
    if (!id) return;
    this.ask = polled(engine(id, "verdict"));
    this.refresh();
  }

  get node() {
    return byId("engine");
  }

  focus() {
    this.title.focus({ preventScroll: true });
  }

  /** Everything is asked for again, as after a break. */
  refresh() {
    if (!this.id) return;
    this.course.load();
    this.poll();
  }

  /** Something of this engine has changed. */
  told(line) {
    this.line = line;
    this.poll();
  }

  /** Asks now and then every few seconds: the stream tells of changes only, and the clock of the charts goes on. */
  async poll() {
    clearTimeout(this.timer);
    this.abort?.abort();
    const abort = (this.abort = new AbortController());
    try {
      const found = document.visibilityState === "visible" ? await this.ask(abort.signal) : null;
      if (abort.signal.aborted) return;
      if (found) this.got(found);
      else this.problem.hidden = true;
    } catch (error) {
      if (abort.signal.aborted || error.name === "AbortError") return;
      this.failed(error);
    }
    this.timer = setTimeout(() => this.poll(), EVERY_SECONDS * 1000);
  }

  got(diagnosis) {
    this.problem.hidden = true;
    this.diagnosis = diagnosis;
    this.node.classList.remove("empty");
    this.course.add(diagnosis);
    this.render();
  }

  failed(error) {
    if (![0, 401].includes(error.status)) this.problem.hidden = false;
    say(this.problem, error.status === 404 ? t("gone") : t("not_now", { what: this.id, why: error.message }));
  }

  /** The line of the fleet, told with every change of it. */
  update(line) {
    if (!this.id) return;
    this.line = line ?? this.line;
    this.renderChanges();
    this.renderSince();
  }

  render() {
    const found = this.diagnosis;
    if (!found) return;
    say(this.title, engineName(found.engine, false));
    say(this.who, [`${family(found.engine.family)} ${found.engine.version ?? ""}`.trim(), found.engine.model, span(found, clock)].filter(Boolean).join(" · "));
    this.renderVerdict(found);
    const parts = { bars: bars(found), remedies: remedies(found), checklist: checklist(found), findings: findings(found), what_if: whatIf(found) };
    for (const [name, children] of Object.entries(parts)) {
      replace(this.cards[name].body, children);
      this.cards[name].node.hidden = children.length === 0;
    }
    this.renderChanges();
    this.renderSince();
  }

  renderVerdict({ verdict }) {
    const urgency = this.urgency(verdict);
    const said = verdict.because.length ? el("ul", { className: "because" }, verdict.because.map((one) => el("li", {}, one))) : null;
    const since = el("span", { className: "since" }, this.sinceWords());
    this.verdict.className = `verdict u${urgency}`;
    replace(this.verdict, el("p", { className: "headline" }, `${GLYPHS[urgency]} ${verdict.headline}`), el("p", { className: "gravity" }, el("span", {}, gravity(verdict)), since), said);
  }

  urgency(verdict) {
    const fixed = { unreachable: 3, unknown: 1, none: 0 }[verdict.bottleneck];
    return fixed ?? { critical: 4, warning: 2 }[verdict.severity] ?? 0;
  }

  renderSince() {
    const node = this.verdict.querySelector(".since");
    if (node) say(node, this.sinceWords());
  }

  sinceWords() {
    return this.line ? ` · ${t("since", { clock: clock(this.line.since), age: age(Math.max(0, now() - this.line.since)) })}` : "";
  }

  renderChanges() {
    const mine = this.changes.of(this.id);
    const key = JSON.stringify([this.id, current(), mine.map((one) => [one.id, one.at])]);
    if (key === this.changesShown) return;
    this.changesShown = key;
    replace(this.cards.transitions.body, list(mine, false));
  }
}
