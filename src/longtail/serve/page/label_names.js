// Names of labels that the server gave as ids only, asked for once.

import { ask, labelPath } from "./server.js";
import { shortId } from "./tag_rows.js";

const names = new Map();

/** An element that shows a label by its name, as soon as it is known. */
export function namedLabel(model, one, element) {
  if (one.name) {
    element.textContent = one.name;
    return element;
  }
  const key = `${model} ${one.label}`;
  element.textContent = shortId(one.label);
  if (!names.has(key)) names.set(key, ask(labelPath(model, one.label)).then((facts) => facts.name || null, () => null));
  names.get(key).then((name) => name && (element.textContent = name));
  return element;
}
