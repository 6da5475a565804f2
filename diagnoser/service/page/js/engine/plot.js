// One chart: uPlot with the page's colours, a legend of our own and the numbers under the pointer in words.

import uPlot from "/static/vendor/uplot/uPlot.esm.js";

import { el, say } from "../dom.js";
import { t } from "../i18n.js";
import { colour } from "../theme.js";

export const AXIS = 58; // width of the axis and of what stands right of the plot: the strip above has the same
export const MARGIN = 26;

/** A fill with stripes: what is known as a range only. */
export function stripes(name) {
  const side = Math.round(8 * devicePixelRatio);
  const canvas = el("canvas", { width: side, height: side });
  const pen = canvas.getContext("2d");
  pen.strokeStyle = colour(name);
  pen.lineWidth = 2.2 * devicePixelRatio;
  for (const shift of [-side, 0, side]) {
    pen.moveTo(shift - 1, side + 1);
    pen.lineTo(shift + side + 1, -1);
  }
  pen.stroke();
  return pen.createPattern(canvas, "repeat");
}

const axis = (more) => ({
  stroke: colour("--soft"),
  font: "12px system-ui, sans-serif",
  grid: { stroke: colour("--grid"), width: 1 },
  ticks: { stroke: colour("--grid"), width: 1, size: 4 },
  ...more,
});

export class Plot {
  /** `spec`: title, height, legend [[class, key]], options(colour functions) -> {series, bands, y}, describe(row). */
  constructor(spec) {
    this.spec = spec;
    this.readout = el("p", { className: "readout" });
    this.title = el("h3", {});
    this.legend = el("ul", { className: "legend" });
    this.canvas = el("div", { className: "canvas", role: "img" });
    this.note = el("p", { className: "note", hidden: true });
    this.node = el("figure", { className: "plot", "data-plot": spec.name }, this.title, this.legend, this.canvas, this.note, this.readout);
    new ResizeObserver(() => this.fit()).observe(this.canvas);
  }

  /** Everything anew: other colours, other words. */
  restart() {
    this.chart?.destroy();
    this.chart = null;
    if (this.rows) this.draw(this.rows, this.from, this.to, this.why);
  }

  draw(rows, from, to, why = "") {
    Object.assign(this, { rows, from, to, why });
    say(this.title, t(this.spec.title));
    const shown = this.legendItems(rows);
    const empty = !rows.some((row) => this.spec.has(row));
    this.canvas.hidden = this.readout.hidden = this.legend.hidden = empty;
    this.note.hidden = !empty;
    say(this.note, why || t("no_points"));
    if (empty) return;
    const key = JSON.stringify(shown);
    if (key !== this.key) this.legend.replaceChildren(...shown.map(([name, text]) => el("li", {}, el("i", { className: `swatch ${name}`, "aria-hidden": "true" }), text)));
    this.key = key;
    const data = this.spec.data(rows);
    if (this.chart) this.chart.batch(() => this.renew(data));
    else this.begin(data);
    this.say(null);
  }

  legendItems(rows) {
    return this.spec.legend(rows).map(([name, text]) => [name, t(text)]);
  }

  renew(data) {
    this.chart.setData(data, false);
    this.chart.setScale("x", { min: this.from, max: this.to });
    this.chart.redraw();
  }

  begin(data) {
    const spec = this.spec.options();
    const options = {
      width: Math.max(200, this.canvas.clientWidth), height: this.spec.height, ...spec.more,
      padding: [8, MARGIN, 0, 0],
      legend: { show: false },
      tzDate: (at) => uPlot.tzDate(new Date(at * 1000), "UTC"),
      cursor: { drag: { x: false, y: false }, points: { show: false }, y: false },
      scales: { x: { time: true, range: () => [this.from, this.to] }, y: { range: (_, __, max) => [0, spec.top(max)] } },
      axes: [axis({ space: 70, size: 30, values: times }), axis({ size: AXIS, space: 34, values: (_, ticks) => ticks.map(spec.format) })],
      series: [{}, ...spec.series],
      bands: spec.bands,
      hooks: { setCursor: [(chart) => this.say(chart.cursor.idx)] },
    };
    this.chart = new uPlot(options, data, this.canvas);
  }

  fit() {
    const width = this.canvas.clientWidth;
    if (this.chart && width > 0 && width !== this.chart.width) this.chart.setSize({ width, height: this.spec.height });
    else if (!this.chart && width > 0 && this.rows) this.draw(this.rows, this.from, this.to, this.why);
  }

  /** The instant under the pointer, else the newest that says anything. */
  say(index) {
    const row = index === null || index === undefined ? this.rows.findLast((one) => this.spec.has(one)) : this.rows[index];
    const words = row && this.spec.has(row) ? this.spec.describe(row) : "";
    say(this.readout, words);
    if (index === null || index === undefined) this.canvas.setAttribute("aria-label", t("chart_says", { title: t(this.spec.title), what: words }));
  }
}

function times(_, ticks, __, ___, increment) {
  const two = (number) => String(number).padStart(2, "0");
  return ticks.map((at) => {
    const time = new Date(at * 1000);
    const short = `${two(time.getUTCHours())}:${two(time.getUTCMinutes())}`;
    return increment < 60 ? `${short}:${two(time.getUTCSeconds())}` : short;
  });
}
