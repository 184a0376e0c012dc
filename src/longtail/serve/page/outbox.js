// Decisions on their way to the server. Each is kept in the browser until the server has said it is stored, is sent
// again after a failure, and never given up silently. Kept are ids, labels and verdicts, no texts. All windows of a
// browser share one list: it is read anew for every change, and one window at a time sends.

import { ask, events, known } from "./server.js";

const KEPT = "longtail.outbox";
const LONGEST_PAUSE = 30_000;

/** Run work in one window at a time, where the browser can tell. */
function alone(work) {
  return navigator.locks ? navigator.locks.request(KEPT, work) : work();
}

/** Entries: { key, who, kind: "decide" | "done" | "undo", item, label, verdict, of, number }. */
export class Outbox extends EventTarget {
  constructor() {
    super();
    this.held = null; // the list itself, in a browser that keeps nothing
    this.numbers = new Map(); // key of an entry that was stored -> the number that the server gave it
    this.problem = null; // what went wrong last, a Refusal
    this.failures = 0;
    this.sending = false;
    this.current = null; // the key of the entry that is being sent
    this.timer = 0;
    addEventListener("online", () => this.flush());
    addEventListener("storage", (event) => {
      if (event.key !== KEPT) return;
      if (this.mine().length === 0) this.problem = null; // another window has sent it all
      this.tell("change");
    });
    events.addEventListener("session", () => this.flush());
    addEventListener("beforeunload", (event) => {
      if (this.mine().length) event.preventDefault();
    });
  }

  get entries() {
    if (this.held) return this.held;
    try {
      const kept = JSON.parse(localStorage.getItem(KEPT) ?? "[]");
      return Array.isArray(kept) ? kept.filter((entry) => entry?.key && entry.kind) : [];
    } catch {
      return [];
    }
  }

  /** Change the list as it is now, whichever window wrote it last. */
  change(how) {
    const list = how(this.entries);
    try {
      localStorage.setItem(KEPT, JSON.stringify(list));
    } catch {
      this.held = list; // leaving the page asks first
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
    this.change((list) => [...list, { ...entry, key, who: known.session.name }]);
    this.flush();
    return key;
  }

  /** Undo an entry: it is not sent at all if it has not been, else the server is told. */
  undo(key, { item, label = "", number = null }) {
    if (this.waits(key) && key !== this.current) this.change((list) => list.filter((entry) => entry.key !== key));
    else this.add({ kind: "undo", of: key, item, label, number });
  }

  async send(entry) {
    if (entry.kind === "decide") return ask("/review/decisions", { json: { item: entry.item, label: entry.label, verdict: entry.verdict } });
    if (entry.kind === "done") return ask(`/review/items/${encodeURIComponent(entry.item)}/done`, { method: "POST" });
    const number = entry.number ?? this.numbers.get(entry.of) ?? (await this.findNumber(entry));
    return number === null ? null : ask(`/review/decisions/${number}/undo`, { method: "POST" });
  }

  /** The number of the decision that an entry undoes, where another window sent it; null where there is none. */
  async findNumber({ item, label }) {
    const { decided } = await ask(`/review/items/${encodeURIComponent(item)}`);
    const last = decided.findLast((one) => (label ? one.label === label : one.verdict === "done"));
    return last?.decision ?? null;
  }

  /** Send what waits, in order. A passing failure is tried again later, longer each time; a refusal waits for a person. */
  async flush({ again = false } = {}) {
    if (this.sending) return;
    if (again) this.failures = 0;
    else if (this.problem && !this.problem.passing && this.problem.status !== 401) return;
    clearTimeout(this.timer);
    this.sending = true;
    try {
      await alone(() => this.sendAll());
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

  /** Wait until what can be sent now is sent; not longer than so many milliseconds. */
  async settled(longest) {
    const until = Date.now() + longest;
    while (this.mine().length && !this.problem && Date.now() < until) await new Promise((resolve) => setTimeout(resolve, 20));
  }

  async sendAll() {
    if (this.mine().length === 0 && this.problem) {
      this.problem = null; // it was that of somebody else
      this.tell("change");
    }
    while (this.mine().length) {
      const [entry] = this.mine();
      this.current = entry.key;
      const answer = await this.send(entry);
      if (answer?.decision !== undefined) this.numbers.set(entry.key, answer.decision);
      this.problem = null;
      this.failures = 0;
      this.tell("stored", { entry, answer });
      this.change((list) => list.filter((one) => one.key !== entry.key));
    }
  }

  /** Give up the entry that the server refuses. */
  drop() {
    const [entry] = this.mine();
    this.problem = null;
    this.change((list) => list.filter((one) => one.key !== entry?.key));
    this.flush();
  }
}

let only = null;

/** The outbox of the page: it outlives the view that fills it. */
export function outbox() {
  only ??= new Outbox();
  return only;
}
