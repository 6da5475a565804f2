// `${...}` in links, titles and options. Grafana's own interpolation is part of its front end, which is not published as
// a library; what it looks up in a row comes from the published getFieldDisplayValuesProxy and formatLabels.
import { formattedValueToString, getDisplayProcessor, getFieldDisplayValuesProxy } from '@grafana/data';

const NAME = /\$\{([^}:]+)(?::([^}]+))?\}|\$(\w+)/g;
const at = (found, path) => path.split('.').reduce((one, part) => one?.[part], found);

function cell(path, { frame, field, rowIndex, calculatedValue }) {
  if (path === '__value.raw') {
    return calculatedValue ? calculatedValue.numeric : field.values[rowIndex];
  }
  if (path === '__value.text' || path === '__value') {
    return formattedValueToString((field.display ?? getDisplayProcessor())(field.values[rowIndex]));
  }
  if (path.startsWith('__field.')) {
    return at({ name: field.name, labels: field.labels ?? {} }, path.slice('__field.'.length));
  }
  const fields = getFieldDisplayValuesProxy({ frame, rowIndex });
  const rest = path.slice('__data.fields.'.length);
  return fields[rest]?.toString() ?? at(fields, rest);
}

export function interpolated(text, { variables, scoped, format, missing }) {
  return text?.replace(NAME, (whole, braced, own, bare) => {
    const name = braced ?? bare;
    const context = scoped?.__dataContext?.value;
    let value = scoped?.[name]?.value ?? variables[name];
    if (value === undefined && context && /^__(value|field|data)\b/.test(name)) {
      value = cell(name, context);
    }
    if (value === undefined || value === null) {
      missing.push(whole);
      return whole;
    }
    if (name.startsWith('__url')) {
      return `${value}`;
    }
    // Without a format of their own, values in links keep what an address may contain, as & and +.
    const how = { percentencode: encodeURIComponent, uriencode: encodeURI }[own ?? format] ?? String;
    return how(value);
  });
}
