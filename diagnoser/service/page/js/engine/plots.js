// The four charts of an engine: the pool, L2 beside it, who waits for what, and TTFT by cause.

import uPlot from "/static/vendor/uplot/uPlot.esm.js";

import { clock, count, percent, seconds } from "../format.js";
import { t } from "../i18n.js";
import { colour } from "../theme.js";
import { bottleneck, percents } from "../words.js";
import { Plot, stripes } from "./plot.js";

const CAUSES = ["l1", "slots", "prefill", "external", "l2_transfer", "stalled", "leak", "unknown", "none"];
const HIDDEN = { width: 0, points: { show: false } };
const line = (name, more = {}) => ({ stroke: colour(name), width: 1.5, points: { show: false }, ...more });
const above = (max) => (max > 0 ? max * 1.08 : 1);
const column = (rows, value) => rows.map((row) => value(row) ?? null);

/** 12,500 -> "12.5k": an axis has little room. */
export function short(value) {
  for (const [size, letter] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]]) {
    if (Math.abs(value) >= size * 10 || (Math.abs(value) >= size && value % size === 0)) return `${+(value / size).toFixed(2)}${letter}`;
  }
  return count(value);
}

const pool = {
  name: "pool",
  title: "chart_pool",
  height: 250,
  has: (row) => row.pool !== null,
  data: (rows) => [
    rows.map((row) => row.at),
    ...["low", "high", "evictable", "top", "capacity", "capacity"].map((name) => column(rows, (row) => row.pool?.[name])),
  ],
  // 1 surely used, 2 used at most, 3 + surely evictable, 4 all but surely available, 5 the pool, 6 its line
  options: () => ({
    series: [{ ...HIDDEN, fill: colour("--used") }, HIDDEN, HIDDEN, HIDDEN, HIDDEN, line("--ink", { dash: [6, 4] })],
    bands: [
      { series: [2, 1], fill: stripes("--used") },
      { series: [3, 2], fill: colour("--evictable") },
      { series: [4, 3], fill: stripes("--evictable") },
      { series: [5, 4], fill: colour("--available") },
    ],
    top: above,
    format: short,
  }),
  legend: (rows) => {
    const some = (test) => rows.some((row) => row.pool && test(row.pool));
    return [
      ["used", "used"],
      some((one) => one.high > one.low) && ["used-maybe", "used_maybe"],
      some((one) => one.evictable > one.high) && ["evictable", "evictable"],
      some((one) => one.top > one.evictable) && ["free-maybe", "free_maybe"],
      some((one) => one.capacity > one.top) && ["available", "available"],
      ["capacity", "capacity"],
    ].filter(Boolean);
  },
  describe: (row) => {
    const { low, high, evictable, top, capacity } = row.pool;
    const part = (a, b) => percents([Math.max(0, a) / capacity, Math.max(0, b) / capacity]);
    const used = `${t("used")} ${part(low, high)}`;
    const told = evictable > high || capacity > top;
    const rest = told
      ? `${t("evictable")} ${part(evictable - high, top - low)}${t("comma")}${t("available")} ${part(capacity - top, capacity - Math.max(evictable, high))}`
      : `${t("free")} ${part(capacity - high, capacity - low)}`;
    return t("at", { clock: clock(row.at), what: `${used}${t("comma")}${rest}${t("semicolon")}${count(capacity)} ${t("tokens")}` });
  },
};

const l2 = {
  name: "l2",
  title: "chart_l2",
  height: 264, // as high as the pool with the strip above it
  has: (row) => row.l2 !== null,
  data: (rows) => [rows.map((row) => row.at), column(rows, (row) => row.l2?.[0]), column(rows, (row) => row.l2?.[1])],
  options: () => ({
    series: [line("--l2", { fill: colour("--l2-fill") }), HIDDEN],
    bands: [{ series: [2, 1], fill: stripes("--l2") }],
    top: () => 1,
    format: (value) => percent(value),
  }),
  legend: (rows) => [["l2", "used"], rows.some((row) => row.l2 && row.l2[1] > row.l2[0]) && ["l2-maybe", "used_maybe"]].filter(Boolean),
  describe: (row) => t("at", { clock: clock(row.at), what: `${t("used")} ${percents(row.l2)}` }),
};

/** Each cause has a series of its own. A step lies before its instant, as the window does that it is about: where a cause
 *  begins its first value stands at the instant before too, so that no hole is left.
 */
function byCause(rows, cause) {
  return rows.map((row, place) => {
    if (row.waiting === null) return null;
    if (row.bottleneck === cause) return row.waiting;
    const next = rows[place + 1];
    return next && next.waiting !== null && next.bottleneck === cause ? next.waiting : null;
  });
}

const waiting = {
  name: "waiting",
  title: "chart_waiting",
  height: 150,
  has: (row) => row.waiting !== null,
  data: (rows) => [rows.map((row) => row.at), ...CAUSES.map((cause) => byCause(rows, cause))],
  options: () => ({
    series: CAUSES.map((cause) => line(`--c-${cause}`, { fill: colour(`--c-${cause}-fill`), paths: uPlot.paths.stepped({ align: -1 }) })),
    bands: [],
    top: (max) => Math.max(1, above(max)),
    format: (value) => (Number.isInteger(value) ? short(value) : ""),
  }),
  legend: (rows) => CAUSES.filter((cause) => rows.some((row) => row.waiting !== null && row.bottleneck === cause)).map((cause) => [`c-${cause}`, `b_${cause}`]),
  describe: (row) => t("at", { clock: clock(row.at), what: `${count(row.waiting)} · ${bottleneck(row.bottleneck)}` }),
};

const unsplit = (row) => row?.ttft?.queue === null;

/** The mean around instants whose parts are not known: striped up to the neighbours, so that no hole is left. */
function unknownParts(rows) {
  return rows.map((row, place) => (row.ttft && [rows[place - 1], row, rows[place + 1]].some(unsplit) ? row.ttft.mean : null));
}

const ttft = {
  name: "ttft",
  title: "chart_ttft",
  height: 150,
  has: (row) => row.ttft !== null,
  data: (rows) => [rows.map((row) => row.at), column(rows, (row) => row.ttft?.queue), column(rows, (row) => row.ttft?.mean), unknownParts(rows)],
  options: () => ({
    series: [line("--queue", { fill: colour("--queue-fill") }), line("--rest"), { ...HIDDEN, fill: stripes("--soft") }],
    bands: [{ series: [2, 1], fill: colour("--rest-fill") }],
    top: above,
    format: (value) => seconds(value),
  }),
  legend: (rows) => [["queue", "p_queue"], ["rest", "rest_of_ttft"], rows.some(unsplit) && ["unsplit", "parts_unknown"]].filter(Boolean),
  describe: (row) => {
    const { mean, queue } = row.ttft;
    const whole = t("mean", { time: seconds(mean) });
    const aside = queue === null ? "" : `${t("p_queue")} ${seconds(queue)}${t("comma")}${t("rest_of_ttft")} ${seconds(mean - queue)}`;
    return t("at", { clock: clock(row.at), what: aside ? t("aside", { what: whole, aside }) : whole });
  },
};

export const plots = () => [pool, l2, waiting, ttft].map((spec) => new Plot(spec));
