// The fleet as a table of at most `limit` rows. Rows are kept and only changed cells are written: 10,000 engines stay
// usable, and neither focus nor a selection is lost when news come.

import { now } from "./api.js";
import { byId, el, say } from "./dom.js";
import { closed } from "./fleet.js";
import { age, count, moment, percent } from "./format.js";
import { t } from "./i18n.js";
import { href, open } from "./route.js";
import { ARROWS, bottleneck, bucket, engineName, family, GLYPHS, l2, mode, part, percents } from "./words.js";

const STEP = 100;
const COLUMNS = ["engine", "verdict", "mode", "l2", "closed", "trend", "waiting", "used", "ttft", "since"];
const NUMBERS = new Set(["closed", "waiting", "used", "ttft", "since"]);

export class Table {
  constructor() {
    this.limit = STEP;
    this.rows = new Map();
    this.body = el("tbody", { role: "rowgroup" });
    this.table = el("table", { role: "table", className: "fleet", "aria-labelledby": "fleet-title" }, this.head(), this.body);
    this.body.addEventListener("keydown", (event) => this.key(event));
    this.body.addEventListener("click", (event) => this.click(event));
    this.empty = el("p", { className: "note" });
    byId("table").append(this.table, this.empty);
    byId("more").addEventListener("click", () => this.more());
  }

  head() {
    this.heads = COLUMNS.map((name) => el("th", { role: "columnheader", scope: "col", className: NUMBERS.has(name) ? "n" : "" }));
    return el("thead", { role: "rowgroup" }, el("tr", { role: "row" }, this.heads));
  }

  /** Words that do not change with the engines. */
  label() {
    COLUMNS.forEach((name, place) => {
      this.heads[place].textContent = t(`col_${name}`);
      if (["closed", "used"].includes(name)) this.heads[place].title = t(`${name}_help`);
    });
    this.rows.clear();
    this.body.replaceChildren();
  }

  more() {
    this.next = this.limit; // the first of the new rows gets the focus when it is there
    this.limit += STEP;
    this.changed();
  }

  render(engines, ranked, known) {
    const shown = engines.slice(0, this.limit);
    const ids = new Set(shown.map((one) => one.id));
    const focused = this.body.contains(document.activeElement) ? document.activeElement.closest("tr") : null;
    for (const [id, row] of this.rows) if (!ids.has(id)) this.remove(id, row);
    shown.forEach((one, place) => this.put(one, place, ranked));
    if (focused?.isConnected && document.activeElement !== focused) focused.focus({ preventScroll: true });
    if (this.next) this.body.children[this.next]?.focus();
    this.next = 0;
    this.rove();
    this.table.hidden = shown.length === 0;
    this.empty.hidden = shown.length > 0;
    say(this.empty, t(!known.told ? "waiting_for_service" : known.total ? "nothing_matches" : "nothing_yet"));
    const left = engines.length - shown.length;
    byId("more").hidden = left === 0;
    say(byId("more"), t("more", { step: count(Math.min(STEP, left)), left: count(left) }));
  }

  remove(id, row) {
    row.tr.remove();
    this.rows.delete(id);
  }

  put(engine, place, ranked) {
    const row = this.rows.get(engine.id) ?? this.row(engine);
    this.fill(row, engine, ranked.has(engine.target));
    const here = this.body.children[place];
    if (here !== row.tr) this.body.insertBefore(row.tr, here ?? null);
  }

  row(engine) {
    const cells = Object.fromEntries(COLUMNS.map((name) => [name, el("td", { role: "cell", className: `c-${name}${NUMBERS.has(name) ? " n" : ""}` })]));
    const link = el("a", { href: href(engine.id), tabIndex: -1 });
    const model = el("small", {});
    const bar = el("span", { className: "mini", "aria-hidden": "true" }, el("i"), el("i"));
    const used = el("span");
    cells.engine.append(link, model);
    cells.used.append(bar, used);
    const tr = el("tr", { role: "row", tabIndex: -1, "data-id": engine.id }, COLUMNS.map((name) => cells[name]));
    const row = { tr, cells, link, model, bar, used };
    for (const name of COLUMNS) cells[name].dataset.label = t(`col_${name}`);
    this.rows.set(engine.id, row);
    return row;
  }

  fill(row, engine, ranked) {
    const { cells } = row;
    row.engine = engine;
    row.tr.className = `u${engine.urgency}`;
    say(row.link, engineName(engine, ranked));
    say(row.model, [engine.model, `${family(engine.family)} ${engine.version ?? ""}`.trim()].filter(Boolean).join(" · "));
    say(cells.verdict, `${GLYPHS[engine.urgency]} ${bottleneck(engine.bottleneck)}`);
    say(cells.mode, mode(engine.mode) || "–");
    const dead = engine.bottleneck === "unreachable"; // what it showed before is no news
    const share = dead ? null : closed(engine);
    say(cells.l2, dead ? "–" : l2(engine.l2));
    say(cells.closed, share === null ? "–" : percent(share));
    say(cells.trend, dead || engine.trend === "steady" ? "–" : `${ARROWS[engine.trend]} ${t(`trend_${engine.trend}`)}`);
    say(cells.waiting, engine.waiting === null ? "–" : count(engine.waiting));
    this.used(row, engine);
    say(cells.ttft, bucket(engine.ttft_p99) || "–");
    this.since(row);
    row.tr.title = engine.headline;
  }

  used(row, engine) {
    const found = part(engine.l1.used, engine.l1.capacity);
    say(row.used, found === null ? "–" : percents(found));
    const [sure, maybe] = row.bar.children;
    row.bar.hidden = found === null;
    if (found === null) return;
    sure.style.width = `${100 * found[0]}%`;
    maybe.style.width = `${100 * (found[1] - found[0])}%`;
  }

  since(row) {
    say(row.cells.since, age(Math.max(0, now() - row.engine.since)));
    row.cells.since.title = moment(row.engine.since);
  }

  /** Time goes on though nothing is told. */
  tick() {
    for (const row of this.rows.values()) this.since(row);
  }

  // -------------------------------------------------------------- keyboard: one row is in the order of tabs, arrows go on

  rove() {
    const rows = [...this.body.children];
    const current = rows.find((row) => row === document.activeElement) ?? rows.find((row) => row.tabIndex === 0) ?? rows[0];
    for (const row of rows) row.tabIndex = row === current ? 0 : -1;
  }

  key(event) {
    const row = event.target.closest("tr");
    const next = { ArrowDown: row?.nextElementSibling, ArrowUp: row?.previousElementSibling, Home: this.body.firstElementChild, End: this.body.lastElementChild }[event.key];
    if (event.key === "Enter" && row) open(row.dataset.id);
    else if (next) {
      next.focus();
      this.rove();
    } else return;
    event.preventDefault();
  }

  click(event) {
    const row = event.target.closest("tr");
    const plain = !event.ctrlKey && !event.metaKey && !event.shiftKey && event.button === 0;
    if (!row || event.target.closest("a") || !plain || String(getSelection())) return;
    open(row.dataset.id);
  }

  focus(id) {
    this.rows.get(id)?.tr.focus();
    this.rove();
  }
}
