// Which rows are shown: by bottleneck, by model, by what is typed.

import { byId, el, replace } from "./dom.js";
import { t } from "./i18n.js";
import { bottleneck, engineName, family, mode } from "./words.js";

const ORDER = ["l1", "slots", "prefill", "external", "l2_transfer", "stalled", "leak", "unreachable", "unknown", "none"];

export class Filters {
  constructor(changed) {
    this.bottlenecks = new Set();
    this.model = "";
    this.words = [];
    this.changed = changed;
    this.models = "";
    byId("search").addEventListener("input", (event) => this.typed(event.target.value));
    byId("model").addEventListener("change", (event) => {
      this.model = event.target.value;
      changed();
    });
  }

  typed(text) {
    this.words = text.toLowerCase().split(/\s+/).filter(Boolean);
    this.changed();
  }

  active() {
    return this.bottlenecks.size > 0 || this.model !== "" || this.words.length > 0;
  }

  chosen(engines) {
    return engines.filter((one) => this.matches(one));
  }

  matches(one) {
    if (this.bottlenecks.size && !this.bottlenecks.has(one.bottleneck)) return false;
    if (this.model && one.model !== this.model) return false;
    if (!this.words.length) return true;
    const said = [engineName(one, true), one.id, one.model ?? "", family(one.family), one.headline, bottleneck(one.bottleneck), mode(one.mode)].join(" ").toLowerCase();
    return this.words.every((word) => said.includes(word));
  }

  /** Buttons with numbers, and the models there are. */
  render(engines) {
    const numbers = new Map();
    for (const one of engines) numbers.set(one.bottleneck, (numbers.get(one.bottleneck) ?? 0) + 1);
    for (const name of this.bottlenecks) if (!numbers.has(name)) numbers.set(name, 0);
    replace(byId("counts"), ORDER.filter((name) => numbers.has(name)).map((name) => this.button(name, numbers.get(name))));
    this.renderModels([...new Set(engines.map((one) => one.model).filter(Boolean))].sort());
  }

  button(name, number) {
    const toggle = () => {
      if (!this.bottlenecks.delete(name)) this.bottlenecks.add(name);
      this.changed();
    };
    const attributes = { type: "button", className: `chip b-${name}`, "aria-pressed": String(this.bottlenecks.has(name)), "data-key": name, onclick: toggle };
    return el("button", attributes, el("strong", {}, number.toLocaleString("en-US")), ` ${bottleneck(name)}`);
  }

  renderModels(names) {
    const key = JSON.stringify([names, t("all")]);
    if (key === this.models) return;
    this.models = key;
    if (this.model && !names.includes(this.model)) names.push(this.model);
    const select = byId("model");
    select.replaceChildren(el("option", { value: "" }, t("all")), ...names.map((name) => el("option", { value: name }, name)));
    select.value = this.model;
  }
}
