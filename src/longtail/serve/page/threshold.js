// The threshold from which tags are given, and what to expect of it: precision and recall on texts the training held out.

import { h, newId, show, svg } from "./dom.js";
import { ask, modelPath } from "./server.js";
import { number, percent, t } from "./words.js";

/** The measured point at a threshold, between its two neighbours by a straight line. */
export function pointAt(points, threshold) {
  if (points.length === 0) return null;
  const next = points.findIndex((point) => point.threshold >= threshold);
  if (next === 0) return points[0];
  if (next < 0) return points.at(-1);
  const [a, b] = [points[next - 1], points[next]];
  const share = (threshold - a.threshold) / (b.threshold - a.threshold || 1);
  const between = (key) => (a[key] === null || b[key] === null ? a[key] ?? b[key] : a[key] + share * (b[key] - a[key]));
  return { threshold, precision: between("precision"), recall: between("recall"), labels_per_row: between("labels_per_row") };
}

/** The threshold at which a target such as "precision=0.8" is reached; null where none does, or the target is another. */
export function thresholdFor(points, target) {
  const [name, value] = target.split("=");
  const found = {
    precision: () => points.find((point) => point.precision !== null && point.precision >= Number(value)),
    recall: () => points.findLast((point) => point.recall >= Number(value)),
    "labels-per-row": () => points.find((point) => point.labels_per_row <= Number(value)),
  }[name]?.();
  return found?.threshold ?? null;
}

/** A target in words: "precision=0.8" as "at least 80% right"; the server's sentence for one that has no words here. */
export function targetWords({ name, sentence }) {
  const [kind, number] = name.split("=");
  const key = `target.${kind}`;
  const words = t(key, { value: Number(number) <= 1 ? percent(Number(number)) : number ?? "" });
  return words === key ? sentence || name : words;
}

function line(points, key, kind) {
  const drawn = points.filter((point) => point[key] !== null && point[key] !== undefined);
  const path = drawn.map((point, i) => `${i ? "L" : "M"}${(point.threshold * 100).toFixed(2)} ${(100 - point[key] * 100).toFixed(2)}`).join("");
  return svg("path", { d: path, class: kind, "vector-effect": "non-scaling-stroke" });
}

function curve(points) {
  const cursor = svg("line", { x1: 0, x2: 0, y1: 0, y2: 100, class: "cursor", "vector-effect": "non-scaling-stroke" });
  const drawing = svg("svg", { viewBox: "0 0 100 100", preserveAspectRatio: "none", "aria-hidden": "true" },
    svg("line", { x1: 0, x2: 100, y1: 50, y2: 50, class: "grid", "vector-effect": "non-scaling-stroke" }),
    line(points, "precision", "precision"), line(points, "recall", "recall"), cursor);
  return { drawing, point: (threshold) => ["x1", "x2"].forEach((end) => cursor.setAttribute(end, threshold * 100)) };
}

/**
 * The slider with its curve. `changed(threshold)` is called as it moves.
 * Its element is empty until the server has answered.
 */
export function thresholdSlider({ model, changed }) {
  const element = h("div", { class: "threshold" });
  const state = { value: null, points: null, element, set: () => {} };
  ask(modelPath(model, "/thresholds")).then((answer) => {
    if (!answer.points) {
      show(element, h("p", { class: "soft" }, answer.reason));
      return;
    }
    const points = [...answer.points].sort((a, b) => a.threshold - b.threshold);
    const { drawing, point } = curve(points);
    const id = newId("threshold");
    const about = h("p", { class: "expected", id: newId("expected") });
    const shown = h("output", { for: id });
    const slider = h("input", { type: "range", id, min: 0, max: 1, step: 0.01, "aria-describedby": about.id });
    const draw = (threshold) => {
      const expected = pointAt(points, threshold);
      slider.value = threshold;
      slider.style.setProperty("--share", threshold);
      slider.setAttribute("aria-valuetext", percent(threshold));
      shown.textContent = percent(threshold);
      point(threshold);
      show(about,
        h("span", { class: "key precision" }, t("threshold.precision"), " ", h("b", null, percent(expected.precision))),
        h("span", { class: "key recall" }, t("threshold.recall"), " ", h("b", null, percent(expected.recall))),
        h("span", { class: "key" }, h("b", null, number(expected.labels_per_row, 1)), " ", t("threshold.per-text")));
    };
    state.set = (threshold) => {
      state.value = threshold;
      draw(threshold);
    };
    slider.addEventListener("input", () => {
      state.set(Number(slider.value));
      changed(state.value);
    });
    state.points = points;
    show(element,
      h("div", { class: "threshold-head" }, h("label", { for: id }, t("threshold.label")), shown),
      h("div", { class: "curve" }, drawing), slider, about,
      h("p", { class: "soft small" }, t("threshold.about")));
    state.default = answer.default;
    state.set(state.value ?? answer.default ?? 0.5);
    changed(null);
  }).catch(() => show(element));
  return state;
}
