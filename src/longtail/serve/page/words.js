// Words, numbers and dates in the language of the reader.

export const LANGUAGES = ["en", "de"];

let table = {};
let fallback = {};
let language = "en";
let region = "en"; // the language as the browser has it, with its ways of writing numbers and dates

function kept() {
  try {
    return localStorage.getItem("longtail.language");
  } catch {
    return null;
  }
}

async function load(name) {
  const answer = await fetch(`/static/words.${name}.json`);
  return answer.json();
}

/** Load the language that was chosen before, else that of the browser. */
export async function chooseLanguage(wanted = null) {
  if (wanted !== null) {
    try {
      localStorage.setItem("longtail.language", wanted);
    } catch {
      // it holds until the page is closed then
    }
  }
  const asked = [wanted ?? kept(), ...(navigator.languages ?? [navigator.language])];
  language = asked.map((tag) => (tag ?? "").slice(0, 2)).find((tag) => LANGUAGES.includes(tag)) ?? "en";
  region = (navigator.languages ?? []).find((tag) => tag.split("-")[0] === language) ?? language;
  [table, fallback] = await Promise.all([load(language), language === "en" ? {} : load("en")]);
  document.documentElement.lang = language;
}

export function currentLanguage() {
  return language;
}

/** The words of a key; {name} in them stands for a value. With `n`, `key.one` or `key.other` is taken. */
export function t(key, values = {}) {
  const counted = "n" in values ? `${key}.${new Intl.PluralRules(language).select(values.n)}` : key;
  const words = table[counted] ?? table[key] ?? fallback[counted] ?? fallback[key] ?? key;
  return words.replace(/\{(\w+)\}/g, (whole, name) => {
    const value = values[name];
    if (value === undefined) return whole;
    return typeof value === "number" ? number(value) : String(value);
  });
}

export function number(value, digits = 0) {
  return new Intl.NumberFormat(region, { maximumFractionDigits: digits }).format(value);
}

/** A share as whole percent; very small and very large ones never look certain. */
export function percent(share, digits = 0) {
  if (share === null || share === undefined || Number.isNaN(share)) return "–";
  const format = new Intl.NumberFormat(region, { style: "percent", maximumFractionDigits: digits });
  const least = 10 ** (-2 - digits);
  if (share > 0 && share < least / 2) return `< ${format.format(least)}`;
  if (share < 1 && share > 1 - least / 2) return `> ${format.format(1 - least)}`;
  return format.format(share);
}

export function day(value) {
  return new Intl.DateTimeFormat(region, { day: "numeric", month: "short" }).format(new Date(value));
}

export function moment(value) {
  const at = new Date(value);
  if (Number.isNaN(at.getTime())) return String(value);
  const today = at.toDateString() === new Date().toDateString();
  const date = today ? {} : { day: "numeric", month: "short", year: "numeric" };
  return new Intl.DateTimeFormat(region, { hour: "2-digit", minute: "2-digit", ...date }).format(at);
}
