// Numbers as the terminal writes them (diagnoser/units.py); tests/page holds both against each other.

import { has, t, unit } from "./i18n.js";

const named = (name) => (has(`unit_${name}`) ? t(`unit_${name}`) : name);

const grouped = (value, digits) => value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });

/** Python's %g with that many significant digits; `commas` groups thousands. */
export function general(value, digits = 6, commas = false) {
  if (!Number.isFinite(value)) return value > 0 ? "inf" : value < 0 ? "-inf" : "nan";
  if (value === 0) return "0";
  const exponent = Number(value.toExponential(digits - 1).split("e")[1]);
  if (exponent < -4 || exponent >= digits) {
    const [mantissa, power] = value.toExponential(digits - 1).split("e");
    const short = mantissa.includes(".") ? mantissa.replace(/\.?0+$/, "") : mantissa;
    return `${short}e${power[0]}${power.slice(1).padStart(2, "0")}`;
  }
  const plain = fixed(value, Math.max(0, digits - 1 - exponent));
  const short = plain.includes(".") ? plain.replace(/\.?0+$/, "") : plain;
  return commas ? short.replace(/^(-?\d+)/, (whole) => whole.replace(/\B(?=(\d{3})+$)/g, ",")) : short;
}

/** 0.816 -> "82 %"; never 0 % or 100 % unless exact to a tenth. */
export function percent(value) {
  const shown = value * 100;
  return ((shown > 0.05 && shown < 1) || (shown > 99 && shown < 99.95) ? shown.toFixed(1) : even(shown)) + " %";
}

/** toFixed, but halves go to the even number, as in Python. */
function fixed(value, digits) {
  const exact = Math.abs(value).toFixed(Math.min(100, digits + 40)); // a half is never longer than that
  const kept = exact.slice(0, exact.indexOf(".") + 1 + digits).replace(/\.$/, "");
  const tie = /^50*$/.test(exact.slice(exact.indexOf(".") + 1 + digits)) && Number(kept.at(-1)) % 2 === 0;
  return tie ? (value < 0 ? "-" : "") + kept : value.toFixed(digits);
}

const even = (value) => fixed(value, 0);

export function count(value) {
  if (!Number.isFinite(value)) return general(value);
  if (Number.isInteger(value) || Math.abs(value) >= 100) return grouped(Number(even(value)), 0);
  return general(value, 2, true);
}

export const seconds = (value) => (value === Infinity ? unit("more") : unit(`${general(value, 3, true)} s`));

export function size(value) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  while (Math.abs(value) >= 1024 && units.length > 1) {
    value /= 1024;
    units.shift();
  }
  return `${general(value, 3, true)} ${units[0]}`;
}

export function rate(value) {
  if (Math.abs(value) > 0 && Math.abs(value) < 0.001) return value > 0 ? "< 0.001" : "> -0.001";
  return Math.abs(value) >= 1000 ? grouped(Number(even(value)), 0) : general(value, 3);
}

/** A signal's value with its unit. */
export function quantity(value, name) {
  if (name === "bool") return t(value ? "yes" : "no");
  if (name === "ratio") return percent(value);
  if (name === "seconds") return seconds(value);
  if (name === "bytes") return size(value);
  const shown = name.includes("/s") ? rate(value) : count(value);
  return name === "" ? shown : `${shown} ${named(name)}`;
}

export const amount = (value, name) => (name === "bytes" ? size(value) : `${count(value)} ${name}`);

/** 90 -> "90 s", 300 -> "5 min", 5400 -> "1.5 h", and days, which the terminal never needs. */
export function duration(value) {
  if (value >= 172800) return unit(`${general(value / 86400, 3)} d`);
  if (value >= 7200) return unit(`${general(value / 3600, 3)} h`);
  if (value >= 120) return unit(`${general(value / 60, 3)} min`);
  if (value >= 9.5) return unit(`${even(value)} s`);
  return unit(value >= 1 ? `${general(value, 2)} s` : `${general(value * 1000, 3)} ms`);
}

/** For ages that grow under the reader's eyes. */
export const age = (value) => (value < 120 ? unit(`${Math.max(0, Math.round(value))} s`) : duration(value));

/** ISO time of day, UTC. */
export const clock = (at) => new Date(at * 1000).toISOString().slice(11, 19) + "Z";
export const moment = (at) => new Date(at * 1000).toISOString().slice(0, 19).replace("T", " ") + "Z";
