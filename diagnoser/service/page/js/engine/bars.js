// L1, L2, TTFT and the gates, each as a bar and in words.

import { el } from "../dom.js";
import { count, percent } from "../format.js";
import { t } from "../i18n.js";
import * as words from "../words.js";
import { layers } from "./series.js";

const LEAST = 0.01; // what is not nothing can be seen

/** A bar of [share, class] parts. */
function bar(parts, said) {
  const node = el("div", { className: "bar", role: "img", "aria-label": said });
  for (const [share, name] of parts) {
    if (!(share > 0.0005)) continue;
    const piece = el("i", { className: name });
    piece.style.width = `${100 * Math.max(LEAST, share)}%`;
    node.append(piece);
  }
  return node;
}

/** A number and its unit stay on one line, as do the edges of a bucket. */
const tight = (text) => text.replace(/([\d\]]) (?=(?:%|s|ms|min|h|秒|毫秒)(?![a-z]))/g, "$1\u00a0").replace(/\((\S+), (?=\S+\])/g, "($1,\u00a0");

function row(name, parts, said, ...more) {
  return el("div", { className: "fact" }, el("h3", {}, name), parts ? bar(parts, said) : el("div", { className: "bar none" }), el("p", {}, tight(said)), more);
}

function l1(diagnosis) {
  const pool = words.poolOf(diagnosis.l1);
  const found = layers(pool);
  const part = (a, b) => (b - a) / found.capacity;
  const parts = found && [
    [part(0, found.low), "used"], [part(found.low, found.high), "used-maybe"], [part(found.high, found.evictable), "evictable"],
    [part(found.evictable, found.top), "free-maybe"], [part(found.top, found.capacity), "available"],
  ];
  return row("L1", parts, words.poolWords(pool));
}

function l2(diagnosis) {
  const full = words.tierPart(diagnosis.l2);
  const more = words.moreL2(diagnosis);
  const line = more && el("p", {}, el("strong", {}, `${t("more_l2")} `), t(more.answer) + t("colon"), more.reason);
  return row("L2", full && [[full[0], "l2"], [full[1] - full[0], "l2-maybe"]], words.tierWords(diagnosis.l2), line);
}

function ttft(diagnosis) {
  const parts = words.ttftParts(diagnosis.ttft);
  const said = words.ttftWords(diagnosis.ttft) || t("ttft_none");
  const now = words.ttftNow(diagnosis).map((one) => el("p", { className: "note" }, one));
  return row("TTFT", parts.length ? parts.map((one) => [one.share, `p-${one.name}`]) : null, said, now);
}

/** Which gate kept the queue waiting, and how long. */
function gates(diagnosis) {
  const shares = Object.entries(diagnosis.verdict.shares).sort(([a, x], [b, y]) => (a === "none") - (b === "none") || y - x);
  const said = shares.filter(([, share]) => share > 0).map(([name, share]) => `${words.gate(name)} ${percent(share)}`).join(t("comma"));
  const deferred = diagnosis.signals.waiting_deferred_max_requests?.value;
  const more = deferred ? el("p", { className: "note" }, t("deferred", { count: count(deferred) })) : null;
  return row(t("gates"), shares.length ? shares.map(([name, share]) => [share, `c-${name}`]) : null, said || t("gates_none"), more);
}

export function bars(diagnosis) {
  if (!diagnosis.scrapes) return [];
  const last = diagnosis.verdict.bottleneck === "unreachable" ? el("p", { className: "note" }, t("on_last_page")) : null;
  return [last, l1(diagnosis), l2(diagnosis), ttft(diagnosis), gates(diagnosis)];
}
