// Elements from plain values. Text is only ever set as text, so nothing a model or a file says can become markup.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "vars") for (const [key, v] of Object.entries(value)) element.style.setProperty(`--${key}`, v);
    else if (name === "value") element.value = value;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  add(element, children);
  return element;
}

/** Append children: elements, strings, numbers, lists of them; nothing for null and false. */
export function add(element, children) {
  for (const child of [children].flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return element;
}

/** An HTML element: h("p", { class: "soft", onclick }, "text", other). */
export function h(tag, properties, ...children) {
  return fill(document.createElement(tag), properties, children);
}

/** An SVG element. */
export function svg(tag, properties, ...children) {
  return fill(document.createElementNS(SVG, tag), properties, children);
}

/** Replace what an element holds. */
export function show(element, ...children) {
  element.replaceChildren();
  return add(element, children);
}

let lastId = 0;

/** An id that no other element of the page has. */
export function newId(stem = "e") {
  lastId += 1;
  return `${stem}-${lastId}`;
}

/** A label around its control, as a small caption above it. */
export function field(caption, control, ...more) {
  return h("label", { class: "field" }, h("span", { class: "caption" }, caption), control, ...more);
}

const ICONS = {
  copy: "M8 8h10v12H8zM6 16H4V4h10v2",
  check: "M5 12.5l4.5 4.5L19 7.5",
  cross: "M6 6l12 12M18 6L6 18",
  plus: "M12 5v14M5 12h14",
  undo: "M9 7L4 12l5 5M4 12h10a6 6 0 0 1 6 6",
  file: "M6 3h8l4 4v14H6zM14 3v4h4",
  sun: "M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8M12 2v3M12 19v3M2 12h3M19 12h3M5 5l2 2M17 17l2 2M5 19l2-2M17 7l2-2",
  moon: "M20 14A8 8 0 0 1 10 4a8 8 0 1 0 10 10z",
  auto: "M12 4a8 8 0 1 0 0 16zM12 4a8 8 0 0 1 0 16",
  next: "M9 6l6 6-6 6",
  down: "M6 9l6 6 6-6",
  download: "M12 4v11M7 11l5 5 5-5M5 20h14",
  user: "M12 4a4 4 0 1 0 0 8 4 4 0 0 0 0-8M4 21c1-5 4-7 8-7s7 2 8 7",
  pencil: "M4 20l1-5L16 4l4 4L9 19z",
};

/** A line drawing that only decorates; the control around it has the words. */
export function icon(name) {
  return svg(
    "svg",
    { class: "icon", viewBox: "0 0 24 24", "aria-hidden": "true", focusable: "false" },
    svg("path", { d: ICONS[name] }),
  );
}

/** A button; `name` is read to those who cannot see an icon alone. */
export function button(words, onclick, { kind = "", icon: drawing = null, name = null, ...more } = {}) {
  return h(
    "button",
    { type: "button", class: `button ${kind}`, onclick, "aria-label": name, title: name, ...more },
    drawing && icon(drawing),
    words && h("span", null, words),
  );
}

/** A function that runs once things have been quiet for some milliseconds. */
export function afterPause(milliseconds, work) {
  let timer = 0;
  const later = (...values) => {
    clearTimeout(timer);
    timer = setTimeout(() => work(...values), milliseconds);
  };
  later.cancel = () => clearTimeout(timer);
  return later;
}

/** Say something to people who listen to the page. */
export function announce(sentence, { urgent = false } = {}) {
  const region = document.getElementById(urgent ? "alerts" : "announcements");
  region.textContent = "";
  setTimeout(() => (region.textContent = sentence), 30);
}
