// Tags as JSON and CSV, to the clipboard.

import { announce, button } from "./dom.js";
import { t } from "./words.js";

/** One cell of CSV. Programs for tables run cells that begin as a formula does; these get an apostrophe in front. */
export function csvCell(value) {
  const plain = value === null || value === undefined ? "" : String(value);
  const safe = typeof value !== "number" && /^[=+\-@\t\r\n＝＋－＠]/.test(plain) ? `'${plain}` : plain;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

export function tagsAsCsv(tags) {
  const rows = tags.map((tag) => [tag.label, tag.name, tag.probability, tag.score]);
  return [["label", "name", "probability", "score"], ...rows].map((row) => row.map(csvCell).join(",")).join("\r\n") + "\r\n";
}

export function tagsAsJson(tags) {
  const plain = tags.map(({ label, name, score, probability }) => ({ label, name, score, probability }));
  return JSON.stringify(plain, null, 1);
}

/** Put words on the clipboard, also where the page was not loaded by https. */
export async function copy(words) {
  try {
    await navigator.clipboard.writeText(words);
  } catch {
    const area = document.createElement("textarea");
    area.value = words;
    area.className = "only-heard";
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
}

/** A button that copies what `words()` returns and says so. */
export function copyButton(caption, words, more = {}) {
  const made = button(caption, async () => {
    await copy(words());
    announce(t("copied"));
    made.classList.add("did");
    setTimeout(() => made.classList.remove("did"), 1200);
  }, { kind: "small", icon: "copy", ...more });
  return made;
}
