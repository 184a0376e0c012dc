// What the server refuses, in the language of the reader: by the words of its sentence, else by the kind of refusal.

import { currentLanguage, t } from "./words.js";

// What the server says (in English), and the words for it; the parts with names are filled in.
const SAID = [
  [/^the body is larger than (?<bytes>\d+) bytes\.$/, "refused.too-large"],
  [/^text must have at most (?<most>\d+) characters; got (?<got>\d+)\.$/, "refused.long-text"],
  [/^texts must have at most (?<most>\d+) entries; got (?<got>\d+)\.$/, "refused.many-texts"],
  [/^more than (?<rate>\S+) requests a second come from here; try again in (?<seconds>\d+) s\.$/, "refused.rate"],
  [/^(?<n>\d+) batches (?:of yours )?are running; try again when one is done\.$/, "refused.batches"],
  [/^the answer was not ready within (?<seconds>\S+) seconds; try again later\.$/, "refused.late"],
  [/^\d+ (?:texts|pieces of work|requests) are .*try again soon\.$/, "refused.busy"],
  [/^the body did not come within (?<seconds>\S+) seconds\.$/, "refused.slow"],
  [/^this token is not known here\.$/, "refused.token"],
  [/^this needs the role '(?<role>\w+)'; '(?<name>.*)' has the role '(?<own>\w+)'\.$/, "refused.role"],
  [/^changes with a cookie need the header X-CSRF-Token/, "refused.session"],
  [/^there is no batch /, "refused.no-batch"],
  [/^the batch is \w+; there is a result when it is done\.$/, "refused.no-result"],
  [/^there is no model '(?<name>.*)'; there are /, "refused.no-model"],
  [/^the model '.*' has no label '(?<name>.*)'\.$/, "refused.no-label"],
  [/^'(?<name>.*)' is neither a label of the model nor in its vocabulary\.$/, "refused.unknown-label"],
  [/^an update is running/, "refused.updating"],
  [/^the server failed on this request; its log has the reason under (?<id>\w+)\.$/, "refused.fault"],
];
const KINDS = [401, 403, 404, 408, 409, 413, 415, 421, 422, 429, 431, 500, 503];

/** The sentence of a refusal, or of a batch that failed, for the reader; what has no words of its own is quoted. */
export function refusalWords(status, sentence) {
  if (status === 401 && /^this needs a token: |^nobody has signed in; /.test(sentence)) return t("refused.401"); // that is for programs
  if (currentLanguage() === "en") return sentence;
  for (const [pattern, key] of SAID) {
    const found = pattern.exec(sentence);
    if (found) return t(key, found.groups ?? {});
  }
  const kind = t(KINDS.includes(status) ? `refused.${status}` : "refused.failed");
  return sentence ? `${kind} ${t("refused.says", { sentence })}` : kind;
}
