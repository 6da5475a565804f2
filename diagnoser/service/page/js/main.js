// Puts the parts together: the stream feeds the fleet, the fleet feeds the table and the engine that is looked at.

import { get, now } from "./api.js";
import { Changes } from "./changes.js";
import { byId, say } from "./dom.js";
import { EngineView } from "./engine/view.js";
import { Filters } from "./filters.js";
import { Fleet } from "./fleet.js";
import { count } from "./format.js";
import * as i18n from "./i18n.js";
import { asked } from "./route.js";
import { Status } from "./status.js";
import { Stream } from "./stream.js";
import { Table } from "./table.js";
import * as theme from "./theme.js";
import * as token from "./token.js";

const DAY = 86400;
const LIMIT = 10000;
const PAGES = 10;
const fleet = new Fleet();
const changes = new Changes();
let table, filters, view, shownId, status, stream, filled;
let drawn = 0;

/** Draws once a frame, however many events came. */
function draw() {
  if (!drawn) drawn = requestAnimationFrame(drawNow);
}

function drawNow() {
  drawn = 0;
  if (!byId("fleet").hidden) {
    const all = fleet.list();
    const chosen = filters.chosen(all);
    filters.render(all);
    table.render(chosen, fleet.ranked(), { told: fleet.known, total: all.length });
    say(byId("shown"), shown(chosen.length, all.length));
    changes.render();
  }
  view.update(fleet.get(view.id), fleet.known);
  const bad = fleet.list().filter((one) => one.urgency >= 2).length;
  document.title = bad ? `(${bad}) diagnose` : "diagnose";
}

function shown(some, all) {
  if (!all) return "";
  if (filters.active()) return i18n.t("shown", { shown: count(some), total: count(all) });
  return all === 1 ? i18n.t("shown_one") : i18n.t("shown_all", { total: count(all) });
}

function event(name, data) {
  if (name === "transition") changes.add(data);
  else fleet.apply(name, data);
  if (name === "verdict" && data.id === view.id) view.told(data);
  if (name === "fleet") {
    refill();
    view.refresh();
  }
  draw();
}

/** What changed before the page was there. Once: later ones come with the stream. */
async function refill() {
  if (filled) return;
  filled = true;
  try {
    let found = { next: 0, transitions: [] };
    for (let page = 0; page < PAGES && (page === 0 || found.transitions.length === LIMIT); page++) {
      found = await get("transitions", { start: Math.floor(now() - DAY), limit: LIMIT, after: found.next });
      changes.fill(found.transitions);
    }
    draw();
  } catch {
    filled = false;
  }
}

/** The fleet, or one engine. */
function route() {
  const id = asked();
  byId("fleet").hidden = id !== "";
  byId("engine").hidden = id === "";
  view.show(id);
  if (id) scrollTo(0, 0);
  drawNow();
  if (id) view.focus();
  else if (shownId) table.focus(shownId);
  shownId = id;
}

function skip(event) {
  event.preventDefault();
  byId("main").focus();
}

async function start() {
  theme.start();
  token.start();
  i18n.start(byId("language"));
  table = new Table();
  table.changed = draw;
  table.label();
  filters = new Filters(draw);
  view = new EngineView(changes, draw);
  stream = new Stream("/api/v1/events", { event, state: (state, more) => status.told(state, more) });
  status = new Status(() => stream.retry(), () => fleet.newest());
  i18n.onLanguage(() => {
    table.label();
    view.label();
    view.poll();
    stream.again();
    draw();
  });
  byId("skip").addEventListener("click", skip);
  addEventListener("hashchange", route);
  setInterval(() => byId("fleet").hidden || table.tick(), 1000);
  route();
  await stream.run();
}

start();
