// The sheet of paper: a text field in which words can be marked, and into which files can be dropped.

import { announce, button, h, show } from "./dom.js";
import { markedText } from "./marked_text.js";
import { t } from "./words.js";

const MOST_CHARACTERS = 200_000; // what the server takes by default
const READABLE = /\.(txt|text|md|markdown|html?|xhtml)$/i;

/** What a reader would see of an HTML file. It is parsed without attributes, and nothing in it is run or fetched. */
function textOfHtml(source) {
  const bare = source.replace(/<([a-z][\w-]*)(?:"[^"]*"|'[^']*'|[^'">])*>/gi, "<$1>");
  const parsed = new DOMParser().parseFromString(bare, "text/html");
  for (const unseen of parsed.querySelectorAll("script, style, noscript, template, head")) unseen.remove();
  for (const block of parsed.querySelectorAll("p, br, li, h1, h2, h3, h4, h5, h6, tr, div")) block.after("\n");
  return (parsed.body?.textContent ?? "").replace(/[ \t]+/g, " ").replace(/\s*\n\s*/g, "\n").trim();
}

/** Read a file as text; raises an error with a sentence for people. */
export async function readTextFile(file) {
  if (!READABLE.test(file.name) && !file.type.startsWith("text/")) throw new Error(t("editor.not-text", { name: file.name }));
  if (file.size > 4 * MOST_CHARACTERS) throw new Error(t("editor.too-long", { name: file.name }));
  let text;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
  } catch {
    throw new Error(t("editor.not-utf8", { name: file.name }));
  }
  return /\.x?html?$/i.test(file.name) ? textOfHtml(text) : text;
}

/** Make any element take a dropped file. */
export function takesFiles(element, take) {
  let depth = 0;
  const over = (by) => {
    depth += by;
    element.classList.toggle("dropping", depth > 0);
  };
  element.addEventListener("dragenter", (event) => {
    event.preventDefault();
    over(1);
  });
  element.addEventListener("dragleave", () => over(-1));
  element.addEventListener("dragover", (event) => event.preventDefault());
  element.addEventListener("drop", (event) => {
    const [file] = event.dataTransfer.files;
    depth = 0;
    over(0);
    if (!file) return;
    event.preventDefault();
    take(file);
  });
}

/** The editor; `changed` is called with the text after every change. */
export function textEditor({ text, changed, now, more = [] }) {
  const behind = h("div", { class: "behind-text", "aria-hidden": "true" });
  const area = h("textarea", {
    class: "paper-text", "aria-label": t("editor.label"), placeholder: t("editor.hint"), spellcheck: "false", maxlength: MOST_CHARACTERS, value: text,
  });
  const count = h("span", { class: "count soft" });
  const problem = h("p", { class: "notice bad", role: "alert", hidden: true });
  const file = h("input", { type: "file", accept: ".txt,.md,.html,.htm,text/*", hidden: true });
  const clear = button(t("editor.clear"), () => set(""), { kind: "small bare" });
  let marks = null;

  const fit = () => {
    area.style.height = "auto";
    area.style.height = `${area.scrollHeight + 2}px`;
    const words = area.value.trim() ? area.value.trim().split(/\s+/).length : 0;
    count.textContent = words ? t("editor.words", { n: words }) : "";
    clear.hidden = !area.value;
  };
  const mark = (spans) => {
    if (spans === marks) return;
    marks = spans;
    show(behind, spans?.length ? markedText(area.value, spans) : null);
  };
  const set = (value) => {
    area.value = value.slice(0, MOST_CHARACTERS);
    mark(null);
    fit();
    changed(area.value);
    area.focus();
  };
  const take = async (given) => {
    problem.hidden = true;
    try {
      set(await readTextFile(given));
      announce(t("editor.opened", { name: given.name }));
    } catch (error) {
      problem.textContent = error.message;
      problem.hidden = false;
    }
  };
  area.addEventListener("input", () => {
    mark(null);
    fit();
    changed(area.value);
  });
  area.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      now();
    }
  });
  file.addEventListener("change", () => {
    if (file.files[0]) take(file.files[0]);
    file.value = "";
  });
  const element = h("section", { class: "paper", "aria-label": t("editor.label") },
    h("div", { class: "sheet" }, behind, area),
    problem,
    h("div", { class: "paper-tools" }, more, button(t("editor.open"), () => file.click(), { kind: "small", icon: "file" }), file, clear, count));
  takesFiles(element, take);
  addEventListener("resize", fit);
  requestAnimationFrame(fit);
  return { element, area, mark, leave: () => removeEventListener("resize", fit) };
}


