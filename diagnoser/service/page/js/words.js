// Words around the sentences of a verdict, as the terminal puts them (diagnoser/outputs/words.py).

import { amount, duration, general, percent, quantity, seconds } from "./format.js";
import { has, t, unit } from "./i18n.js";

const TITLES = { vllm: "vLLM", sglang: "SGLang", unknown: "" };
export const GLYPHS = ["✓", "?", "▲", "✕", "●"]; // by urgency: none, unknown, warning, unreachable, critical
export const ARROWS = { rising: "↑", recovering: "↓", steady: "" };

export const bottleneck = (name) => t(`b_${name}`);
export const gate = (name) => t(`g_${name}`);
export const l2 = (name) => t(`l2_${name}`);

/** The mode of a verdict; one that the page has no word for keeps its own. */
export function mode(name) {
  if (!name) return "";
  return has(`m_${name}`) ? t(`m_${name}`) : name.replaceAll("_", " ");
}

/** What was found beside the verdict. */
export const finding = (code) => (has(`f_${code}`) ? t(`f_${code}`) : code.replaceAll("_", " "));

/** "l1/reservation" in words. */
export function verdictName(text) {
  const [first, second] = text.split("/");
  return second ? t("aside", { what: bottleneck(first), aside: mode(second) }) : bottleneck(first);
}

export const family = (name) => TITLES[name] ?? name;

export function engineName(engine, ranked) {
  return ranked || !["0", ""].includes(engine.rank) ? `${engine.target} ${t("rank", { rank: engine.rank })}` : engine.target;
}

export const gravity = (verdict) =>
  [t(`s_${verdict.severity}`), t(`c_${verdict.confidence}`), verdict.trend === "steady" ? "" : t(`trend_${verdict.trend}`)].filter(Boolean).join(" · ");

// ---------------------------------------------------------------- quantities: a number, [low, high], or null

export const bounds = (value) => (value === null || value === undefined ? null : Array.isArray(value) ? value : [value, value]);

const within = (share) => Math.min(1, Math.max(0, share));

/** Shares of the capacity, each within 0..1. */
export function part(value, capacity) {
  const found = bounds(value);
  return found === null || !capacity ? null : [within(found[0] / capacity), within(found[1] / capacity)];
}

/** "94 %", or "94..98 %". */
export function percents([low, high]) {
  const [a, b] = [percent(low), percent(high)];
  return a === b ? b : `${a.replace(" %", "")}..${b}`;
}

/** The pool of a fleet line or of a contract, in one shape. */
export function poolOf(l1) {
  if ("capacity_tokens" in l1) return { name: l1.pool, reason: l1.reason, capacity: l1.capacity_tokens, used: l1.used_tokens, evictable: l1.evictable_tokens, available: l1.available_tokens };
  return { name: "kv", reason: "", ...l1 };
}

/** Can evictable be told from available? */
export function splitKnown(pool) {
  const [evictable, available] = [bounds(pool.evictable), bounds(pool.available)];
  if (!evictable || !available) return false;
  return !(evictable[0] === available[0] && evictable[1] === available[1] && evictable[0] === 0 && evictable[1] > 0);
}

export function restWords(pool) {
  const [evictable, available, used] = ["evictable", "available", "used"].map((name) => part(pool[name], pool.capacity));
  if (splitKnown(pool) && evictable && available) return `${t("evictable")} ${percents(evictable)}${t("comma")}${t("available")} ${percents(available)}`;
  return used ? `${t("free")} ${percents([1 - used[1], 1 - used[0]])}` : "";
}

/** The three states in words. */
export function poolWords(pool) {
  const used = part(pool.used, pool.capacity);
  if (used === null) return t("pool_not_known", { reason: pool.reason || t("pool_not_exported") });
  const name = pool.name === "kv" ? "" : t("named_pool", { name: pool.name }) + t("colon");
  const size = pool.capacity ? amount(pool.capacity, t("tokens")) : t("pool_size_unknown");
  return [`${name}${t("used")} ${percents(used)}`, restWords(pool)].filter(Boolean).join(t("comma")) + t("semicolon") + size;
}

// ---------------------------------------------------------------- L2

/** How full the host tier is, as shares; null where that cannot be told. */
export function tierPart(tier) {
  if (!tier || !tier.capacity || !tier.present) return null;
  if (tier.resident !== null) return part(tier.resident, tier.capacity);
  return tier.resident_upper === null ? null : part([0, tier.resident_upper], tier.capacity);
}

export function tierWords(tier) {
  if (!tier) return t("l2_nothing_said");
  if (tier.present === false) return t("l2_none");
  const why = tier.reason ? t("colon") + tier.reason : "";
  if (tier.present === null) return t("l2_not_observable") + why;
  const name = tier.governs_admission ? t("l2_part_of_pool", { name: tier.backend }) : tier.backend;
  const full = tierPart(tier);
  if (full === null) return t("l2_unseen", { name }) + why;
  const capacity = amount(tier.capacity, tier.unit === "tokens" ? t("tokens") : tier.unit);
  if (tier.resident !== null) return t("l2_used", { part: percents(full), capacity, name });
  return t("l2_used_most", { part: percent(full[1]), capacity, name });
}

/** Would more of it help? "" where nobody would ask. */
export function moreL2(diagnosis) {
  const more = diagnosis.would_more_l2_help;
  if (!more || !["l1", "prefill", "l2_transfer"].includes(diagnosis.verdict.bottleneck)) return null;
  return diagnosis.scrapes || more.answer !== "unknown" ? more : null;
}

// ---------------------------------------------------------------- TTFT

/** "(20, 40] s", "> 40 s", or "". */
export function bucket(found) {
  if (!found || found[0] === null) return "";
  return found[1] === null ? `> ${seconds(found[0])}` : unit(`(${general(found[0])}, ${general(found[1])}] s`);
}

export function p99Words(found) {
  const said = bucket(found);
  return said ? t(said.startsWith("(") ? "p99_in" : "p99_above", { bucket: said }) : "";
}

/** Known parts of the mean TTFT that are something; none where the queue is not known. */
export function ttftParts(ttft) {
  const parts = ttft?.parts ?? [];
  if (!parts.length || parts[0].share === null) return [];
  return parts.filter((one) => one.share || (one.name === "queue" && one.share === 0));
}

export function ttftWords(ttft) {
  const parts = ttftParts(ttft).map((one) => `${t(`p_${one.name}`)} ${percent(one.share)}`);
  const mean = ttft?.mean_seconds == null ? "" : t("mean", { time: seconds(ttft.mean_seconds) });
  return [parts.join(t("comma")), mean, p99Words(ttft?.p99)].filter(Boolean).join(t("semicolon"));
}

/** What the histograms cannot show yet: the wait of who arrives now, silence, and which part is missing. */
export function ttftNow({ ttft, checks, signals }) {
  if (!ttft) return [];
  const wait = signals.waiting_last_requests?.value ? ttft.wait_estimate_seconds : null;
  const age = ttft.queue_age_estimate_seconds;
  const silent = checks.find((one) => one.id === "no_first_token" && one.answer === "yes");
  const unknown = ttft.mean_seconds === null ? null : ttft.parts.find((one) => one.kind === "unknown" && ["queue", "prefill"].includes(one.name));
  return [
    wait !== null && wait >= 1 ? t(age ? "wait_and_age" : "wait_now", { wait: seconds(wait), age: seconds(age ?? 0) }) : "",
    silent ? `${silent.reason}${t("stop")}` : "",
    unknown ? t("why_parts", { reason: unknown.reason }) : "",
  ].filter(Boolean).map((said) => said[0].toUpperCase() + said.slice(1));
}

export function evidence(one) {
  if (one.value === null) return `${one.signal}: ${one.missing_reason || t("not_known")}`;
  const limit = one.threshold === null ? "" : ` (${one.op} ${quantity(one.threshold, one.unit)}?)`;
  const series = [...new Set(one.series)].join(", ");
  return `${one.signal} ${quantity(one.value, one.unit)}${limit}${series ? ` ${t("from", { series })}` : ""}`;
}

export function span(diagnosis, clock) {
  const values = { time: duration(diagnosis.window_seconds), pages: diagnosis.scrapes, clock: clock(diagnosis.at) };
  return t(diagnosis.scrapes === 1 ? "one_page" : "pages", values);
}
