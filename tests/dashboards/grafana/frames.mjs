// Answers of data sources as the frames that Grafana makes of them.
//
// Prometheus: the back end makes one frame a series and names it after the legend, the library @grafana/prometheus makes
// tables of them. The back end is not published; named() and frame() follow its pkg/promlib/querydata/response.go.
import { lastValueFrom } from 'rxjs';
import { PrometheusAnnotationSupport } from './node_modules/@grafana/prometheus/dist/esm/annotations.mjs';
import { transformV2 } from './node_modules/@grafana/prometheus/dist/esm/result_transformer.mjs';

const LABEL = /\{\{\s*(.+?)\s*\}\}/g;

function metric(labels) {
  const told = Object.entries(labels).filter(([name]) => name !== '__name__');
  const name = labels.__name__ ?? '';
  if (told.length === 0) {
    return name || '{}';
  }
  return `${name}{${told.map(([key, value]) => `${key}=${JSON.stringify(value)}`).sort().join(', ')}}`;
}

function named(target, labels) {
  let legend = metric(labels);
  if (target.legendFormat === '__auto') {
    legend = Object.keys(labels).length > 0 ? '' : legend;
  } else if (target.legendFormat) {
    legend = target.legendFormat.replace(LABEL, (_, name) => labels[name] ?? '');
  }
  return legend === '{}' ? target.expr : legend;
}

function frame(target, series, step) {
  const points = series.values ?? [series.value];
  const name = named(target, series.metric);
  return {
    refId: target.refId,
    meta: { custom: { resultType: series.values ? 'matrix' : 'vector' } },
    fields: [
      { name: 'Time', type: 'time', config: { interval: step * 1000 }, values: points.map(([at]) => at * 1000) },
      {
        name: series.metric.__name__ ?? 'Value',
        type: 'number',
        labels: series.metric,
        config: name ? { displayNameFromDS: name } : {},
        values: points.map(([, value]) => Number(value.replace('Inf', 'Infinity'))),
      },
    ],
    length: points.length,
  };
}

export function prometheus(targets, answers, step) {
  const data = targets.flatMap((target) => {
    const found = (answers[target.refId] ?? []).map((series) => frame(target, series, step));
    return found.length ? found : [{ refId: target.refId, meta: {}, fields: [], length: 0 }];
  });
  return transformV2({ data }, { targets }, {}).data;
}

// Annotations: what the query is made of, and the events that its answer becomes.
export async function events(note, answer) {
  const support = PrometheusAnnotationSupport({});
  const asked = support.prepareAnnotation(structuredClone(note));
  const step = asked.target.interval;
  const frames = answer.map((series) => ({
    ...frame({ ...asked.target, legendFormat: '' }, series, Number.parseInt(step)),
    meta: { executedQueryString: `Expr: ${asked.target.expr}\nStep: ${step}` },
  }));
  const found = await lastValueFrom(support.processEvents(asked, frames), { defaultValue: [] });
  return { step, events: found.map(({ time, timeEnd, title, text, tags }) => ({ time, timeEnd, title, text, tags })) };
}

// Infinity's back end: a field a column; without columns a field a key, in alphabetical order, of the type of its values.
const KINDS = { string: 'string', number: 'number', timestamp_epoch: 'time', timestamp: 'time', boolean: 'boolean' };

function guessed(rows, key) {
  const value = rows.map((row) => row[key]).find((one) => one !== null && one !== undefined);
  return { selector: key, text: key, type: typeof value === 'number' ? 'number' : 'string' };
}

export function infinity(targets, answers) {
  return targets.map((target) => {
    const rows = answers[target.refId] ?? [];
    const keys = [...new Set(rows.flatMap((row) => Object.keys(row)))].sort();
    const columns = target.columns.length ? target.columns : keys.map((key) => guessed(rows, key));
    const fields = columns.map((column) => ({
      name: column.text || column.selector,
      type: KINDS[column.type],
      config: {},
      values: rows.map((row) => row[column.selector] ?? null),
    }));
    return { refId: target.refId, name: target.refId, meta: {}, fields, length: rows.length };
  });
}
