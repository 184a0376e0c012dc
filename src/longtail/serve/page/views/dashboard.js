// Dashboard: how often the tags are right, how far people agree, and how much was done.

import { h, show } from "../dom.js";
import { namedLabel } from "../label_names.js";
import { dayColumns, intervalBar, scrolling, sharePlot } from "../plots.js";
import { ask, reviewedWords } from "../server.js";
import { moment, number, percent, t } from "../words.js";

const WORST = 12;
const FEWEST_JUDGED = 3;

function figure(caption, value, about) {
  return h("div", { class: "panel figure" }, h("p", { class: "caption" }, caption), h("p", { class: "figure-value" }, value), h("p", { class: "soft" }, about));
}

function board(title, content, { about = null, wide = false } = {}) {
  return h("section", { class: `panel board ${wide ? "wide" : ""}`, "aria-label": title }, h("h2", null, title), about && h("p", { class: "soft small" }, about), content);
}

function labelLink(model, one) {
  return namedLabel(model, one, h("a", { href: `#/labels/${encodeURIComponent(one.label)}` }));
}

/** What a value of Krippendorff's alpha means in words. */
function alphaWords(alpha) {
  if (alpha === null || alpha === undefined) return t("dashboard.no-agreement");
  return t(alpha >= 0.8 ? "dashboard.alpha-good" : alpha >= 0.667 ? "dashboard.alpha-fair" : "dashboard.alpha-poor");
}

function worstLabels(model, labels) {
  const judged = labels.filter((one) => one.precision !== null && one.pairs >= FEWEST_JUDGED).sort((a, b) => a.precision - b.precision || b.pairs - a.pairs);
  if (judged.length === 0) return h("p", { class: "empty" }, t("dashboard.no-labels"));
  const wrong = judged.filter((one) => one.precision < 1);
  if (wrong.length === 0) return h("p", { class: "empty" }, t("dashboard.none-wrong"));
  const rows = wrong.slice(0, WORST).map((one) => h("tr", null,
    h("td", null, labelLink(model, one)),
    h("td", { class: "number" }, percent(one.precision)),
    h("td", null, intervalBar(one), h("span", { class: "only-heard" }, `${percent(one.low)} – ${percent(one.high)}`)),
    h("td", { class: "number" }, number(one.pairs))));
  return scrolling(t("dashboard.worst"), h("table", null,
    h("thead", null, h("tr", null, h("th", { scope: "col" }, t("dashboard.label")), h("th", { scope: "col", class: "number" }, t("threshold.precision")),
      h("th", { scope: "col" }, t("plot.interval")), h("th", { scope: "col", class: "number" }, t("plot.judged")))),
    h("tbody", null, rows)));
}

function disputed(model, labels) {
  if (!labels?.length) return h("p", { class: "empty" }, t("dashboard.no-disputes"));
  const rows = labels.slice(0, WORST).map((one) => h("tr", null,
    h("td", null, labelLink(model, one)),
    h("td", { class: "number" }, one.alpha === null ? "–" : number(one.alpha, 2)),
    h("td", { class: "number" }, one.disagreements === undefined ? number(one.pairs) : t("dashboard.of", { some: one.disagreements, all: one.pairs }))));
  return scrolling(t("dashboard.disputed"), h("table", null,
    h("thead", null, h("tr", null, h("th", { scope: "col" }, t("dashboard.label")), h("th", { scope: "col", class: "number" }, "α"), h("th", { scope: "col", class: "number" }, t("dashboard.disagreements")))),
    h("tbody", null, rows)));
}

function people(reviewers) {
  if (!reviewers?.length) return h("p", { class: "empty" }, t("dashboard.nobody"));
  const columns = ["accepted", "rejected", "added", "rows"];
  return scrolling(t("dashboard.people"), h("table", null,
    h("thead", null, h("tr", null, h("th", { scope: "col" }, t("dashboard.person")), columns.map((name) => h("th", { scope: "col", class: "number" }, t(`dashboard.${name}`))), h("th", { scope: "col", class: "number" }, t("dashboard.last")))),
    h("tbody", null, reviewers.map((one) => h("tr", null, h("td", null, one.reviewer), columns.map((name) => h("td", { class: "number" }, number(one[name] ?? 0))), h("td", { class: "number" }, one.last ? moment(one.last) : "–"))))));
}

export async function render(root, { model }) {
  show(root, h("p", { class: "empty" }, t("loading")));
  const query = `?${new URLSearchParams({ model })}`;
  const [facts, agreement] = await Promise.all([ask(`/review/progress${query}`), ask(`/review/agreement${query}`)]);
  const { control, counts, over_time: overTime = [], days = [] } = facts;
  const decisions = days.reduce((sum, one) => sum + one.decisions, 0);
  const soFar = overTime.filter((point) => point.so_far?.precision !== null).map((point) => ({ day: point.day, ...(point.so_far ?? point) }));
  const range = control?.precision === null || !control ? t("dashboard.no-precision") : t("dashboard.interval", { low: percent(control.low), high: percent(control.high), n: control.rows });
  show(root,
    h("div", { class: "view-head" }, h("h1", null, t("dashboard.nav")), h("p", null, t("dashboard.about"), " ", reviewedWords(model))),
    h("div", { class: "figures" },
      figure(t("threshold.precision"), percent(control?.precision), range),
      figure(t("dashboard.agreement"), agreement.alpha === null ? "–" : `α ${number(agreement.alpha, 2)}`, alphaWords(agreement.alpha)),
      figure(t("dashboard.decisions"), number(decisions), t("dashboard.by-people", { n: facts.reviewers?.length ?? 0 })),
      figure(t("dashboard.finished"), number(counts.finished), t("dashboard.of-rows", { n: counts.rows }))),
    h("div", { class: "boards" },
      board(t("dashboard.over-time"), soFar.length ? sharePlot(t("dashboard.over-time"), soFar) : h("p", { class: "empty" }, t("dashboard.no-precision")), { about: t("dashboard.over-time-about") }),
      board(t("dashboard.per-day"), days.length ? dayColumns(t("dashboard.per-day"), days.map((one) => ({ day: one.day, value: one.decisions })), t("dashboard.decisions")) : h("p", { class: "empty" }, t("dashboard.nobody")), { about: t("dashboard.per-day-about") }),
      board(t("dashboard.worst"), worstLabels(model, facts.labels ?? []), { about: t("dashboard.worst-about") }),
      board(t("dashboard.disputed"), disputed(model, agreement.labels), { about: t("dashboard.disputed-about") }),
      board(t("dashboard.people"), people(facts.reviewers), { wide: true })));
}
