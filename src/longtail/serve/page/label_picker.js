// Search for a label as you type: a text field with a list below it.

import { afterPause, announce, h, newId, show } from "./dom.js";
import { ask, inLanguage, modelPath } from "./server.js";
import { number, t } from "./words.js";
import { shortId, shownName } from "./tag_rows.js";

/** Search labels, with `concepts` "all" also concepts of the vocabulary that the model cannot suggest; the server finds
 *  beginnings of words in names, other names and ids. */
export function searchLabels(model, q, { limit = 12, offset = 0, concepts = "labels", signal } = {}) {
  return ask(modelPath(model, `/labels${inLanguage(model, { q, limit, offset, concepts })}`), { signal });
}

/** A name in which what was typed is set off, where it begins a word. */
export function nameWithMatch(name, typed) {
  const wanted = typed.trim();
  const at = wanted ? name.toLocaleLowerCase().indexOf(wanted.toLocaleLowerCase()) : -1;
  if (at < 0 || name.toLocaleLowerCase().length !== name.length) return [name];
  return [name.slice(0, at), h("b", null, name.slice(at, at + wanted.length)), name.slice(at + wanted.length)];
}

function optionOf(found, typed, id) {
  const name = shownName(found);
  const other = found.matched && found.matched !== name ? t("labels.also", { name: found.matched }) : null;
  const above = (found.broader ?? []).map(shownName).join(", ");
  return h("li", { role: "option", id, "aria-selected": "false", class: "option" },
    h("span", { class: "option-name" }, nameWithMatch(name, typed)),
    h("span", { class: "option-about" }, [found.suggested === false && t("labels.not-suggested"), other, above || shortId(found.label)].filter(Boolean).join(" · ")),
    found.rows !== undefined && found.rows !== null && h("span", { class: "option-rows", title: t("labels.rows", { n: found.rows }) }, number(found.rows)));
}

/** The field; `onPick` gets the label found. Returns the element and its input. */
export function labelPicker({ model, caption, hint = "", concepts = "labels", onPick, onLeave = null, hideCaption = false, without = () => false }) {
  const list = h("ul", { role: "listbox", class: "options", id: newId("options"), "aria-label": caption, hidden: true });
  const input = h("input", {
    type: "text", role: "combobox", autocomplete: "off", spellcheck: "false", placeholder: hint,
    "aria-expanded": "false", "aria-controls": list.id, "aria-autocomplete": "list",
  });
  let found = [];
  let at = -1;
  let asking = null;

  const close = () => {
    list.hidden = true;
    at = -1;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  };
  const point = (where) => {
    at = found.length ? (where + found.length) % found.length : -1;
    [...list.children].forEach((option, i) => option.setAttribute("aria-selected", String(i === at)));
    if (at < 0) return;
    input.setAttribute("aria-activedescendant", list.children[at].id);
    list.children[at].scrollIntoView({ block: "nearest" });
  };
  const pick = (where) => {
    const label = found[where];
    asking?.abort();
    search.cancel();
    input.value = "";
    close();
    if (label) onPick(label);
  };
  const search = afterPause(90, async () => {
    asking?.abort();
    asking = new AbortController();
    const typed = input.value;
    try {
      const answer = await searchLabels(model, typed, { concepts, signal: asking.signal });
      found = answer.labels.filter((one) => !without(one.label));
      show(list, found.map((one) => optionOf(one, typed, newId("option"))),
        found.length === 0 && h("li", { class: "option none", role: "option", "aria-disabled": "true", "aria-selected": "false" }, t("labels.nothing")));
      [...list.children].forEach((option, i) => option.addEventListener("pointerdown", (event) => {
        event.preventDefault();
        pick(i);
      }));
      list.hidden = false;
      input.setAttribute("aria-expanded", "true");
      announce(t("labels.found", { n: answer.total }));
      point(found.length ? 0 : -1);
    } catch (error) {
      if (error.name !== "AbortError") close();
    }
  });
  input.addEventListener("input", () => (input.value.trim() ? search() : (search.cancel(), close())));
  input.addEventListener("blur", () => {
    search.cancel();
    asking?.abort();
    close();
  });
  input.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      if (list.hidden) search();
      else point(at + (event.key === "ArrowDown" ? 1 : -1));
    } else if (event.key === "Enter") {
      event.preventDefault();
      if (!list.hidden && at >= 0) pick(at);
    } else if (event.key === "Escape") {
      event.stopPropagation();
      if (!list.hidden) close();
      else if (input.value) input.value = "";
      else onLeave?.();
    }
  });
  const element = h("div", { class: "picker" },
    h("label", { class: "field" }, h("span", { class: hideCaption ? "only-heard" : "caption" }, caption), input), list);
  return { element, input };
}
