// Transitions: a list, and a word for those who listen.

import { byId, el, replace, say } from "./dom.js";
import { moment } from "./format.js";
import { t } from "./i18n.js";
import { href } from "./route.js";
import { verdictName } from "./words.js";

const KEPT = 500;
const SHOWN = 50;
const SECONDS_TO_SPEAK = 1;

/** The list of one engine (without its name in every line) or of all. */
export function list(transitions, named) {
  const shown = transitions.filter(told).slice(-SHOWN).reverse();
  if (!shown.length) return [el("p", { className: "note" }, t("no_changes"))];
  return [el("ol", { className: "changes", reversed: true }, shown.map((one) => line(one, named)))];
}

/** That an engine was seen for the first time, and was well, is no news. */
const told = (one) => one.before !== null || one.severity !== "info";

function line(one, named) {
  const time = el("time", { datetime: new Date(one.at * 1000).toISOString() }, moment(one.at));
  const from = one.before === null ? t("changes_first") : verdictName(one.before);
  const what = el("span", { className: "what" }, `${from} → `, el("strong", {}, verdictName(one.after)), " ", el("em", {}, t(`s_${one.severity}`)));
  const name = named ? el("a", { href: href(one.engine), "data-key": `change-${one.id}` }, one.engine.replace(/\/0$/, "")) : null;
  return el("li", { className: `sev-${one.severity} b-${one.after.split("/")[0]}` }, time, what, name);
}

export class Changes {
  constructor() {
    this.all = [];
    this.unsaid = [];
  }

  /** From the history; those that the stream told meanwhile stay. */
  fill(transitions) {
    const ids = new Set(transitions.map((one) => one.id));
    this.all = [...transitions.filter(told), ...this.all.filter((one) => !ids.has(one.id))].sort((a, b) => a.at - b.at).slice(-KEPT);
  }

  add(one) {
    if (one.id && this.all.some((known) => known.id === one.id)) return;
    this.all = [...this.all, one].slice(-KEPT);
    if (!told(one)) return;
    this.unsaid.push(one);
    this.timer ??= setTimeout(() => this.speak(), SECONDS_TO_SPEAK * 1000);
  }

  of(id) {
    return this.all.filter((one) => one.engine === id);
  }

  render() {
    replace(byId("changes"), list(this.all, true));
  }

  /** One sentence however many changed: a reader is not to be talked to death. */
  speak() {
    this.timer = undefined;
    const rank = { critical: 2, warning: 1, info: 0 };
    const worst = this.unsaid.reduce((a, b) => (rank[b.severity] >= rank[a.severity] ? b : a));
    const said = { count: this.unsaid.length, engine: worst.engine.replace(/\/0$/, ""), headline: verdictName(worst.after) };
    say(byId("announce"), t(this.unsaid.length > 1 ? "said_changes" : "said_change", said));
    this.unsaid = [];
  }
}
