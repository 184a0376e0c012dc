// Batch: a whole file of texts at once, with progress, and the tags as a file.

import { announce, button, field, h, icon, show } from "../dom.js";
import { refusalWords } from "../refusals.js";
import { Refusal, ask, modelFacts } from "../server.js";
import { guessColumns, sampleOf } from "../table_file.js";
import { takesFiles } from "../text_editor.js";
import { targetWords } from "../threshold.js";
import { number, percent, t } from "../words.js";

const LOOK_EVERY = 700; // milliseconds between two questions how far a batch is
const KEPT = "longtail.batches";

function rememberJobs(jobs) {
  try {
    sessionStorage.setItem(KEPT, JSON.stringify(jobs.map(({ id, file, model }) => ({ id, file, model }))));
  } catch {
    // they are shown until the page is closed then
  }
}

function rememberedJobs() {
  try {
    return JSON.parse(sessionStorage.getItem(KEPT) ?? "[]");
  } catch {
    return [];
  }
}

/** One batch that the server works on, or has done. */
class Job {
  constructor({ id, file, model }, { gone }) {
    this.id = id;
    this.file = file;
    this.model = model;
    this.gone = gone;
    this.element = h("article", { class: "panel job" });
    this.timer = 0;
    this.missed = 0;
  }

  async look() {
    try {
      this.facts = await ask(`/batches/${encodeURIComponent(this.id)}`);
      this.missed = 0;
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      if (error.status === 404) {
        this.gone(this);
        return;
      }
      this.missed += 1;
      this.problem = error.status === 0 ? t("offline") : error.message;
    }
    const was = this.state;
    this.state = this.facts?.state;
    this.draw();
    if (was === "running" && this.state === "done") announce(t("batch.done", { n: this.facts.done }));
    if (was === "running" && this.state === "failed") announce(this.facts.error ? refusalWords(0, this.facts.error) : t("batch.failed"), { urgent: true });
    if (this.state === "running" || this.facts === undefined) this.timer = setTimeout(() => this.look(), LOOK_EVERY * (1 + Math.min(this.missed, 8)));
  }

  async remove() {
    clearTimeout(this.timer);
    try {
      await ask(`/batches/${encodeURIComponent(this.id)}`, { method: "DELETE" });
    } catch (error) {
      if (error.status !== 404) {
        this.problem = error.status === 0 ? t("offline") : error.message;
        this.draw();
        return;
      }
    }
    announce(t(this.state === "running" ? "batch.cancelled" : "batch.removed"));
    this.gone(this);
  }

  draw() {
    const { state, done = 0, rows = null, error = null } = this.facts ?? {};
    const running = state === "running" || state === undefined;
    const far = rows ? t("batch.of", { done, rows }) : t("batch.rows", { n: done });
    const at = `/v1/longtail/batches/${encodeURIComponent(this.id)}/result`;
    const download = (format) => h("a", { class: "button", href: `${at}?format=${format}`, download: `${this.file.replace(/\.[^.]*$/, "")}.tags.${format}` }, icon("download"), h("span", null, format.toUpperCase()));
    show(this.element,
      h("div", { class: "job-head" }, h("h3", null, this.file), h("span", { class: "soft" }, state ? `${t(`batch.state.${state}`)} · ${far}` : t("loading"))),
      running && h("progress", { max: rows || 1, value: rows ? done : null, "aria-label": `${this.file}: ${far}` }),
      error && h("p", { class: "notice bad" }, refusalWords(0, error)),
      this.missed > 0 && h("p", { class: "notice bad" }, this.problem),
      h("div", { class: "line" },
        state === "done" && [download("csv"), download("jsonl")],
        running
          ? button(t("cancel"), () => this.remove(), { icon: "cross", kind: "small" })
          : button(t("batch.remove"), () => this.remove(), { kind: "small bare" })));
  }
}

/** The columns of a chosen file, and how to tag it. */
function chooseForm(file, sample, { model, send, stop }) {
  const guess = guessColumns(sample, modelFacts(model).columns);
  const calibrated = modelFacts(model).calibrated;
  const problem = h("p", { class: "notice bad", role: "alert", hidden: true });
  const choice = (chosen) => h("select", { onchange: () => preview() },
    sample.columns.map((name) => h("option", { value: name, selected: name === chosen }, name)));
  const text = choice(guess.texts[0]);
  const more = sample.columns.map((name) => h("input", { type: "checkbox", value: name, checked: guess.texts.slice(1).includes(name), onchange: () => preview() }));
  const chosenColumns = () => [text.value, ...more.filter((box) => box.checked && box.value !== text.value).map((box) => box.value)];
  const k = h("input", { type: "number", min: 1, max: 1000, value: 10 });
  const threshold = h("select", null,
    h("option", { value: "" }, t("batch.all")),
    modelFacts(model).targets.map((target) => h("option", { value: target.name }, targetWords(target))),
    calibrated && [0.9, 0.7, 0.5, 0.3, 0.1].map((one) => h("option", { value: one }, t("batch.from", { share: percent(one) }))));
  const table = h("div", { class: "preview", tabindex: "0", role: "group", "aria-label": t("batch.preview") });
  const preview = () => {
    const texts = chosenColumns();
    more.forEach((box) => { box.disabled = box.value === text.value; });
    const chosen = sample.columns.map((name) => (texts.includes(name) || name === guess.id ? "chosen" : ""));
    show(table, h("table", null,
      h("thead", null, h("tr", null, sample.columns.map((name, i) => h("th", { scope: "col", class: chosen[i] }, name)))),
      h("tbody", null, sample.rows.slice(0, 6).map((row) => h("tr", null, sample.columns.map((_, i) => h("td", { class: chosen[i] }, (row[i] ?? "").slice(0, 160))))))));
  };
  preview();
  const go = button(t("batch.start"), async () => {
    problem.hidden = true;
    go.disabled = true;
    try {
      await send({ columns: chosenColumns(), k: Number(k.value), threshold: threshold.value, format: sample.format });
    } catch (error) {
      problem.textContent = error.status === 0 ? t("offline") : error.message;
      problem.hidden = false;
    } finally {
      go.disabled = false;
    }
  }, { kind: "main" });
  return h("section", { class: "panel batch-form", "aria-label": file.name },
    h("div", { class: "job-head" }, h("h2", null, file.name), h("span", { class: "soft" }, `${sample.format.toUpperCase()} · ${number(file.size / 1024)} kB`)),
    h("div", { class: "batch-options" },
      field(t("batch.text-column"), text), field(t("batch.most"), k), field(t("batch.which"), threshold)),
    sample.columns.length > 1 && h("details", { class: "more-columns", open: guess.texts.length > 1 }, h("summary", null, t("batch.more-columns")),
      h("p", { class: "soft small" }, t("batch.joined")),
      h("div", { class: "line" }, more.map((box) => h("label", { class: "check" }, box, h("span", null, box.value))))),
    table, h("p", { class: "soft small" }, guess.id === null ? t("batch.no-id") : t("batch.has-id", { name: guess.id })), problem,
    h("div", { class: "line" }, go, button(t("cancel"), stop)));
}

export function render(root, { model }) {
  let jobs = [];
  const chooser = h("div");
  const list = h("section", { class: "jobs", "aria-label": t("batch.list") });
  const input = h("input", { type: "file", accept: ".csv,.tsv,.jsonl,.ndjson", hidden: true });
  const gone = (job) => {
    jobs = jobs.filter((one) => one !== job);
    rememberJobs(jobs);
    drawJobs();
  };
  const drawJobs = () => show(list, jobs.length > 0 && h("h2", null, t("batch.list")), jobs.map((job) => job.element));
  const begin = (facts) => {
    const job = new Job(facts, { gone });
    jobs.unshift(job);
    drawJobs();
    job.draw();
    job.look();
  };
  const start = async (file, { columns, k, threshold, format }) => {
    const query = new URLSearchParams({ model, k, format });
    for (const column of columns) query.append("text_column", column);
    if (threshold) query.set(/^[0-9.]+$/.test(threshold) ? "threshold" : "target", threshold);
    const answer = await ask(`/batches?${query}`, { body: file, type: format === "csv" ? "text/csv" : "application/x-ndjson" });
    begin({ id: answer.id, file: file.name, model });
    rememberJobs(jobs);
    drawZone();
    announce(t("batch.started", { name: file.name }));
  };
  const take = async (file) => {
    try {
      const sample = await sampleOf(file);
      const form = chooseForm(file, sample, { model, send: (how) => start(file, how), stop: () => drawZone() });
      show(chooser, form);
      form.querySelector("select").focus();
    } catch {
      drawZone(t("batch.unreadable", { name: file.name }));
    }
  };
  const drawZone = (problem = null) => {
    const zone = h("div", { class: "drop-zone" },
      h("p", null, h("strong", null, t("batch.drop"))),
      h("p", { class: "soft" }, t("batch.formats")),
      button(t("batch.choose"), () => input.click(), { kind: "main", icon: "file" }),
      problem && h("p", { class: "notice bad", role: "alert" }, problem));
    takesFiles(zone, take);
    show(chooser, zone);
  };
  input.addEventListener("change", () => {
    if (input.files[0]) take(input.files[0]);
    input.value = "";
  });
  show(root, h("div", { class: "view-head" }, h("h1", null, t("batch.nav")), h("p", null, t("batch.about"))), chooser, input, list);
  drawZone();
  for (const one of rememberedJobs().reverse()) begin(one);
  return () => jobs.forEach((job) => clearTimeout(job.timer));
}
