// Questions to the server, and what the whole page knows of it: who is signed in, which models there are.

import { refusalWords } from "./refusals.js";
import { t } from "./words.js";

const ROOT = "/v1/longtail";
const RANKS = ["suggest", "review", "admin"];

/** What the server refused, with one sentence about it in the language of the page. */
export class Refusal extends Error {
  constructor(status, sentence, retryAfter = null) {
    super(refusalWords(status, sentence));
    this.status = status;
    this.retryAfter = retryAfter;
  }

  /** Whether the same question may succeed later: no connection, too busy, or a fault of the server. */
  get passing() {
    return this.status === 0 || this.status === 429 || this.status >= 500;
  }
}

export const known = { models: [], defaultModel: null, session: null, needsToken: false };

/** Fires "session", "models" and "signin-needed". */
export const events = new EventTarget();

export function tell(name) {
  events.dispatchEvent(new Event(name));
}

async function sentenceOf(answer) {
  try {
    const body = await answer.json();
    return body.detail || body.title || answer.statusText;
  } catch {
    return answer.statusText || `HTTP ${answer.status}`;
  }
}

/** Ask the server; `json` is sent as JSON, `body` as it is. Raises Refusal. */
export async function ask(path, { method = null, json, body, type, signal, quiet = false } = {}) {
  const headers = { Accept: "application/json" };
  const sends = json !== undefined || body !== undefined;
  const verb = method ?? (sends ? "POST" : "GET");
  if (json !== undefined) headers["Content-Type"] = "application/json";
  if (type) headers["Content-Type"] = type;
  if (verb !== "GET" && known.session?.csrf) headers["X-CSRF-Token"] = known.session.csrf;
  let answer;
  try {
    answer = await fetch(ROOT + path, {
      method: verb, headers, signal, credentials: "same-origin", body: json === undefined ? body : JSON.stringify(json),
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refusal(0, "");
  }
  if (answer.ok) return answer.status === 204 ? null : answer.json();
  if (answer.status === 401 && !quiet) {
    known.needsToken = true;
    tell("signin-needed");
  }
  throw new Refusal(answer.status, await sentenceOf(answer), Number(answer.headers.get("Retry-After")) || null);
}

export function modelPath(model, rest = "") {
  return `/models/${encodeURIComponent(model)}${rest}`;
}

/** The language of the page, where the vocabulary of a model has names in it; null for the model's own. */
export function nameLanguage(model) {
  const wanted = document.documentElement.lang;
  return modelFacts(model)?.vocabulary?.languages?.find((one) => one.split("-")[0] === wanted) ?? null;
}

/** What follows a question mark, with the language of names where it matters. */
export function inLanguage(model, values = {}) {
  const language = nameLanguage(model);
  const query = new URLSearchParams(language ? { ...values, language } : values).toString();
  return query && `?${query}`;
}

/** The address of a label, encoded so that ids with slashes arrive whole. */
export function labelPath(model, label) {
  return modelPath(model, `/labels/${encodeURIComponent(label)}${inLanguage(model)}`);
}

/** Whether the caller may do what a role may. */
export function may(role) {
  return known.session !== null && RANKS.indexOf(known.session.role) >= RANKS.indexOf(role);
}

export function modelFacts(id) {
  return known.models.find((model) => model.id === id) ?? null;
}

/** What people call a model. */
export function modelName(id) {
  return modelFacts(id)?.title || id;
}

/** Which model is reviewed, where there are several. */
export function reviewedWords(id) {
  return known.models.length > 1 ? t("reviews.of-model", { name: modelName(id) }) : "";
}

export function hasReviews() {
  return known.models.some((model) => model.review);
}

async function whoAmI() {
  try {
    return await ask("/session", { quiet: true });
  } catch (error) {
    if (error.status !== 401 && error.status !== 403) throw error;
    return null;
  }
}

/** Ask who is signed in and which models there are. */
export async function meetServer() {
  known.session = await whoAmI();
  known.needsToken = known.session === null;
  if (known.session !== null) await loadModels();
  tell("session");
}

export async function loadModels() {
  const answer = await ask("/models");
  known.models = answer.models;
  known.defaultModel = answer.default;
  tell("models");
}

export async function signIn(token) {
  known.session = await ask("/session", { json: { token }, quiet: true });
  known.needsToken = false;
  await loadModels();
  tell("session");
}

export async function signOut() {
  await ask("/session", { method: "DELETE" });
  known.session = null;
  known.models = [];
  await meetServer();
}
