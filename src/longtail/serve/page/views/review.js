// Review: one text after the other; accept, reject and add labels by key.

import { announce, button, h, newId, show } from "../dom.js";
import { labelCard } from "../label_card.js";
import { labelPicker } from "../label_picker.js";
import { nameOf } from "../label_names.js";
import { markedText } from "../marked_text.js";
import { outbox } from "../outbox.js";
import { ask, events, modelPath, reviewedWords } from "../server.js";
import { keep, recall } from "../settings.js";
import { openSignIn } from "../sign_in.js";
import { bar, shownName, shownStrength, strength } from "../tag_rows.js";
import { moment, t } from "../words.js";

const ORDERS = ["mixed", "uncertain", "suspect", "control", "newest"];
const FETCHED = 8;
const LONGEST_WAIT = 2000; // for decisions on their way, before more rows are asked for
const RETRY_EVERY = 5000;
const KEYS = [
  ["j / ↓", "next"], ["k / ↑", "before"], ["a", "accept"], ["r", "reject"], ["+", "add"], ["u", "undo"],
  ["↵", "done"], ["s", "skip"], ["g", "guideline"], ["?", "help"],
];

/** The labels to judge in a row: given ones and suggestions, with what this person has decided. */
export function candidatesOf(item) {
  const candidates = new Map();
  const take = (one, more) => {
    const tag = typeof one === "string" ? { label: one } : one;
    candidates.set(tag.label, { ...candidates.get(tag.label), ...tag, ...more });
  };
  for (const tag of item.suggestions ?? []) take(tag, { suggested: true });
  for (const tag of item.labels ?? []) take(tag, { given: true });
  const undone = new Set((item.decided ?? []).map((one) => one.undoes).filter((number) => number !== null && number !== undefined));
  for (const one of item.decided ?? []) {
    if (undone.has(one.decision) || !["accept", "reject", "add"].includes(one.verdict)) continue;
    take({ label: one.label, name: one.name ?? candidates.get(one.label)?.name }, { verdict: one.verdict, stamp: one });
  }
  return [...candidates.values()];
}

class ReviewView {
  constructor(root, model) {
    this.root = root;
    this.model = model;
    this.order = recall("order", "mixed");
    this.items = [];
    this.at = 0; // the row shown
    this.left = 0;
    this.withOthers = 0; // of those left, how many others have open
    this.asked = 0; // counts the questions for rows, so that the last one alone is heard
    this.asking = false;
    this.timer = 0;
    this.cursor = 0;
    this.past = []; // what was decided in this visit, the last at the end
    this.finished = new Set();
    this.box = outbox();
    this.spans = new Map();
    this.keydown = (event) => this.key(event);
    this.changed = () => this.drawOutbox();
    this.stored = (event) => this.noteStored(event.detail);
    this.back = () => this.failed && this.load();
  }

  async render() {
    this.banner = h("div", { class: "outbox-part", role: "status" });
    this.counter = h("p", { class: "left-over soft" });
    this.body = h("div");
    const orders = h("select", {
      onchange: (event) => {
        this.order = event.target.value;
        keep("order", this.order);
        this.anew();
      },
    }, ORDERS.map((order) => h("option", { value: order, selected: order === this.order }, t(`review.order.${order}`))));
    show(this.root,
      h("div", { class: "review-bar" }, h("h1", null, t("review.nav")),
        h("label", { class: "line" }, h("span", { class: "caption" }, t("review.order")), orders),
        reviewedWords(this.model) && h("p", { class: "soft small" }, reviewedWords(this.model)),
        this.counter, button("?", () => this.help(), { kind: "small", name: t("review.help") })),
      this.banner, this.body);
    document.addEventListener("keydown", this.keydown);
    this.box.addEventListener("change", this.changed);
    this.box.addEventListener("stored", this.stored);
    events.addEventListener("session", this.back);
    this.drawOutbox();
    this.box.flush();
    await this.load();
  }

  leave() {
    document.removeEventListener("keydown", this.keydown);
    this.box.removeEventListener("change", this.changed);
    this.box.removeEventListener("stored", this.stored);
    events.removeEventListener("session", this.back);
    clearTimeout(this.timer);
    this.asked += 1;
  }

  get item() {
    return this.items[this.at] ?? null;
  }

  /** Begin with the first row of the order; texts that were skipped come again. */
  anew() {
    this.items = [];
    this.at = 0;
    return this.load();
  }

  async load() {
    const turn = (this.asked += 1);
    this.asking = true;
    clearTimeout(this.timer);
    if (this.item === null) this.draw();
    try {
      await this.box.settled(LONGEST_WAIT); // what is done is not handed out again
      const waiting = this.box.mine().filter((entry) => entry.kind === "done" && this.finished.has(entry.item)).length;
      const query = new URLSearchParams({ model: this.model, order: this.order, limit: FETCHED });
      const answer = await ask(`/review/queue?${query}`);
      if (turn !== this.asked) return;
      this.asking = false;
      const have = new Set([...this.items.map((item) => item.id), ...this.finished]);
      const fresh = answer.items.filter((item) => !have.has(item.id)).map((item) => ({ ...item, candidates: candidatesOf(item) }));
      const wasEmpty = this.item === null;
      this.items.push(...fresh);
      this.left = Math.max(0, answer.left - waiting);
      this.withOthers = answer.with_others ?? 0;
      this.failed = null;
      if (wasEmpty) this.open(this.at);
      else this.drawCounter();
    } catch (error) {
      if (turn !== this.asked) return;
      this.asking = false;
      this.failed = error;
      if (error.passing) this.timer = setTimeout(() => this.load(), RETRY_EVERY);
      if (this.item === null) this.draw();
    }
  }

  open(at) {
    this.at = Math.max(0, at);
    this.cursor = Math.max(0, (this.item?.candidates ?? []).findIndex((one) => !one.verdict));
    this.spans = new Map();
    this.draw();
    if (this.item) {
      this.explain(this.item, this.item.candidates.filter((one) => one.suggested).map((one) => one.label));
      this.nameAll(this.item);
      this.focusCursor();
      if (this.at > 0 && matchMedia("(max-width: 60rem)").matches) scrollTo(0, 0);
    }
  }

  /** Ask for names of labels that came without: given ones, which the server knows by id. */
  nameAll(item) {
    for (const candidate of item.candidates.filter((one) => !one.name)) {
      nameOf(this.model, candidate.label).then((name) => {
        candidate.name = name;
        if (name && this.item === item) this.drawCandidates();
      });
    }
  }

  async explain(item, labels) {
    if (labels.length === 0) return;
    for (const label of labels) this.spans.set(label, []);
    try {
      const facts = await ask(modelPath(this.model, "/explain"), { json: { text: item.text, labels, k: labels.length } });
      if (this.item !== item) return;
      for (const one of facts.predicted ?? facts.labels ?? []) this.spans.set(one.id ?? one.label, one.spans ?? []);
      this.drawText();
    } catch {
      // a row can be judged without marks; labels that the model does not know have none
    }
  }

  // --- what people do ---------------------------------------------------------------------------------------------

  decide(candidate, verdict) {
    if (candidate.verdict === verdict) return;
    if (verdict === "accept" && candidate.verdict === "add") return;
    const was = { verdict: candidate.verdict ?? null, stamp: candidate.stamp ?? null, key: candidate.key ?? null };
    candidate.verdict = verdict;
    candidate.stamp = null;
    candidate.key = this.box.add({ kind: "decide", item: this.item.id, label: candidate.label, verdict });
    this.past.push({ item: this.item, candidate, was, key: candidate.key });
    announce(t(`review.said.${verdict}`, { name: shownName(candidate) }));
  }

  judge(verdict) {
    const candidate = this.item?.candidates[this.cursor];
    if (!candidate) return;
    this.decide(candidate, verdict);
    const next = this.item.candidates.findIndex((one, i) => i > this.cursor && !one.verdict);
    if (next >= 0) this.cursor = next;
    this.drawCandidates();
    this.focusCursor();
  }

  addLabel(found) {
    let candidate = this.item.candidates.find((one) => one.label === found.label);
    if (!candidate) {
      candidate = { label: found.label, name: found.name, added: true };
      this.item.candidates.push(candidate);
    }
    this.cursor = this.item.candidates.indexOf(candidate);
    this.decide(candidate, candidate.suggested || candidate.given ? "accept" : "add");
    this.drawCandidates();
    this.focusCursor();
  }

  undo() {
    const last = this.past.pop();
    if (!last) {
      announce(t("review.nothing-to-undo"));
      return;
    }
    if (last.done) {
      this.finished.delete(last.item.id);
      this.left += 1;
      this.box.undo(last.key, { item: last.item.id });
      announce(t("review.undone-row"));
      this.open(this.placeOf(last.item));
      return;
    }
    const { item, candidate, was, key } = last;
    this.box.undo(key, { item: item.id, label: candidate.label, number: candidate.key === key ? candidate.stamp?.decision ?? null : null });
    Object.assign(candidate, was);
    if (candidate.added && !candidate.verdict) item.candidates.splice(item.candidates.indexOf(candidate), 1);
    announce(t("review.undone", { name: shownName(candidate) }));
    if (item !== this.item) this.open(this.placeOf(item));
    this.cursor = Math.max(0, item.candidates.indexOf(candidate));
    this.drawCandidates();
    this.focusCursor();
  }

  /** Where a row stands; one of another order is put before the row shown. */
  placeOf(item) {
    const found = this.items.findIndex((one) => one.id === item.id);
    if (found >= 0) {
      this.items[found] = item;
      return found;
    }
    this.items.splice(this.at, 0, item);
    return this.at;
  }

  done() {
    if (!this.item) return;
    if (!this.finished.has(this.item.id)) {
      const key = this.box.add({ kind: "done", item: this.item.id });
      this.past.push({ item: this.item, done: true, key });
      this.finished.add(this.item.id);
      this.left = Math.max(0, this.left - 1);
    }
    this.step();
  }

  /** Go on to the next row; more are fetched before they are needed. */
  step() {
    const next = this.items.findIndex((item, i) => i > this.at && !this.finished.has(item.id));
    const waiting = this.items.filter((item, i) => i > this.at && !this.finished.has(item.id)).length;
    this.at = next < 0 ? this.items.length : next;
    this.asking ||= waiting <= 3;
    this.open(this.at);
    if (waiting <= 3) this.load();
  }

  move(by) {
    const n = this.item?.candidates.length ?? 0;
    if (n === 0) return;
    this.cursor = Math.max(0, Math.min(n - 1, this.cursor + by));
    this.drawCandidates();
    this.focusCursor();
  }

  key(event) {
    const { target } = event;
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (target.closest("input, textarea, select, dialog, [contenteditable]")) return;
    const onControl = target.closest("button, a, summary");
    if (onControl && (event.key === "Enter" || event.key === " ")) return;
    const does = {
      j: () => this.move(1), ArrowDown: () => this.move(1), k: () => this.move(-1), ArrowUp: () => this.move(-1),
      a: () => this.judge("accept"), r: () => this.judge("reject"),
      "+": () => this.picker?.input.focus(), n: () => this.picker?.input.focus(),
      u: () => this.undo(), Enter: () => this.done(), s: () => this.item && this.step(), g: () => this.showGuideline(), "?": () => this.help(),
    }[event.key];
    if (!does) return;
    event.preventDefault();
    does();
  }

  showGuideline() {
    this.about?.querySelector(".guideline button, .plain-link, .chip")?.focus();
    this.about?.scrollIntoView({ block: "nearest" });
  }

  help() {
    const close = () => dialog.close();
    const rows = KEYS.flatMap(([key, name]) => [
      h("dt", null, key.split(" / ").map((one, i) => [i > 0 && " ", h("kbd", null, one)])), h("dd", null, t(`review.key.${name}`))]);
    const dialog = h("dialog", { class: "dialog", "aria-labelledby": "keys-title", onclose: () => dialog.remove() },
      h("h2", { id: "keys-title" }, t("review.help")),
      h("dl", { class: "keys" }, rows),
      h("p", { class: "soft small" }, t("review.help-more")),
      h("div", { class: "line" }, button(t("close"), close, { kind: "main" })));
    document.body.append(dialog);
    dialog.showModal();
  }

  // --- what they see ----------------------------------------------------------------------------------------------

  drawCounter() {
    this.counter.textContent = this.item || this.left ? t("review.left", { n: this.left }) : "";
  }

  draw() {
    this.drawCounter();
    if (!this.item) {
      this.picker = null;
      if (this.asking && !this.failed) {
        show(this.body, h("p", { class: "empty" }, t("loading")));
        return;
      }
      const ended = this.failed ? [] : this.endWords();
      const words = this.failed && (this.failed.status === 0 ? t("offline") : this.failed.message);
      show(this.body, h("div", { class: "finished" },
        words && h("p", { class: "notice bad" }, words),
        ended.map((sentence) => h("p", null, sentence)),
        !this.failed && this.left === 0 && h("p", { class: "soft small" }, t("review.more-rows"), " ", h("code", null, "longtail review import")),
        this.failed?.status === 401 && button(t("sign-in.send"), () => openSignIn(), { kind: "main" }),
        button(t("review.look-again"), () => this.anew(), { kind: this.failed?.status === 401 ? "" : "main" }),
        this.past.length > 0 && button(t("review.key.undo"), () => this.undo(), { icon: "undo" })));
      return;
    }
    this.text = h("div", { class: "review-words" });
    this.list = h("ul", { class: "candidates", "aria-label": t("review.candidates") });
    this.about = h("div", { class: "panel about-label" });
    this.aboutOf = null;
    this.picker = labelPicker({
      model: this.model, caption: t("review.add"), hideCaption: true, hint: t("review.add-hint"), concepts: "all",
      without: (label) => this.item.candidates.some((one) => one.label === label && (one.verdict === "accept" || one.verdict === "add")),
      onPick: (found) => this.addLabel(found), onLeave: () => this.focusCursor(),
    });
    show(this.body,
      h("div", { class: "review-split" },
        h("div", { class: "review-side" },
          h("section", { class: "panel review-text", "aria-label": t("editor.label"), tabindex: "0" },
            h("p", { class: "why" }, h("span", { class: "badge" }, t(`review.reason.${this.item.why?.order ?? "newest"}`)), " ", this.why()),
            this.text),
          this.about),
        h("section", { class: "judge", "aria-label": t("review.candidates") },
          this.list,
          h("div", { class: "review-foot" }, this.picker.element,
            button(t("review.key.undo"), () => this.undo(), { icon: "undo", "aria-keyshortcuts": "u" }),
            button(t("review.done"), () => this.done(), { kind: "main", icon: "next", "aria-keyshortcuts": "Enter" })),
          h("p", { class: "key-hints" }, KEYS.slice(0, 7).map(([key, name]) => h("span", null, h("kbd", null, key.split(" / ")[0]), " ", t(`review.short.${name}`)))))));
    this.drawCandidates();
  }

  /** Why no row is shown, in sentences: all is done, or the rest is skipped, open with others, or in other orders. */
  endWords() {
    const skipped = this.items.filter((item) => !this.finished.has(item.id)).length;
    const rest = Math.max(0, this.left - skipped);
    const withOthers = this.order === "mixed" ? rest : Math.min(rest, this.withOthers); // "mixed" has all that is free
    const elsewhere = rest - withOthers;
    if (skipped + rest === 0) return [t("review.finished")];
    return [
      skipped > 0 && t("review.skipped", { n: skipped }),
      elsewhere > 0 && t("review.other-orders", { n: elsewhere }),
      withOthers > 0 && t("review.with-others", { n: withOthers }),
    ].filter(Boolean);
  }

  why() {
    const { order, sentence } = this.item.why ?? {};
    return order && order !== "suspect" ? t(`review.why.${order}`) : sentence ?? "";
  }

  drawText() {
    const current = this.item.candidates[this.cursor];
    if (current && !this.spans.has(current.label)) this.explain(this.item, [current.label]);
    show(this.text, markedText(this.item.text, this.spans.get(current?.label) ?? []));
  }

  drawCandidates() {
    show(this.list, this.item.candidates.map((candidate, i) => this.row(candidate, i)));
    if (this.item.candidates.length === 0) show(this.list, h("li", { class: "empty" }, t("review.no-candidates")));
    this.drawText();
    this.drawAbout();
  }

  row(candidate, i) {
    const current = i === this.cursor;
    const name = shownName(candidate);
    const say = (verdict) => () => {
      this.cursor = i;
      this.judge(verdict);
    };
    const yes = candidate.verdict === "accept" || candidate.verdict === "add";
    const no = candidate.verdict === "reject";
    const id = newId("candidate");
    return h("li", {
      class: `candidate ${no ? "rejected" : yes ? "accepted" : ""}`, tabindex: current ? "0" : "-1", "aria-current": current ? "true" : null, "aria-labelledby": id,
      "data-label": candidate.label,
      onclick: (event) => {
        if (event.target.closest("button")) return;
        this.cursor = i;
        this.drawCandidates();
        this.focusCursor();
      },
    },
      h("span", { class: "candidate-name", id }, h("span", null, name), h("span", { class: "only-heard" }, candidate.verdict ? t(`review.verdict.${candidate.verdict}`) : t("review.verdict.none"))),
      h("span", { class: "candidate-about" },
        candidate.score !== undefined && [bar(strength(candidate)), shownStrength(candidate)],
        candidate.given && h("span", { class: "badge" }, t("review.given")),
        candidate.added && h("span", { class: "badge" }, t("review.added")),
        this.stamp(candidate)),
      h("span", { class: "verdicts" },
        button("", say("accept"), { kind: "yes", icon: "check", name: t("review.accept-name", { name }), "aria-pressed": String(yes), tabindex: current ? null : "-1" }),
        button("", say("reject"), { kind: "no", icon: "cross", name: t("review.reject-name", { name }), "aria-pressed": String(no), tabindex: current ? null : "-1" })));
  }

  stamp(candidate) {
    if (!candidate.verdict) return null;
    if (candidate.key && this.box.waits(candidate.key)) {
      return h("span", { class: "stamp waiting" }, this.box.problem ? t("review.not-saved") : t("review.saving"));
    }
    const { stamp } = candidate;
    return stamp ? h("span", { class: "stamp" }, t("review.by", { who: stamp.reviewer, when: moment(stamp.at) })) : null;
  }

  drawAbout() {
    const current = this.item.candidates[this.cursor];
    if (!current) {
      show(this.about);
      this.about.hidden = true;
      return;
    }
    this.about.hidden = false;
    if (this.aboutOf === current.label) return;
    this.aboutOf = current.label;
    const open = (label) => show(this.about, labelCard({ model: this.model, label, go: open, heading: "h2" }));
    open(current.label);
  }

  focusCursor() {
    const row = this.list?.children[this.cursor];
    if (row?.matches(".candidate")) {
      row.focus({ preventScroll: true });
      row.scrollIntoView({ block: "nearest" });
    }
  }

  // --- saving -----------------------------------------------------------------------------------------------------

  noteStored({ entry, answer }) {
    for (const item of this.items) {
      for (const candidate of item.candidates) if (candidate.key === entry.key) candidate.stamp = answer;
    }
    if (this.item) this.refreshStamps();
  }

  refreshStamps() {
    this.item.candidates.forEach((candidate, i) => {
      const about = this.list?.children[i]?.querySelector(".candidate-about");
      const stamp = this.stamp(candidate);
      const shown = about?.querySelector(".stamp");
      if (shown) shown.remove();
      if (stamp) about?.append(stamp);
    });
  }

  drawOutbox() {
    const mine = this.box.mine().length;
    const others = this.box.others();
    const ofOthers = others.length > 0 && h("p", { class: "notice outbox" }, t("review.of-others", { n: others.length, who: [...new Set(others.map((one) => one.who))].join(", ") }));
    const problem = this.box.problem;
    this.banner.dataset.waiting = mine;
    if (this.item) this.refreshStamps();
    if (mine && problem) {
      const signedOut = problem.status === 401;
      const refused = !problem.passing && !signedOut;
      const why = signedOut ? t("review.sign-in", { n: mine }) : problem.status === 0 ? t("offline") : problem.message;
      show(this.banner, h("div", { class: "notice bad outbox" },
        h("span", null, t("review.unsaved", { n: mine }), " ", why, " ", problem.passing && t("review.retrying")),
        signedOut
          ? button(t("sign-in.send"), () => openSignIn(), { kind: "small" })
          : button(t("again"), () => this.box.flush({ again: true }), { kind: "small" }),
        refused && button(t("review.drop"), () => this.box.drop(), { kind: "small bad" })), ofOthers);
    } else show(this.banner, ofOthers);
  }
}

export async function render(root, { model }) {
  const view = new ReviewView(root, model);
  await view.render();
  return () => view.leave();
}

