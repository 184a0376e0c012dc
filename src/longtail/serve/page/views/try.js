// Try: a text on the left, its tags on the right, and in the text the words that carried each tag.

import { afterPause, announce, button, h, icon, newId, show } from "../dom.js";
import { copyButton, tagsAsCsv, tagsAsJson } from "../copying.js";
import { labelCard } from "../label_card.js";
import { labelPicker } from "../label_picker.js";
import { ask, modelFacts, modelPath, nameLanguage } from "../server.js";
import { draft, keep, recall } from "../settings.js";
import { bar, shownName, shownStrength, strength, wordsBehind, wordsLine } from "../tag_rows.js";
import { textEditor } from "../text_editor.js";
import { targetWords, thresholdFor, thresholdSlider } from "../threshold.js";
import { percent, t } from "../words.js";

const EXPLAINED_AT_MOST = 30;

/** Chips of labels with a search field: only these, or none of these. */
function labelSet({ model, caption, labels, changed }) {
  const chips = h("ul", { class: "chips" });
  const draw = () => show(chips, labels.map((one) => {
    const remove = () => {
      labels.splice(labels.indexOf(one), 1);
      draw();
      changed();
      picker.input.focus();
    };
    return h("li", { class: "chip" }, shownName(one), button("", remove, { kind: "bare tiny", icon: "cross", name: t("labels.remove", { name: shownName(one) }) }));
  }));
  const picker = labelPicker({
    model, caption, hint: t("labels.search-hint"), without: (label) => labels.some((one) => one.label === label),
    onPick: (one) => {
      labels.push(one);
      draw();
      changed();
    },
  });
  draw();
  return { element: h("div", { class: "label-set" }, picker.element, chips), draw };
}

class TryView {
  constructor(root, model) {
    this.root = root;
    this.model = model;
    this.facts = modelFacts(model);
    this.tags = [];
    this.explained = new Map();
    this.decide = "own"; // the model's decision, a target by its name, or "threshold"
    this.k = recall("k", 20);
    this.only = [];
    this.never = [];
    this.open = null; // the label whose details are shown
    this.asking = null;
    this.suggestSoon = afterPause(280, () => this.suggest());
  }

  render() {
    this.editor = textEditor({
      text: draft.text,
      changed: (text) => {
        draft.text = text;
        this.suggestSoon();
      },
      now: () => this.suggest(),
    });
    this.list = h("div", { class: "tag-lists" });
    this.count = h("p", { class: "tag-count soft" });
    this.copies = h("div", { class: "line copies", hidden: true },
      copyButton("JSON", () => tagsAsJson(this.given()), { name: t("try.copy-json") }),
      copyButton("CSV", () => tagsAsCsv(this.given()), { name: t("try.copy-csv") }));
    this.slider = thresholdSlider({ model: this.model, changed: (value) => this.moved(value) });
    const results = h("section", { class: "results", "aria-label": t("try.tags") },
      h("div", { class: "results-head" }, h("h2", null, t("try.tags")), this.count, this.copies),
      this.list);
    const decide = h("section", { class: "decide", "aria-label": t("try.decide") }, this.decideSelect(), this.slider.element, this.choices());
    show(this.root,
      h("h1", { class: "only-heard" }, t("try.nav")),
      h("div", { class: "split" }, h("div", { class: "left-side" }, this.editor.element, decide), results));
    if (draft.text) this.suggest();
    else this.draw();
    if (matchMedia("(min-width: 60rem)").matches) this.editor.area.focus({ preventScroll: true });
  }

  decideSelect() {
    const targets = this.facts.targets ?? [];
    this.select = h("select", {
      onchange: () => {
        this.decide = this.select.value;
        this.wanted = null;
        if (this.decide !== "threshold") this.pointSlider();
        this.suggest();
      },
    },
      h("option", { value: "own" }, t("try.own-decision")),
      targets.map((target) => h("option", { value: target.name, title: target.sentence }, targetWords(target))),
      h("option", { value: "threshold" }, t("try.own-threshold")));
    const k = h("select", {
      onchange: (event) => {
        this.k = Number(event.target.value);
        keep("k", this.k);
        this.suggest();
      },
    }, [10, 20, 50, 100].map((n) => h("option", { value: n, selected: n === this.k }, t("try.at-most", { n }))));
    return h("div", { class: "line decide-line" },
      h("label", { class: "field grow" }, h("span", { class: "caption" }, t("try.decided-by")), this.select),
      h("label", { class: "field" }, h("span", { class: "caption" }, t("try.shown")), k));
  }

  /** Let the slider stand where the chosen decision draws its line, so that its precision can be read. */
  pointSlider() {
    if (!this.slider.points) return;
    const at = this.decide === "own" ? null : thresholdFor(this.slider.points, this.decide);
    this.slider.set(at ?? this.slider.default ?? 0.5);
  }

  choices() {
    const changed = () => {
      this.noteChoices();
      this.suggest();
    };
    this.onlySet = labelSet({ model: this.model, caption: t("try.only"), labels: this.only, changed });
    this.neverSet = labelSet({ model: this.model, caption: t("try.never"), labels: this.never, changed });
    this.choiceNote = h("span", { class: "badge", hidden: true });
    return h("details", { class: "choices" },
      h("summary", null, t("try.choices"), " ", this.choiceNote), this.onlySet.element, this.neverSet.element);
  }

  noteChoices() {
    const n = this.only.length + this.never.length;
    this.choiceNote.hidden = n === 0;
    this.choiceNote.textContent = String(n);
  }

  moved(value) {
    if (value !== null) {
      this.wanted = null;
      this.decide = "threshold";
      this.select.value = "threshold";
    }
    this.draw();
  }

  isGiven(tag) {
    if (this.wanted) return this.wanted.has(tag.label);
    return this.byThreshold() ? tag.probability >= this.slider.value : tag.assigned;
  }

  /** Whether the line is drawn at the slider: by the reader, or by a target whose threshold is known. */
  byThreshold() {
    if (!this.slider.points || this.decide === "own") return false;
    return this.decide === "threshold" || thresholdFor(this.slider.points, this.decide) !== null;
  }

  given() {
    return this.tags.filter((tag) => this.isGiven(tag));
  }

  question() {
    const question = { text: draft.text, k: this.k, language: nameLanguage(this.model) };
    if (this.only.length) question.allow = this.only.map((one) => one.label);
    if (this.never.length) question.deny = this.never.map((one) => one.label);
    return question;
  }

  async suggest() {
    this.suggestSoon.cancel();
    this.asking?.abort();
    this.editor.mark(null);
    if (!draft.text.trim()) {
      this.tags = [];
      this.draw();
      return;
    }
    const { signal } = (this.asking = new AbortController());
    this.list.setAttribute("aria-busy", "true");
    try {
      const question = this.question();
      const answer = await ask(modelPath(this.model, "/suggest"), { json: question, signal });
      this.wanted = await this.tagsForTarget(question, signal);
      this.tags = answer.results[0].tags;
      this.unknown = answer.results[0].known_words === false;
      this.explained = new Map();
      this.draw();
      announce(t("try.given", { n: this.given().length }));
      this.explain(signal);
    } catch (error) {
      if (error.name === "AbortError") return;
      show(this.list, h("p", { class: "notice bad", role: "alert" }, error.status === 0 ? t("offline") : error.message));
    } finally {
      if (!signal.aborted) this.list.removeAttribute("aria-busy");
    }
  }

  /** The labels that the server gives for a target whose threshold it alone knows; null for others. */
  async tagsForTarget(question, signal) {
    if (this.decide === "own" || this.decide === "threshold" || this.byThreshold()) return null;
    const answer = await ask(modelPath(this.model, "/suggest"), { json: { ...question, target: this.decide }, signal });
    return new Set(answer.results[0].tags.map((tag) => tag.label));
  }

  async explain(signal) {
    const labels = this.tags.slice(0, EXPLAINED_AT_MOST).map((tag) => tag.label);
    if (labels.length === 0) return;
    try {
      const facts = await ask(modelPath(this.model, "/explain"), { json: { text: draft.text, labels, k: labels.length }, signal });
      for (const one of facts.predicted ?? facts.labels ?? []) this.explained.set(one.id ?? one.label, one);
      for (const row of this.list.querySelectorAll(".tag")) this.addWords(row);
    } catch {
      // tags without the words behind them are still tags
    }
  }

  addWords(row) {
    const words = wordsLine(this.explained.get(row.dataset.label));
    row.querySelector(".behind")?.remove();
    if (words) row.querySelector(".tag-name").after(words);
  }

  draw() {
    const given = this.given();
    const rest = this.tags.filter((tag) => !this.isGiven(tag));
    this.copies.hidden = given.length === 0;
    this.count.textContent = this.tags.length ? t("try.given", { n: given.length }) : "";
    const best = this.tags[0]?.score ?? 1;
    const lists = [];
    if (given.length) lists.push(h("ol", { class: "tags given" }, given.map((tag) => this.row(tag, best, true))));
    else if (this.tags.length) lists.push(h("p", { class: "empty" }, t("try.none-given")));
    if (rest.length) {
      lists.push(h("h3", { class: "divider" }, h("span", null, this.byThreshold() ? t("try.below", { threshold: percent(this.slider.value) }) : t("try.not-given"))));
      lists.push(h("ol", { class: "tags", start: given.length + 1 }, rest.map((tag) => this.row(tag, best, false))));
    }
    if (this.tags.length === 0) lists.push(this.nothing());
    const focused = document.activeElement?.closest?.(".tag")?.dataset.label;
    show(this.list, lists);
    for (const row of this.list.querySelectorAll(".tag")) {
      this.addWords(row);
      if (row.dataset.label === focused) row.querySelector(".tag-head").focus({ preventScroll: true });
    }
  }

  nothing() {
    if (!draft.text.trim()) return h("p", { class: "empty" }, t("try.empty"));
    return h("p", { class: "empty" }, this.unknown ? t("try.unknown-words") : this.asking ? t("try.no-tags") : t("loading"));
  }

  row(tag, best, given) {
    const more = h("div", { class: "tag-more", id: newId("more"), hidden: true });
    const head = h("button", { type: "button", class: "tag-head", "aria-expanded": "false", "aria-controls": more.id },
      h("span", { class: "tag-name" }, shownName(tag)),
      h("span", { class: "tag-share" }, shownStrength(tag)),
      bar(strength(tag, best)),
      icon("down"));
    const row = h("li", { class: `tag ${given ? "is-given" : ""}`, "data-label": tag.label }, head, more);
    const mark = () => this.editor.mark(this.explained.get(tag.label)?.spans ?? null);
    const unmark = () => {
      const focused = document.activeElement?.closest?.(".tag")?.dataset.label;
      this.editor.mark(this.explained.get(focused ?? this.open)?.spans ?? null);
    };
    row.addEventListener("pointerenter", mark);
    row.addEventListener("pointerleave", unmark);
    head.addEventListener("focus", mark);
    head.addEventListener("blur", unmark);
    head.addEventListener("click", () => this.toggle(tag, head, more));
    if (tag.label === this.open) this.openMore(tag, head, more);
    return row;
  }

  toggle(tag, head, more) {
    const opening = more.hidden;
    const other = this.list.querySelector('.tag-head[aria-expanded="true"]');
    if (other && other !== head) {
      other.setAttribute("aria-expanded", "false");
      other.nextElementSibling.hidden = true;
    }
    this.open = opening ? tag.label : null;
    if (opening) this.openMore(tag, head, more);
    else {
      head.setAttribute("aria-expanded", "false");
      more.hidden = true;
    }
    this.editor.mark(this.explained.get(tag.label)?.spans ?? null);
  }

  openMore(tag, head, more) {
    head.setAttribute("aria-expanded", "true");
    more.hidden = false;
    const draw = (label) => {
      const leaveOut = () => {
        this.never.push({ label, name: label === tag.label ? tag.name : null });
        this.neverSet.draw();
        this.noteChoices();
        this.open = null;
        this.suggest();
      };
      show(more,
        label !== tag.label && button(t("labels.back-to", { name: shownName(tag) }), () => draw(tag.label), { kind: "small bare" }),
        label === tag.label && this.reasons(tag),
        labelCard({
          model: this.model, label, go: draw, heading: "h3",
          more: [
            label === tag.label && button(t("try.leave-out"), leaveOut, { kind: "small" }),
            h("a", { class: "button small", href: `#/labels/${encodeURIComponent(label)}` }, t("try.in-labels"))],
        }));
    };
    draw(tag.label);
  }

  reasons(tag) {
    const explained = this.explained.get(tag.label);
    const words = wordsBehind(explained, 8);
    if (words.length === 0) return null;
    return h("p", { class: "reasons" }, h("span", { class: "caption" }, t("try.because")), " ", words.map((word) => [h("mark", { vars: { weight: 0.6 } }, word), " "]));
  }
}

export function render(root, { model }) {
  const view = new TryView(root, model);
  view.render();
  return () => {
    view.asking?.abort();
    view.suggestSoon.cancel();
    view.editor.leave();
  };
}

