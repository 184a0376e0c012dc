"""A search for settings as a table and a sentence, for terminal and notebook alike."""

from __future__ import annotations

from longtail.facts import TuningFacts
from longtail.report.formatting import count, duration


def trial_table(facts: TuningFacts, shown: int) -> tuple[list[str], list[list[str]]]:
    """Return columns and rows: the best trials of a search, at most `shown`, and the defaults."""
    rows = facts["round_rows"]
    listed = [t for i, t in enumerate(facts["trials"]) if i < shown or t["number"] == 0]
    body = [
        [
            str(trial["number"]),
            ", ".join(f"{name}={value}" for name, value in trial["settings"].items()) or "defaults",
            *(f"{100 * score:.1f}" for score in trial["scores"]),
            *([""] * (len(rows) - len(trial["scores"]))),
            duration(trial["seconds"]),
        ]
        for trial in listed
    ]
    return ["trial", "settings ", *(f"{count(n)} rows" for n in rows), "time"], body


def best_sentence(facts: TuningFacts) -> str:
    """Return in one sentence what the best settings are worth on the rows held out."""
    best, usual = facts["trials"][0], facts["default_score"]
    if best["number"] == 0:
        return f"The defaults are best: {100 * usual:.1f}%."
    gain = 100 * (best["score"] - usual)
    return (
        f"Best: trial {best['number']}, {facts['metric']} {100 * best['score']:.1f}% on "
        f"{count(facts['held_out_rows'])} rows held out, {gain:.1f} points above the defaults. "
        "The best of many looks better here than on new rows."
    )
