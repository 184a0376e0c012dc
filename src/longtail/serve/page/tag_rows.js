// One suggested label as people see it: name, probability as a bar, the words behind it.

import { h } from "./dom.js";
import { carrying } from "./marked_text.js";
import { percent, t } from "./words.js";

/** How likely a tag is, 0 to 1; models without probabilities give a share of the best score. */
export function strength(tag, best = 1) {
  if (tag.probability !== null && tag.probability !== undefined) return tag.probability;
  return best > 0 ? Math.max(0, Math.min(1, tag.score / best)) : 0;
}

export function shownName(tag) {
  return tag.name || tag.label;
}

/** The end of an id: what stands beside a name for those who know ids. */
export function shortId(label) {
  const end = label.replace(/[#/]+$/, "").split(/[#/]/).pop();
  return end || label;
}

export function shownStrength(tag) {
  return tag.probability === null || tag.probability === undefined ? tag.score.toFixed(2) : percent(tag.probability);
}

export function bar(share, kind = "") {
  return h("span", { class: `bar ${kind}`, "aria-hidden": "true", vars: { share: Math.max(0, Math.min(1, share)).toFixed(4) } }, h("span"));
}

/** The words that carried a label, strongest first, each once. */
export function wordsBehind(explained, most = 4) {
  const seen = new Set();
  const out = [];
  const spans = carrying(explained?.spans ?? []).sort((a, b) => b.weight - a.weight);
  for (const span of spans) {
    const word = span.word.toLocaleLowerCase();
    if (!seen.has(word)) out.push(span.word);
    seen.add(word);
  }
  return out.slice(0, most);
}

export function wordsLine(explained) {
  const words = wordsBehind(explained);
  if (words.length === 0) return null;
  return h("span", { class: "behind" }, h("span", { class: "only-heard" }, `${t("try.because")} `), words.join(" · "));
}
