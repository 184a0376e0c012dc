// What an update from reviews came to, in the language of the reader: made of its facts, not of the server's sentence.

import { currentLanguage, number, percent, t } from "./words.js";

/** A difference of two shares in points, with its sign. */
export function points(share) {
  return `${share >= 0 ? "+" : "−"}${number(Math.abs(share) * 100, 1)}`;
}

function outcome(facts) {
  const { comparison } = facts;
  if (facts.swapped) return t("models.outcome.swapped");
  if (comparison.not_worse) return t("models.outcome.not-worse");
  if (comparison.high < 0) return t("models.outcome.worse");
  return t("models.outcome.may-be-worse", { margin: number(comparison.margin * 100, 1) });
}

/** The sentence of an update that has ended; what has no words of its own is quoted. */
export function updateWords(facts) {
  if (currentLanguage() === "en" || !["done", "failed"].includes(facts.state)) return facts.sentence;
  const { comparison } = facts;
  if (facts.state === "done") {
    if (Number.isFinite(comparison?.low)) {
      const { rows, before, after, difference, low, high } = comparison;
      const compared = t("models.outcome", {
        n: rows, before: percent(before, 1), after: percent(after, 1), change: points(difference), low: points(low), high: points(high),
      });
      const hint = !facts.swapped && !comparison.not_worse && comparison.high >= 0 && comparison.rows_needed;
      const more = hint ? ` ${t("models.outcome.rows-needed", { n: comparison.rows_needed })}` : "";
      const kept = facts.swapped && facts.backup ? ` ${t("models.outcome.backup", { name: facts.backup })}` : "";
      return `${compared} ${outcome(facts)}${more}${kept}`;
    }
    if (facts.rows === 0) return t("models.outcome.nothing-new");
    if (facts.control < facts.fewest) return t("models.outcome.few-rows", { n: facts.control, fewest: facts.fewest });
  }
  return `${t(`models.update.${facts.state}`)} ${t("refused.says", { sentence: facts.sentence })}`;
}
