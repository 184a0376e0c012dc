// Models: what is served, loading anew, and making a new model of what was reviewed.

import { announce, button, h, show } from "../dom.js";
import { copyButton } from "../copying.js";
import { scrolling } from "../plots.js";
import { ask, hasReviews, known, loadModels, may, modelName, modelPath } from "../server.js";
import { points, updateWords } from "../update_words.js";
import { moment, number, percent, t } from "../words.js";

const LOOK_EVERY = 1000;

function fact(name, value) {
  return h("div", null, h("dt", { class: "caption" }, name), h("dd", null, value));
}

function modelCard(model, { changed }) {
  const note = h("div", { role: "status" });
  const reload = button(t("models.reload"), async () => {
    reload.disabled = true;
    try {
      const answer = await ask(modelPath(model.id, "/reload"), { method: "POST" });
      await loadModels();
      const same = answer.digest === model.digest;
      changed(model.id, t(same ? "models.same" : "models.reloaded", { name: model.title || model.id }));
    } catch (error) {
      show(note, h("p", { class: "notice bad" }, error.status === 0 ? t("offline") : error.message));
      reload.disabled = false;
    }
  }, { kind: "small" });
  const short = model.digest.replace(/^sha256:/, "").slice(0, 12);
  return h("article", { class: "panel model-card", "data-model": model.id },
    h("header", null, h("h2", null, model.title || model.id), model.id === known.defaultModel && h("span", { class: "badge" }, t("models.default")), model.title && model.title !== model.id && h("code", { class: "soft" }, model.id), may("admin") && reload),
    model.problem && h("p", { class: "notice bad" }, model.problem),
    h("dl", { class: "facts" },
      fact(t("models.method"), model.method),
      fact(t("models.labels"), number(model.n_labels)),
      model.n_rows !== null && model.n_rows !== undefined && fact(t("models.rows"), number(model.n_rows)),
      fact(t("models.calibrated"), model.calibrated ? t("yes") : t("no")),
      fact(t("models.vocabulary"), model.vocabulary ? t("models.concepts", { name: model.vocabulary.title, n: model.vocabulary.n_concepts }) : "–"),
      fact(t("models.loaded"), moment(model.loaded_at)),
      fact(t("models.digest"), h("span", { class: "id-line" }, h("code", { title: model.digest }, short), copyButton("", () => model.digest, { kind: "bare small", name: t("models.copy-digest") })))),
    note);
}

function comparison(facts) {
  if (!facts) return null;
  const rows = [[t("models.metric"), facts.before, facts.after], ...Object.entries(facts.precision_at ?? {}).map(([name, one]) => [name.toUpperCase(), one.before, one.after])];
  return scrolling(t("models.comparison"), h("table", null,
    h("caption", { class: "only-heard" }, t("models.comparison")),
    h("thead", null, h("tr", null, h("th", { scope: "col" }, t("models.on-rows", { n: facts.rows })), h("th", { scope: "col", class: "number" }, t("models.before")), h("th", { scope: "col", class: "number" }, t("models.after")), h("th", { scope: "col", class: "number" }, t("models.change")))),
    h("tbody", null, rows.map(([name, before, after]) => h("tr", null, h("td", null, name), h("td", { class: "number" }, percent(before, 1)), h("td", { class: "number" }, percent(after, 1)), h("td", { class: "number" }, points(after - before)))))));
}

/** Making a new model of the decisions, with progress and what it came to. */
class Update {
  constructor(model, changed) {
    this.model = model;
    this.changed = changed;
    this.timer = 0;
    this.element = h("section", { class: "panel update", "aria-label": t("models.update") });
  }

  async look() {
    let facts;
    try {
      facts = await ask(`/review/update?${new URLSearchParams({ model: this.model })}`);
    } catch (error) {
      this.draw({ state: "unknown" }, error.status === 0 ? t("offline") : error.message);
      return;
    }
    const ended = this.state === "running" && facts.state !== "running";
    this.state = facts.state;
    this.draw(facts);
    if (ended) {
      announce(updateWords(facts) || t(`models.update.${facts.state}`), { urgent: facts.state === "failed" });
      if (facts.swapped) {
        await loadModels();
        this.changed();
      }
    }
    if (facts.state === "running") this.timer = setTimeout(() => this.look(), LOOK_EVERY);
  }

  async start() {
    try {
      await ask("/review/update", { json: { model: this.model } });
    } catch (error) {
      this.draw({ state: "unknown" }, error.status === 0 ? t("offline") : error.message);
      return;
    }
    announce(t("models.update-begun"));
    this.look();
  }

  async putBack() {
    try {
      await ask("/review/put-back", { method: "POST" });
      await ask(modelPath(this.model, "/reload"), { method: "POST" });
      await loadModels();
      this.changed();
      this.draw({ state: "back", swapped: true, sentence: t("models.is-back") });
      announce(t("models.is-back"));
    } catch (error) {
      this.draw({ state: "unknown" }, error.status === 0 ? t("offline") : error.message);
    }
  }

  draw(facts, problem = null) {
    const running = facts.state === "running";
    const go = button(t("models.update-start"), () => this.start(), { kind: "main" });
    go.disabled = running;
    show(this.element,
      h("h2", null, t("models.update")),
      h("p", { class: "soft" }, t("models.update-about"), known.models.length > 1 && ` ${t("models.update-of", { name: modelName(this.model) })}`),
      problem && h("p", { class: "notice bad", role: "alert" }, problem),
      running && h("div", null, h("progress", { max: facts.total || 1, value: facts.total ? facts.done : null, "aria-label": t("models.update") }), h("p", { class: "soft" }, facts.stage)),
      !running && facts.state !== "idle" && facts.sentence && h("p", { class: `notice ${facts.state === "failed" ? "bad" : facts.swapped ? "good" : ""}` }, updateWords(facts)),
      !running && comparison(facts.comparison),
      h("div", { class: "line" }, go, !running && facts.swapped && facts.backup && button(t("models.put-back"), () => this.putBack())));
  }
}

export function render(root, { model }) {
  const cards = h("div", { class: "model-cards" });
  const note = h("div", { role: "status" });
  const changed = (id, sentence) => {
    drawCards();
    show(note, sentence && h("p", { class: "notice good" }, sentence));
  };
  const drawCards = () => show(cards, known.models.map((one) => modelCard(one, { changed })));
  const update = hasReviews() && may("admin") ? new Update(model, () => drawCards()) : null;
  show(root, h("div", { class: "view-head" }, h("h1", null, t("models.nav")), h("p", null, t("models.about"))), note, cards, update && update.element);
  drawCards();
  update?.look();
  return () => clearTimeout(update?.timer);
}
