// Plots as SVG, each with a table of the same numbers for those who cannot see it.

import { h, svg } from "./dom.js";
import { day, number, percent, t } from "./words.js";

let WIDTH = 640; // of the drawing; narrower on a phone, so that its words stay readable
const HEIGHT = 230;
const PAD = { left: 42, right: 14, top: 12, bottom: 26 };

function fitScreen() {
  WIDTH = innerWidth < 640 ? 330 : 640;
}

function scales(low, high, from, to) {
  const x = (value) => PAD.left + ((value - from) / (to - from || 1)) * (WIDTH - PAD.left - PAD.right);
  const y = (value) => PAD.top + (1 - (value - low) / (high - low || 1)) * (HEIGHT - PAD.top - PAD.bottom);
  return { x, y };
}

/** A table that can be moved sideways, also by key, where it is wider than the screen. */
export function scrolling(name, table) {
  return h("div", { class: "scrolls", tabindex: "0", role: "group", "aria-label": name }, table);
}

function asTable(columns, rows) {
  return h("details", { class: "as-table" }, h("summary", null, t("plot.table")),
    scrolling(t("plot.table"), h("table", null,
      h("thead", null, h("tr", null, columns.map((name, i) => h("th", { scope: "col", class: i ? "number" : "" }, name)))),
      h("tbody", null, rows.map((row) => h("tr", null, row.map((cell, i) => h("td", { class: i ? "number" : "" }, cell))))))));
}

function frame(name, parts) {
  return svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": name }, parts);
}

function ticksOfDays(days, x) {
  const most = Math.min(WIDTH < 640 ? 4 : 6, days.length);
  const step = Math.max(1, Math.ceil((days.length - 1) / Math.max(1, most - 1)));
  return days.filter((_, i) => i % step === 0).map((one) =>
    svg("text", { x: x(one), y: HEIGHT - 6, "text-anchor": "middle" }, day(one)));
}

/** Shares over time with their intervals: { day, precision, low, high, pairs }. */
export function sharePlot(name, points) {
  fitScreen();
  const known = points.filter((point) => point.precision !== null);
  const days = known.map((point) => new Date(point.day).getTime());
  const low = Math.max(0, Math.floor(Math.min(...known.map((point) => point.low)) * 10) / 10 - 0.1);
  const { x, y } = scales(low, 1, days[0], days.at(-1) === days[0] ? days[0] + 86_400_000 : days.at(-1));
  const steps = 1 - low > 0.5 ? 5 : 10; // of the whole range from 0 to 1
  const ticks = Array.from({ length: steps + 1 }, (_, i) => i / steps).filter((share) => share >= low - 1e-9);
  const along = (key) => known.map((point, i) => `${x(days[i]).toFixed(1)} ${y(point[key]).toFixed(1)}`);
  const band = `M${along("high").join("L")}L${along("low").reverse().join("L")}Z`;
  const drawing = frame(name, [
    ticks.map((share) => [
      svg("line", { class: "axis", x1: PAD.left, x2: WIDTH - PAD.right, y1: y(share), y2: y(share) }),
      svg("text", { x: PAD.left - 8, y: y(share) + 4, "text-anchor": "end" }, percent(share))]),
    known.length > 1 && svg("path", { class: "band", d: band }),
    known.length > 1 && svg("path", { class: "trend", d: `M${along("precision").join("L")}` }),
    known.map((point, i) => [
      known.length === 1 && svg("line", { class: "whisker", x1: x(days[i]), x2: x(days[i]), y1: y(point.low), y2: y(point.high) }),
      svg("circle", { class: "dot", cx: x(days[i]), cy: y(point.precision), r: known.length > 40 ? 2 : 3.5 },
        svg("title", null, `${day(point.day)}: ${percent(point.precision)} (${percent(point.low)} – ${percent(point.high)})`))]),
    ticksOfDays(days, x),
  ]);
  const rows = known.map((point) => [day(point.day), percent(point.precision, 1), `${percent(point.low, 1)} – ${percent(point.high, 1)}`, number(point.pairs)]);
  return h("div", { class: "plot" }, drawing, asTable([t("plot.day"), t("threshold.precision"), t("plot.interval"), t("plot.judged")], rows));
}

/** 1, 2 or 5 times a power of ten, such that about four steps reach a number. */
function niceStep(most) {
  const size = 10 ** Math.floor(Math.log10(most / 3 || 1));
  const step = [1, 2, 5, 10].map((times) => times * size).find((one) => most / one <= 4);
  return Math.max(1, step);
}

/** A number for every day, as columns: { day, value }. */
export function dayColumns(name, points, caption) {
  fitScreen();
  const one = 86_400_000;
  const days = points.map((point) => new Date(point.day).getTime());
  const most = Math.max(...points.map((point) => point.value), 1);
  const step = niceStep(most);
  const top = Math.ceil(most / step) * step;
  const span = Math.max(7, Math.round((days.at(-1) - days[0]) / one) + 1);
  const { x, y } = scales(0, top, days[0] - one / 2, days[0] + (span - 0.5) * one);
  const width = Math.min(26, ((WIDTH - PAD.left - PAD.right) / span) * 0.72);
  const ticks = Array.from({ length: Math.round(top / step) + 1 }, (_, i) => i * step);
  const drawing = frame(name, [
    ticks.map((tick) => [
      svg("line", { class: "axis", x1: PAD.left, x2: WIDTH - PAD.right, y1: y(tick), y2: y(tick) }),
      svg("text", { x: PAD.left - 8, y: y(tick) + 4, "text-anchor": "end" }, number(tick))]),
    points.map((point, i) => svg("rect", { class: "column", x: x(days[i]) - width / 2, width, y: y(point.value), height: y(0) - y(point.value), rx: 2 },
      svg("title", null, `${day(point.day)}: ${number(point.value)}`))),
    ticksOfDays(days, x),
  ]);
  return h("div", { class: "plot" }, drawing, asTable([t("plot.day"), caption], points.map((point) => [day(point.day), number(point.value)])));
}

/** A share with its interval on a line from 0 to 1. */
export function intervalBar({ low, high, precision }) {
  return h("span", { class: "interval", "aria-hidden": "true", vars: { low, high, at: precision } }, h("span", { class: "range" }), h("span", { class: "at" }));
}
