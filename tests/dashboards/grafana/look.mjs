// What Grafana's own libraries show of panels. In: [{panel, answers, variables, step}]; out: one object for each.
import './dom.mjs';
import * as grafana from '@grafana/data';
import { defaultDashboard } from '@grafana/schema';
import { lastValueFrom } from 'rxjs';
import { events, infinity, prometheus } from './frames.mjs';
import { interpolated } from './words.mjs';

const theme = grafana.createTheme();
const { formattedValueToString, getFieldDisplayName } = grafana;
const chain = Object.values(grafana.standardTransformers);
grafana.standardTransformersRegistry.setInit(() =>
  [...new Set(chain)].map((one) => ({ id: one.id, name: one.name, transformation: one }))
);

// Properties that a field can have: Grafana registers the standard ones, and each kind of panel its own.
const STANDARD = {
  unit: grafana.unitOverrideProcessor, decimals: grafana.numberOverrideProcessor, min: grafana.numberOverrideProcessor,
  max: grafana.numberOverrideProcessor, displayName: grafana.displayNameOverrideProcessor,
  noValue: grafana.stringOverrideProcessor, thresholds: grafana.thresholdsOverrideProcessor,
  mappings: grafana.valueMappingsOverrideProcessor, links: grafana.dataLinksOverrideProcessor,
  color: grafana.identityOverrideProcessor, filterable: grafana.booleanOverrideProcessor,
};

function properties(panel) {
  const own = panel.fieldConfig.overrides.flatMap((one) => one.properties.map(({ id }) => id));
  const customs = new Set([...own, ...Object.keys(panel.fieldConfig.defaults.custom ?? {}).map((key) => `custom.${key}`)]);
  const registry = new grafana.FieldConfigOptionsRegistry();
  const item = (id, path, process, isCustom) => ({ id, path, name: id, process, shouldApply: () => true, isCustom, settings: {} });
  for (const [id, process] of Object.entries(STANDARD)) {
    registry.register(item(id, id, process, false));
  }
  for (const id of customs) {
    if (id.startsWith('custom.')) {
      registry.register(item(id, id.slice('custom.'.length), grafana.identityOverrideProcessor, true));
    }
  }
  return registry;
}

function shown(display) {
  return { text: formattedValueToString(display), color: display.color ?? null };
}

// By-name matchers look at names; which of the fields of all frames they match.
function matched(overrides, frames) {
  return overrides.map(({ matcher }) => {
    const match = grafana.fieldMatchers.get(matcher.id).get(matcher.options);
    return frames.flatMap((frame) => frame.fields.filter((field) => match(field, frame, frames))).length;
  });
}

function field(one, frame, frames) {
  const rows = one.values.map((value, row) => ({
    value: value ?? null,
    ...shown(one.display(value)),
    links: (one.getLinks?.({ valueRowIndex: row }) ?? []).map(({ href, title, target }) => ({ href, title, target: target ?? null })),
  }));
  return {
    name: one.name,
    shown: getFieldDisplayName(one, frame, frames),
    type: one.type,
    labels: one.labels ?? {},
    config: { ...one.config, links: undefined },
    mode: grafana.getFieldSeriesColor(one, theme).color,
    rows,
  };
}

async function look({ panel, answers, variables, step }) {
  const missing = [];
  const replace = (text, scoped, format) => interpolated(text, { variables, scoped, format, missing });
  const make = panel.datasource.type === 'prometheus' ? prometheus : infinity;
  const before = make(panel.targets, answers, step);
  const steps = panel.transformations ?? [];
  const speaking = [];
  let series = before;
  for (const one of steps) {
    speaking.push(series.map((frame) => frame.fields.map((each) => getFieldDisplayName(each, frame, series))));
    series = await lastValueFrom(grafana.transformDataFrame([one], series, { interpolate: replace }));
  }
  const data = grafana.applyFieldOverrides({
    data: series, fieldConfig: panel.fieldConfig, fieldConfigRegistry: properties(panel), replaceVariables: replace,
    theme, timeZone: 'utc',
  });
  const numbers = ['stat', 'bargauge', 'gauge'].includes(panel.type) && grafana.getFieldDisplayValues({
    fieldConfig: panel.fieldConfig, reduceOptions: panel.options.reduceOptions, replaceVariables: replace, theme, data,
    timeZone: 'utc', sparkline: false,
  });
  return {
    before: before.map((frame) => frame.length),
    speaking,
    matched: matched(panel.fieldConfig.overrides, series),
    frames: data.map((frame) => ({
      refId: frame.refId ?? null,
      length: frame.length,
      fields: frame.fields.map((one) => field(one, frame, data)),
    })),
    numbers: numbers ? numbers.map(({ display }) => ({ title: display.title ?? '', ...shown(display) })) : null,
    missing,
  };
}

function units() {
  return grafana.getValueFormats().flatMap((group) => group.submenu.map(({ value }) => value));
}

async function main() {
  let text = '';
  for await (const piece of process.stdin) {
    text += piece;
  }
  const asked = JSON.parse(text);
  const panels = [];
  for (const one of asked.panels) {
    panels.push(await look(one));
  }
  const named = (color) => theme.visualization.getColorByName(color);
  const colours = Object.fromEntries((asked.colours ?? []).map((color) => [color, named(color)]));
  const notes = [];
  for (const { note, answer } of asked.notes ?? []) {
    notes.push(await events(note, answer));
  }
  process.stdout.write(JSON.stringify({ panels, units: units(), colours, notes, schema: defaultDashboard.schemaVersion }));
}

main();
