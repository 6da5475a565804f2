// The checklist: answers first; the numbers behind each unfold. What is not the case, or cannot be told, is only named.

import { get } from "../api.js";
import { el } from "../dom.js";
import { current, t } from "../i18n.js";
import { evidence, finding } from "../words.js";

const KINDS = ["checklist", "look-alike"];

function check(one) {
  const head = el("summary", {}, el("span", { className: `answer ${one.answer}` }, t(one.answer)), el("span", { className: "label" }, one.label), el("span", { className: "reason" }, one.reason));
  const body = el("div", { className: "evidence" },
    el("p", {}, one.question),
    one.evidence.length ? el("ul", { "aria-label": t("evidence") }, one.evidence.map((item) => el("li", {}, evidence(item)))) : null,
    explained(one.id));
  return el("details", { className: `check ${one.answer}`, "data-key": `check-${one.id}` }, head, body);
}

const explanations = new Map(); // by language and check

/** The rule's own words, asked for when somebody wants to read them. What explains the engines' sources is English. */
function explained(id) {
  const key = `${current()} ${id}`;
  const text = el("dl", {}, paragraphs(explanations.get(key)));
  const node = el("details", { className: "explain", "data-key": `explain-${id}` }, el("summary", {}, t("explain")), text);
  node.addEventListener("toggle", async () => {
    if (!node.open || text.textContent) return;
    try {
      explanations.set(key, (await get(`rules/checks/${encodeURIComponent(id)}`)).parts);
      text.replaceChildren(...paragraphs(explanations.get(key)));
    } catch (error) {
      text.textContent = error.message;
    }
  });
  return node;
}

const paragraphs = (parts = []) => parts.flatMap((one) => [el("dt", {}, one.name), el("dd", { lang: one.language === current() ? null : one.language }, one.text)]);

function folded(key, title, checks) {
  return checks.length ? el("details", { className: "fold", "data-key": key }, el("summary", {}, title), checks.map(check)) : null;
}

function names(key, title, checks) {
  const said = checks.map((one) => one.label).join(" · ");
  return checks.length ? el("details", { className: "fold", "data-key": key }, el("summary", {}, title + t("colon"), el("span", { className: "names" }, said)), checks.map(check)) : null;
}

export function checklist(diagnosis) {
  const asked = diagnosis.checks.filter((one) => KINDS.includes(one.kind));
  const by = (answer) => asked.filter((one) => one.answer === answer);
  const other = diagnosis.checks.filter((one) => !KINDS.includes(one.kind));
  const last = diagnosis.verdict.bottleneck === "unreachable" && diagnosis.scrapes ? el("p", { className: "note" }, t("on_last_page")) : null;
  return [
    last,
    ...by("yes").map(check),
    names("fold-no", t("more_no", { count: by("no").length }), by("no")),
    names("fold-unknown", t("more_unknown", { count: by("unknown").length }), by("unknown")),
    folded("fold-other", t("other_checks", { count: other.length }), other),
  ];
}

export function findings(diagnosis) {
  return diagnosis.findings.map((one, place) => el("details", { className: "check", "data-key": `finding-${place}-${one.code}` },
    el("summary", {}, el("span", { className: "answer" }, t(`s_${one.severity}`) || "·"), el("span", { className: "label" }, finding(one.code)), el("span", { className: "reason" }, one.text)),
    el("ul", { className: "evidence" }, one.evidence.map((item) => el("li", {}, evidence(item))))));
}
