// Names of labels that the server gave as ids only, asked for once.

import { ask, labelPath } from "./server.js";
import { shortId } from "./tag_rows.js";

const names = new Map();

/** The name of a label; null where it has none. */
export function nameOf(model, label) {
  const key = `${model} ${label}`;
  if (!names.has(key)) names.set(key, ask(labelPath(model, label)).then((facts) => facts.name || null, () => null));
  return names.get(key);
}

/** An element that shows a label by its name, as soon as it is known. */
export function namedLabel(model, one, element) {
  if (one.name) {
    element.textContent = one.name;
    return element;
  }
  element.textContent = shortId(one.label);
  nameOf(model, one.label).then((name) => name && (element.textContent = name));
  return element;
}
