// Decisions on their way to the server. Each is kept in the browser until the server has said it is stored, is sent
// again after a failure, and never given up silently. Kept are ids, labels and verdicts, no texts.

import { ask, events, known } from "./server.js";

const KEPT = "longtail.outbox";
const LONGEST_PAUSE = 30_000;

/** Entries: { key, who, kind: "decide" | "done" | "undo", item, label, verdict, of }. */
export class Outbox extends EventTarget {
  constructor() {
    super();
    this.entries = this.load();
    this.numbers = new Map(); // key of an entry that was stored -> the number that the server gave it
    this.problem = null; // what went wrong last, a Refusal
    this.failures = 0;
    this.sending = false;
    this.timer = 0;
    addEventListener("online", () => this.flush());
    events.addEventListener("session", () => this.flush());
    addEventListener("beforeunload", (event) => {
      if (this.mine().length) event.preventDefault();
    });
  }

  load() {
    try {
      const kept = JSON.parse(localStorage.getItem(KEPT) ?? "[]");
      return Array.isArray(kept) ? kept : [];
    } catch {
      return [];
    }
  }

  save() {
    try {
      localStorage.setItem(KEPT, JSON.stringify(this.entries));
    } catch {
      // held in memory; leaving the page asks first
    }
    this.tell("change");
  }

  tell(name, detail = null) {
    this.dispatchEvent(new CustomEvent(name, { detail }));
  }

  /** What waits, of the person who is signed in. */
  mine() {
    return this.entries.filter((entry) => entry.who === known.session?.name);
  }

  others() {
    return this.entries.filter((entry) => entry.who !== known.session?.name);
  }

  waits(key) {
    return this.entries.some((entry) => entry.key === key);
  }

  /** Take an entry; it is sent at once, or as soon as that is possible. Returns its key. */
  add(entry) {
    const key = `${Date.now().toString(36)}-${Math.random().toString(36).slice(2, 10)}`;
    this.entries.push({ ...entry, key, who: known.session.name });
    this.save();
    this.flush();
    return key;
  }

  /** Undo an entry: it is not sent at all if it has not been, else the server is told. */
  undo(key, number = null) {
    const at = this.entries.findIndex((entry) => entry.key === key);
    if (at >= 0 && !(this.sending && at === this.entries.indexOf(this.current))) {
      this.entries.splice(at, 1);
      this.save();
      return;
    }
    this.add({ kind: "undo", of: key, number: number ?? this.numbers.get(key) ?? null });
  }

  send(entry) {
    if (entry.kind === "decide") return ask("/review/decisions", { json: { item: entry.item, label: entry.label, verdict: entry.verdict } });
    if (entry.kind === "done") return ask(`/review/items/${encodeURIComponent(entry.item)}/done`, { method: "POST" });
    const number = entry.number ?? this.numbers.get(entry.of);
    return number === undefined ? Promise.resolve(null) : ask(`/review/decisions/${number}/undo`, { method: "POST" });
  }

  /** Send what waits, in order. A passing failure is tried again later, longer each time; a refusal waits for a person. */
  async flush({ again = false } = {}) {
    if (this.sending) return;
    if (again) this.failures = 0;
    else if (this.problem && !this.problem.passing && this.problem.status !== 401) return;
    clearTimeout(this.timer);
    this.sending = true;
    try {
      while (this.mine().length) {
        const entry = (this.current = this.mine()[0]);
        const answer = await this.send(entry);
        this.entries = this.entries.filter((one) => one !== entry);
        if (answer?.decision !== undefined) this.numbers.set(entry.key, answer.decision);
        this.problem = null;
        this.failures = 0;
        this.tell("stored", { entry, answer });
        this.save();
      }
    } catch (error) {
      this.problem = error;
      this.failures += 1;
      if (error.passing) {
        const pause = Math.min(LONGEST_PAUSE, (error.retryAfter ? error.retryAfter * 1000 : 1000) * 2 ** Math.min(this.failures - 1, 5));
        this.timer = setTimeout(() => this.flush(), pause);
      }
      this.tell("change");
    } finally {
      this.current = null;
      this.sending = false;
    }
  }

  /** Give up the entry that the server refuses. */
  drop() {
    const [entry] = this.mine();
    this.entries = this.entries.filter((one) => one !== entry);
    this.problem = null;
    this.save();
    this.tell("dropped", { entry });
    this.flush();
  }
}

let only = null;

/** The outbox of the page: it outlives the view that fills it. */
export function outbox() {
  only ??= new Outbox();
  return only;
}
