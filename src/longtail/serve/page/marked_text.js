// A text in which the words that carried a label are marked, stronger where they weigh more.

import { h } from "./dom.js";

const LEAST = 0.2; // of the strongest weight: a word below it carried little
const MOST_WORDS = 8; // that are marked for one label

/** The spans that carried a label: its strongest words, wherever they stand. */
export function carrying(spans) {
  const strongest = Math.max(...spans.map((span) => span.weight), 0);
  const strong = spans.filter((span) => span.weight > 0 && span.weight >= LEAST * strongest).sort((a, b) => b.weight - a.weight);
  const words = new Set(strong.map((span) => span.word));
  const first = new Set([...words].slice(0, MOST_WORDS));
  return strong.filter((span) => first.has(span.word));
}

/** Spans in order, without overlaps: of two that share characters the heavier stays. */
export function tidySpans(spans, length) {
  const sound = carrying(spans).filter(({ start, end }) => start >= 0 && end > start && end <= length);
  const taken = [];
  for (const span of sound.sort((a, b) => b.weight - a.weight)) {
    if (taken.every((other) => span.end <= other.start || span.start >= other.end)) taken.push(span);
  }
  return taken.sort((a, b) => a.start - b.start);
}

/** Offsets count characters; JavaScript counts UTF-16 units. Return where each character begins, or null if it is the same. */
function unitOffsets(text) {
  if (!/[\ud800-\udbff]/.test(text)) return null;
  const offsets = [];
  let at = 0;
  for (const character of text) {
    offsets.push(at);
    at += character.length;
  }
  offsets.push(at);
  return offsets;
}

/** The text as nodes, with `mark` elements for spans. */
export function markedText(text, spans) {
  const offsets = unitOffsets(text);
  const inUnits = offsets
    ? spans.map((span) => ({ ...span, start: offsets[span.start] ?? -1, end: offsets[span.end] ?? -1 }))
    : spans;
  const marks = tidySpans(inUnits, text.length);
  const strongest = Math.max(...marks.map((span) => span.weight), 1e-9);
  const nodes = [];
  let at = 0;
  for (const { start, end, weight } of marks) {
    nodes.push(text.slice(at, start));
    nodes.push(h("mark", { vars: { weight: (0.25 + 0.75 * (weight / strongest)).toFixed(3) } }, text.slice(start, end)));
    at = end;
  }
  nodes.push(text.slice(at));
  return nodes;
}
