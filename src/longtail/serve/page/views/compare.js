// Compare: one text, two models, and what they see differently.

import { afterPause, announce, field, h, show } from "../dom.js";
import { ask, known, modelPath, nameLanguage } from "../server.js";
import { draft, keep, recall } from "../settings.js";
import { bar, shownName, shownStrength, strength } from "../tag_rows.js";
import { textEditor } from "../text_editor.js";
import { t } from "../words.js";

const SHOWN = 15;

/** The labels of two answers side by side: both give it, only the first, only the second, neither. */
export function pairUp(left, right) {
  const pairs = new Map();
  for (const tag of left) pairs.set(tag.label, { tag, left: tag, right: null });
  for (const tag of right) {
    const pair = pairs.get(tag.label);
    if (pair) pair.right = tag;
    else pairs.set(tag.label, { tag, left: null, right: tag });
  }
  const likely = ({ left: a, right: b }) => Math.max(a?.probability ?? a?.score ?? -Infinity, b?.probability ?? b?.score ?? -Infinity);
  const groups = { both: [], left: [], right: [], neither: [] };
  for (const pair of [...pairs.values()].sort((a, b) => likely(b) - likely(a))) {
    const [a, b] = [pair.left?.assigned ?? false, pair.right?.assigned ?? false];
    groups[a && b ? "both" : a ? "left" : b ? "right" : "neither"].push(pair);
  }
  return groups;
}

function side(tag, which) {
  const share = h("span", null, tag ? shownStrength(tag) : "–");
  const drawn = bar(tag ? strength(tag) : 0);
  return h("span", { class: `side ${which} ${tag?.assigned ? "on" : ""}` }, which === "left" ? [drawn, share] : [share, drawn]);
}

function modelChoice(caption, which, chosen, changed) {
  const options = known.models.map(({ id, title }) => h("option", { value: id, selected: id === chosen }, title || id));
  return field(h("span", { class: `swatch ${which}` }, caption), h("select", { onchange: (event) => changed(event.target.value) }, options));
}

export function render(root, { model }) {
  const ids = known.models.map(({ id }) => id);
  const kept = recall("compared", []);
  const chosen = kept.length === 2 && kept.every((id) => ids.includes(id)) ? kept : [model, ids.find((id) => id !== model) ?? model];
  const results = h("div", { class: "pair-lists" });
  let asking = null;

  const draw = (groups) => {
    const count = groups.left.length + groups.right.length;
    const list = (key, pairs, words) => pairs.length > 0 && [
      h("h2", { class: "divider" }, h("span", null, words)),
      h("ul", { class: `pairs ${key}` }, pairs.map((pair) => h("li", { class: key === "both" ? "same" : "" },
        side(pair.left, "left"),
        h("span", { class: "pair-name" }, shownName(pair.tag)),
        side(pair.right, "right"))))];
    const titles = chosen.map((id) => known.models.find((one) => one.id === id)?.title || id);
    show(results,
      h("p", { class: "soft" }, count ? t("compare.differ", { n: count }) : t("compare.agree")),
      list("left", groups.left, t("compare.only", { model: titles[0] })),
      list("right", groups.right, t("compare.only", { model: titles[1] })),
      list("both", groups.both, t("compare.both")),
      list("neither", groups.neither.slice(0, 8), t("compare.neither")));
    announce(count ? t("compare.differ", { n: count }) : t("compare.agree"));
  };

  const compare = async () => {
    soon.cancel();
    asking?.abort();
    if (!draft.text.trim()) {
      show(results, h("p", { class: "empty" }, t("compare.empty")));
      return;
    }
    const { signal } = (asking = new AbortController());
    try {
      const answers = await Promise.all(chosen.map((id) => ask(modelPath(id, "/suggest"), { json: { text: draft.text, k: SHOWN, language: nameLanguage(id) }, signal })));
      draw(pairUp(...answers.map((answer) => answer.results[0].tags)));
    } catch (error) {
      if (error.name === "AbortError") return;
      show(results, h("p", { class: "notice bad", role: "alert" }, error.status === 0 ? t("offline") : error.message));
    }
  };
  const soon = afterPause(280, compare);
  const choose = (at) => (id) => {
    chosen[at] = id;
    keep("compared", chosen);
    compare();
  };
  const editor = textEditor({
    text: draft.text,
    changed: (text) => {
      draft.text = text;
      soon();
    },
    now: compare,
  });
  editor.element.classList.add("compare-text");
  show(root,
    h("div", { class: "view-head" }, h("h1", null, t("compare.nav")), h("p", null, t("compare.about"))),
    known.models.length < 2 && h("p", { class: "notice" }, t("compare.one-model")),
    h("div", { class: "versus" },
      editor.element,
      h("div", { class: "versus-models" },
        modelChoice(t("compare.first"), "left", chosen[0], choose(0)), h("span", { class: "against", "aria-hidden": "true" }, "↔"), modelChoice(t("compare.second"), "right", chosen[1], choose(1))),
      results));
  compare();
  return () => {
    asking?.abort();
    soon.cancel();
    editor.leave();
  };
}
