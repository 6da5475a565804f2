// What to do, in order; what would not help; and what each change would bring.

import { el } from "../dom.js";
import { count, general } from "../format.js";
import { t } from "../i18n.js";

export function remedies(diagnosis) {
  const list = diagnosis.remedies.map((one) =>
    el("li", {}, el("strong", {}, one.action), el("code", {}, one.flag), el("p", { className: "note" }, one.effect, t("semicolon"), t("costs", { what: one.side_effect }))));
  const not = diagnosis.not_remedies.map((said) => el("p", { className: "not" }, el("strong", {}, t("not_remedies") + t("colon")), said));
  if (list.length) return [el("ol", { className: "todo" }, list), not];
  return diagnosis.verdict.bottleneck === "none" ? [el("p", { className: "note" }, t("no_remedies"))] : not;
}

export function whatIf(diagnosis) {
  const list = diagnosis.what_if.map((one) => {
    const numbers = [one.queue, one.concurrency === null ? "" : t("at_once", { count: count(Math.round(one.concurrency)) }), one.rho === null ? "" : `rho ${general(one.rho, 2)}`];
    const said = one.reason || numbers.filter(Boolean).join(t("comma"));
    const helps = one.helps === null || one.helps === undefined ? "unknown" : one.helps ? "yes" : "no";
    return el("li", { className: helps }, el("strong", {}, one.change), t("colon") + said);
  });
  return list.length ? [el("ul", { className: "what-if" }, list)] : [];
}
