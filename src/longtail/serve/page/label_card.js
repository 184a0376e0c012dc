// All about one label: what it means, what stands above and below it, how it is to be used.

import { announce, button, h, newId, show } from "./dom.js";
import { copyButton } from "./copying.js";
import { ask, labelPath, may, modelFacts } from "./server.js";
import { shownName } from "./tag_rows.js";
import { t } from "./words.js";

function others(caption, labels, go, heading) {
  if (!labels || labels.length === 0) return null;
  const links = labels.map((one) => h("li", null, h("button", { type: "button", class: "chip", onclick: () => go(one.label) }, shownName(one))));
  return h("div", { class: "others" }, h(heading, { class: "caption" }, caption), h("ul", { class: "chips" }, links));
}

/** The guideline of a label, and for reviewers a way to write it. */
export function guideline(label, text, { model, heading }) {
  const element = h("div", { class: "guideline" });
  const read = () => {
    const edit = may("review") && modelFacts(model)?.review;
    if (!text && !edit) return show(element);
    show(element,
      h(heading, { class: "caption" }, t("labels.guideline")),
      text ? h("p", { class: "guideline-text" }, text) : h("p", { class: "soft" }, t("labels.no-guideline")),
      edit && button(text ? t("labels.edit-guideline") : t("labels.write-guideline"), write, { kind: "small", icon: "pencil" }));
    return element;
  };
  const write = () => {
    const id = newId("guideline");
    const area = h("textarea", { id, rows: 4, value: text ?? "" });
    const problem = h("p", { class: "notice bad", role: "alert", hidden: true });
    const save = async () => {
      try {
        await ask(`/review/guidelines/${encodeURIComponent(label)}`, { method: "PUT", json: { text: area.value } });
        text = area.value.trim() || null;
        read();
        announce(t("saved"));
        element.querySelector("button")?.focus();
      } catch (error) {
        problem.textContent = error.status === 0 ? t("offline") : error.message;
        problem.hidden = false;
      }
    };
    const stop = () => {
      read();
      element.querySelector("button")?.focus();
    };
    area.addEventListener("keydown", (event) => {
      event.stopPropagation();
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) save();
      if (event.key === "Escape") stop();
    });
    show(element,
      h("label", { class: "caption", for: id }, t("labels.guideline")), area, problem,
      h("div", { class: "line" }, button(t("save"), save, { kind: "main small" }), button(t("cancel"), stop, { kind: "small" })));
    area.focus();
  };
  read();
  return element;
}

/** The card as an element; `go` is called with a label when a broader or narrower one is chosen. */
export function labelCard({ model, label, go, heading = "h2", more = [] }) {
  const below = `h${Number(heading.slice(1)) + 1}`;
  const card = h("article", { class: "card", "aria-busy": "true" }, h("p", { class: "soft" }, t("loading")));
  ask(labelPath(model, label)).then((facts) => {
    const above = (facts.broader ?? []).flatMap((one, i) => [
      i > 0 && ", ", h("button", { type: "button", class: "plain-link", onclick: () => go(one.label) }, shownName(one))]);
    const differs = facts.label !== shownName(facts);
    show(card,
      above.length > 0 && h("p", { class: "above" }, h("span", { class: "only-heard" }, `${t("labels.broader")}: `), above, h("span", { "aria-hidden": "true" }, " ›")),
      h(heading, { class: "card-name" }, shownName(facts)),
      facts.definition && h("p", { class: "definition" }, facts.definition),
      facts.alternative?.length > 0 && h("p", { class: "soft" }, t("labels.alternative"), " ", facts.alternative.join(", ")),
      h("p", { class: "soft rows-line" },
        facts.rows === null || facts.rows === undefined ? null : t("labels.rows", { n: facts.rows }),
        differs && h("span", { class: "id-line" }, h("code", { class: "id" }, facts.label), copyButton("", () => facts.label, { kind: "bare small", name: t("labels.copy-id") }))),
      guideline(facts.label, facts.guideline, { model, heading: below }),
      others(t("labels.narrower"), facts.narrower, go, below),
      others(t("labels.related"), facts.related, go, below),
      more.length > 0 && h("div", { class: "line" }, more));
    card.removeAttribute("aria-busy");
    card.dispatchEvent(new CustomEvent("loaded", { detail: facts }));
  }).catch((error) => {
    card.removeAttribute("aria-busy");
    show(card, h("p", { class: "notice bad", role: "alert" }, error.status === 0 ? t("offline") : error.message));
  });
  return card;
}
