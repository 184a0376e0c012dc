// What the reader chose, kept in the browser: names of models and settings, never texts.

import { known, modelFacts } from "./server.js";

export function recall(name, otherwise = null) {
  try {
    const kept = localStorage.getItem(`longtail.${name}`);
    return kept === null ? otherwise : JSON.parse(kept);
  } catch {
    return otherwise;
  }
}

export function keep(name, value) {
  try {
    localStorage.setItem(`longtail.${name}`, JSON.stringify(value));
  } catch {
    // a browser that keeps nothing, or has no more room
  }
}

let model = recall("model");

export function chosenModel() {
  return modelFacts(model) ? model : known.defaultModel ?? known.models[0]?.id;
}

export function chooseModel(id) {
  model = id;
  keep("model", id);
}

/** The text that Try and Compare share; gone when the page is closed. */
export const draft = { text: "" };
