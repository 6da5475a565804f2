// The course of one engine: what the service kept, and what this page has seen since. One row an instant.

import { bounds, poolOf, splitKnown, tierPart } from "../words.js";

const KEPT_SECONDS = 15; // the service keeps an evaluation so often (diagnoser/service/history.py)
const POINTS = 240;
const LIVE = 20000;
const ODD = 0.02; // three states that do not make up the pool to this part are not told apart

export const stepOf = (range) => Math.max(KEPT_SECONDS, Math.ceil(range / POINTS));

/** Borders of the five layers of the pool, from below: surely used | perhaps used | evictable | either | available. */
export function layers(pool) {
  const used = bounds(pool.used);
  if (!used || !pool.capacity) return null;
  const [evictable, available] = splitKnown(pool) ? [bounds(pool.evictable), bounds(pool.available)] : [[0, 0], [0, 0]];
  const top = Math.max(used[1], pool.capacity - available[0]);
  return { capacity: pool.capacity, low: used[0], high: used[1], evictable: Math.min(top, used[1] + evictable[0]), top };
}

function layersOf(used, evictable, available, capacity) {
  if (used === null || capacity === null) return null;
  const told = evictable !== null && available !== null && Math.abs(used + evictable + available - 1) < ODD;
  const scaled = (share) => share * capacity;
  return layers({ capacity, used: scaled(used), evictable: told ? scaled(evictable) : null, available: told ? scaled(available) : null });
}

/** A row from a verdict in full. */
export function rowOf(diagnosis) {
  const known = (name) => diagnosis.signals[name]?.value ?? null;
  const dead = diagnosis.verdict.bottleneck === "unreachable";
  const share = diagnosis.ttft?.parts?.[0]?.share ?? null;
  return {
    at: diagnosis.at,
    bottleneck: diagnosis.verdict.bottleneck,
    severity: diagnosis.verdict.severity,
    pool: dead ? null : layers(poolOf(diagnosis.l1)),
    l2: dead ? null : tierPart(diagnosis.l2),
    waiting: dead ? null : known("waiting_last_requests"),
    ttft: dead ? null : ttft(diagnosis.ttft?.mean_seconds ?? null, share),
  };
}

function ttft(mean, share) {
  return mean === null ? null : { mean, queue: share === null ? null : mean * share };
}

/** Rows from the history: signals and verdicts of the same steps, each in the middle of its step. */
function rowsOf(signals, verdicts) {
  const rows = new Map();
  const at = (time) => rows.get(time) ?? rows.set(time, { at: time, values: {} }).get(time);
  const middle = signals.step / 2;
  for (const [name, points] of Object.entries(signals.signals)) for (const [time, value] of points) at(time + middle).values[name] = value;
  for (const point of verdicts.points) Object.assign(at(point.at + middle), { bottleneck: point.bottleneck, severity: point.severity });
  return [...rows.values()].sort((a, b) => a.at - b.at).map(kept);
}

function kept({ at, values, bottleneck = "unknown", severity = "info" }) {
  const known = (name) => values[name] ?? null;
  const dead = bottleneck === "unreachable";
  const full = known("l2_resident_ratio");
  return {
    at, bottleneck, severity,
    pool: dead ? null : layersOf(known("l1_used_ratio_last"), known("l1_evictable_ratio"), known("l1_available_ratio"), known("l1_capacity_tokens")),
    l2: full === null || dead ? null : [full, full],
    waiting: dead ? null : known("waiting_last_requests"),
    ttft: dead ? null : ttft(known("ttft_mean_seconds"), known("queue_share_ratio")),
  };
}

export class Series {
  constructor() {
    this.live = [];
    this.old = [];
    this.step = KEPT_SECONDS;
  }

  keep(signals, verdicts) {
    this.old = rowsOf(signals, verdicts);
    this.step = signals.step;
  }

  /** A new instant; true if it is one. */
  add(row) {
    if (this.live.length && row.at <= this.live.at(-1).at) return false;
    this.live.push(row);
    if (this.live.length > LIVE) this.live.shift();
    return true;
  }

  /** All since `start`, in order; a row without anything where nothing is known for several steps. */
  rows(start) {
    const covered = new Set(this.live.map((row) => Math.floor(row.at / this.step)));
    const old = this.old.filter((row) => !covered.has(Math.floor(row.at / this.step)));
    const all = [...old, ...this.live].filter((row) => row.at >= start).sort((a, b) => a.at - b.at);
    return this.withGaps(all);
  }

  withGaps(rows) {
    const found = [];
    for (const row of rows) {
      const before = found.at(-1);
      if (before && row.at - before.at > 3 * this.step) found.push({ ...NOTHING, at: before.at + this.step });
      found.push(row);
    }
    return found;
  }
}

const NOTHING = { bottleneck: "", severity: "info", pool: null, l2: null, waiting: null, ttft: null };
