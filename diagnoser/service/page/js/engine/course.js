// The course of an engine: the range that is looked at, the strip of verdicts, four charts.

import { engine, get, now } from "../api.js";
import { el, say } from "../dom.js";
import { clock } from "../format.js";
import { t } from "../i18n.js";
import { onTheme } from "../theme.js";
import { bottleneck } from "../words.js";
import { plots } from "./plots.js";
import { rowOf, Series, stepOf } from "./series.js";

const RANGES = [900, 3600, 21600, 86400];
const LEAST_SECONDS = 120; // a chart is never narrower

export class Course {
  constructor() {
    this.range = 3600;
    this.series = new Series();
    this.plots = plots();
    this.title = el("h2", { id: "course-title" });
    this.select = el("select", { id: "range", onchange: () => this.choose(Number(this.select.value)) });
    this.label = el("span");
    this.problem = el("p", { className: "note", hidden: true });
    this.strip = el("div", { className: "strip", role: "img" });
    this.node = el("section", { className: "card course", "aria-labelledby": "course-title" },
      el("div", { className: "row" }, this.title, el("label", {}, this.label, " ", this.select)),
      this.problem, el("div", { className: "plots" }, this.plots.map((plot) => plot.node)));
    this.plots[0].canvas.before(this.strip); // above the same axis of time
    onTheme(() => this.restart());
    this.words();
  }

  words() {
    this.title.textContent = t("history");
    this.label.textContent = t("range");
    this.select.replaceChildren(...RANGES.map((one) => el("option", { value: one }, t(`r${one}`))));
    this.select.value = String(this.range);
    this.restart();
  }

  restart() {
    for (const plot of this.plots) plot.restart();
    this.draw();
  }

  /** Another engine. */
  begin(id) {
    this.id = id;
    this.series = new Series();
    this.tier = undefined;
    this.problem.hidden = true;
  }

  choose(range) {
    this.range = range;
    return this.load();
  }

  /** What the service kept. */
  async load() {
    const { id, range } = this;
    if (!id) return;
    // Whole steps: the rows of both answers then lie at the same times.
    const step = stepOf(range);
    const end = Math.ceil(now() / step) * step;
    const asked = { start: end - Math.ceil(range / step) * step, end, step };
    try {
      const found = await Promise.all([get(engine(id, "signals"), asked), get("history/verdicts", { ...asked, engine: id })]);
      if (id !== this.id || range !== this.range) return;
      this.series.keep(...found);
      this.problem.hidden = true;
    } catch (error) {
      if (id !== this.id) return;
      this.problem.hidden = false;
      say(this.problem, t("not_now", { what: t("history"), why: error.message }));
    }
    this.draw();
  }

  add(diagnosis) {
    this.tier = diagnosis.l2;
    if (this.series.add(rowOf(diagnosis))) this.draw();
  }

  draw() {
    if (!this.id) return;
    const rows = this.series.rows(now() - this.range);
    const last = rows.at(-1)?.at ?? now();
    const from = Math.min(rows[0]?.at ?? last, last - LEAST_SECONDS);
    const l2 = this.tier?.present === false ? t("l2_no_tier") : t("no_l2_points");
    for (const plot of this.plots) plot.draw(rows, from, last, plot.spec.name === "l2" && rows.length ? l2 : "");
    this.drawStrip(rows, from, last);
  }

  drawStrip(rows, from, to) {
    this.strip.hidden = rows.length === 0;
    const runs = runsOf(rows, to);
    this.strip.replaceChildren(...runs.map((run) => {
      const node = el("i", { className: `c-${run.bottleneck} ${run.severity}`, title: t("at", { clock: clock(run.from), what: bottleneck(run.bottleneck) }) });
      node.style.left = `${(100 * (run.from - from)) / (to - from)}%`;
      node.style.width = `${(100 * (run.to - run.from)) / (to - from)}%`;
      return node;
    }));
    const said = runs.map((run) => t("at", { clock: clock(run.from), what: bottleneck(run.bottleneck) }));
    this.strip.setAttribute("aria-label", `${t("strip")}: ${said.slice(-8).join(", ")}`);
  }
}

/** Neighbours of one verdict become one. */
function runsOf(rows, end) {
  const runs = [];
  rows.forEach((row, place) => {
    const to = rows[place + 1]?.at ?? end;
    const last = runs.at(-1);
    if (last && last.bottleneck === row.bottleneck && last.severity === row.severity) last.to = to;
    else runs.push({ bottleneck: row.bottleneck, severity: row.severity, from: row.at, to });
  });
  return runs.filter((run) => run.bottleneck);
}
