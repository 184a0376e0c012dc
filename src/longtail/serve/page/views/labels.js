// Labels: search as you type, the vocabulary as a tree, and all about one label.

import { afterPause, announce, h, icon, newId, show } from "../dom.js";
import { labelCard } from "../label_card.js";
import { nameWithMatch, searchLabels } from "../label_picker.js";
import { ask, inLanguage, modelFacts, modelPath } from "../server.js";
import { shortId, shownName } from "../tag_rows.js";
import { number, t } from "../words.js";

const PAGE = 30;

/** A branch of the vocabulary, whose lower parts are fetched when it is opened. */
class Tree {
  constructor(model, choose) {
    this.model = model;
    this.choose = choose;
    this.element = h("ul", { class: "tree", role: "tree", "aria-label": t("labels.tree") });
    this.element.addEventListener("keydown", (event) => this.key(event));
  }

  async load() {
    const items = await this.children(null);
    show(this.element, items);
    items[0]?.setAttribute("tabindex", "0");
    return items.length;
  }

  async children(label) {
    const answer = await ask(modelPath(this.model, `/tree${inLanguage(this.model, label === null ? {} : { label })}`));
    return answer.children.map((one) => this.item(one));
  }

  item(one) {
    const below = one.children;
    const name = h("span", { class: "tree-name", id: newId("tree") }, shownName(one));
    const row = h("div", { class: "tree-row" },
      below ? icon("next") : h("span", { class: "leaf", "aria-hidden": "true" }, "·"), name,
      one.rows > 0 && h("span", { class: "rows", "aria-hidden": "true" }, number(one.rows)));
    const item = h("li", { role: "treeitem", tabindex: "-1", "aria-labelledby": name.id, "aria-selected": "false", "aria-expanded": below ? "false" : null, "data-label": one.label }, row);
    row.addEventListener("click", () => {
      this.focus(item);
      if (below) this.toggle(item);
      this.choose(one.label);
    });
    return item;
  }

  focus(item) {
    for (const other of this.element.querySelectorAll('[tabindex="0"]')) other.tabIndex = -1;
    item.tabIndex = 0;
    item.focus();
  }

  select(label) {
    for (const item of this.element.querySelectorAll('[role="treeitem"]')) item.setAttribute("aria-selected", String(item.dataset.label === label));
  }

  async toggle(item, open = item.getAttribute("aria-expanded") !== "true") {
    if (!item.hasAttribute("aria-expanded")) return;
    item.setAttribute("aria-expanded", String(open));
    let group = item.querySelector(':scope > [role="group"]');
    if (open && !group) {
      const items = await this.children(item.dataset.label);
      group = h("ul", { role: "group" }, items);
      item.append(group);
    }
    if (group) group.hidden = !open;
  }

  key(event) {
    const item = event.target.closest('[role="treeitem"]');
    if (!item) return;
    const seen = [...this.element.querySelectorAll('[role="treeitem"]')].filter((one) => !one.closest("[hidden]"));
    const at = seen.indexOf(item);
    const open = item.getAttribute("aria-expanded");
    const moves = {
      ArrowDown: () => seen[at + 1] && this.focus(seen[at + 1]),
      ArrowUp: () => seen[at - 1] && this.focus(seen[at - 1]),
      Home: () => this.focus(seen[0]),
      End: () => this.focus(seen.at(-1)),
      ArrowRight: () => (open === "false" ? this.toggle(item, true) : open === "true" && seen[at + 1] && this.focus(seen[at + 1])),
      ArrowLeft: () => {
        const above = item.parentElement.closest('[role="treeitem"]');
        if (open === "true") this.toggle(item, false);
        else if (above) this.focus(above);
      },
      Enter: () => this.choose(item.dataset.label),
      " ": () => this.choose(item.dataset.label),
    };
    if (!moves[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    moves[event.key]();
  }
}

export function render(root, { model, rest }) {
  const facts = modelFacts(model);
  const detail = h("section", { class: "panel label-detail unused", "aria-label": t("labels.detail"), tabindex: "-1" });
  const hits = h("div", { class: "hits" });
  const search = h("input", { type: "search", placeholder: t("labels.search-hint"), autocomplete: "off", spellcheck: "false" });
  const treePart = h("div");
  let asking = null;
  let chosen = null;

  const choose = (label, { move = false } = {}) => {
    chosen = label;
    detail.classList.remove("unused");
    const card = labelCard({ model, label, go: (next) => choose(next, { move: true }) });
    show(detail, card);
    tree.select(label);
    for (const hit of hits.querySelectorAll(".hit")) hit.toggleAttribute("aria-current", hit.dataset.label === label);
    history.replaceState(null, "", `#/labels/${encodeURIComponent(label)}`);
    card.addEventListener("loaded", (event) => announce(shownName(event.detail)));
    if (move) detail.focus({ preventScroll: true });
    if (matchMedia("(max-width: 60rem)").matches) detail.scrollIntoView({ block: "start" });
  };
  const tree = new Tree(model, choose);

  const hit = (found, typed) => {
    const name = shownName(found);
    const other = found.matched && found.matched !== name ? t("labels.also", { name: found.matched }) : null;
    const about = [found.suggested === false && t("labels.not-suggested"), other, (found.broader ?? []).map(shownName).join(", ") || (shortId(found.label) === name ? null : shortId(found.label))].filter(Boolean).join(" · ");
    return h("button", { type: "button", class: "hit", "data-label": found.label, "aria-current": found.label === chosen ? "true" : null, onclick: () => choose(found.label) },
      h("span", null, nameWithMatch(name, typed)), h("span", { class: "option-rows" }, number(found.rows ?? 0)),
      h("span", { class: "option-about" }, about));
  };
  const find = async (offset = 0) => {
    asking?.abort();
    const typed = search.value;
    treePart.hidden = Boolean(typed.trim()) && hasTree;
    if (!typed.trim() && hasTree) {
      show(hits);
      return;
    }
    const { signal } = (asking = new AbortController());
    try {
      const answer = await searchLabels(model, typed, { limit: PAGE, offset, concepts: "all", signal });
      if (offset === 0) show(hits, h("p", { class: "soft small" }, t("labels.found", { n: answer.total })));
      hits.querySelector(".more")?.remove();
      hits.append(...answer.labels.map((found) => hit(found, typed)));
      const shown = offset + answer.labels.length;
      if (shown < answer.total && answer.labels.length) hits.append(h("button", { type: "button", class: "button small more", onclick: () => find(shown) }, t("labels.more")));
      if (offset === 0) announce(t("labels.found", { n: answer.total }));
    } catch (error) {
      if (error.name !== "AbortError") show(hits, h("p", { class: "notice bad", role: "alert" }, error.status === 0 ? t("offline") : error.message));
    }
  };
  const soon = afterPause(90, () => find());
  search.addEventListener("input", soon);
  search.addEventListener("keydown", (event) => {
    if (event.key === "Enter") hits.querySelector(".hit")?.click();
    if (event.key === "ArrowDown") {
      event.preventDefault();
      hits.querySelector(".hit")?.focus();
    }
  });
  hits.addEventListener("keydown", (event) => {
    if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
    const all = [...hits.querySelectorAll("button")];
    const next = all.indexOf(event.target) + (event.key === "ArrowDown" ? 1 : -1);
    event.preventDefault();
    (all[next] ?? (next < 0 ? search : event.target)).focus();
  });
  let hasTree = false;
  tree.load().then((n) => {
    hasTree = n > 0;
    if (hasTree) show(treePart, h("h2", { class: "caption" }, facts.vocabulary?.title ? t("labels.tree-of", { name: facts.vocabulary.title }) : t("labels.tree")), tree.element);
    else find();
    if (chosen) tree.select(chosen);
  }).catch(() => find());

  show(root,
    h("div", { class: "view-head" }, h("h1", null, t("labels.nav")), h("p", null, t("labels.about", { n: facts.n_labels }))),
    h("div", { class: "labels-split" },
      h("div", { class: "labels-side" },
        h("label", { class: "field" }, h("span", { class: "caption" }, t("labels.search")), search), hits, treePart),
      detail));
  show(detail, h("p", { class: "empty" }, t("labels.choose")));
  if (rest[0]) choose(rest[0]);
  return () => {
    asking?.abort();
    soon.cancel();
  };
}
