// What is known of all engines, in the service's own order: the worst first.

/** Share of the window that some gate was closed; null where it could not be attributed. */
export function closed(engine) {
  const gates = Object.entries(engine.shares);
  return gates.length ? gates.reduce((sum, [gate, share]) => sum + (gate === "none" ? 0 : share), 0) : null;
}

const by = (a, b) => (a < b ? -1 : a > b ? 1 : 0);

function worse(a, b) {
  return b.urgency - a.urgency || (closed(b) ?? 0) - (closed(a) ?? 0) || by(a.target, b.target) || by(a.rank, b.rank);
}

export class Fleet {
  constructor() {
    this.engines = new Map();
    this.known = false; // has been told of at least once
    this.sorted = null;
  }

  apply(name, data) {
    if (name === "fleet") this.whole(data);
    else if (name === "verdict") this.engines.set(data.id, data);
    else if (name === "removed") this.engines.delete(data.id);
    this.sorted = null;
  }

  whole(data) {
    const here = new Set(data.ids);
    if (data.complete) this.engines.clear();
    for (const id of this.engines.keys()) if (!here.has(id)) this.engines.delete(id);
    for (const engine of data.engines) this.engines.set(engine.id, engine);
    this.known = true;
  }

  get(id) {
    return this.engines.get(id);
  }

  /** The worst first. */
  list() {
    this.sorted ??= [...this.engines.values()].sort(worse);
    return this.sorted;
  }

  /** Targets of several ranks: their names need the rank. */
  ranked() {
    const ranks = new Map();
    for (const engine of this.engines.values()) ranks.set(engine.target, (ranks.get(engine.target) ?? 0) + 1);
    return new Set([...ranks].filter(([, number]) => number > 1).map(([target]) => target));
  }

  newest() {
    let at = 0;
    for (const engine of this.engines.values()) at = Math.max(at, engine.at);
    return at;
  }
}
