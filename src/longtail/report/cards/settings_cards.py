"""The cards of a search for settings, and of the choice of a method."""

from __future__ import annotations

from longtail.facts import MethodFacts, TuningFacts
from longtail.notebook import card, fold, h, table
from longtail.notebook import facts as fact_table
from longtail.report.tuning_rows import best_sentence, trial_table

TRIALS_SHOWN = 10


def tuning_html(facts: TuningFacts) -> str:
    """Return the best trials of a search, and what the best is worth."""
    columns, rows = trial_table(facts, TRIALS_SHOWN)
    names = [name.strip() for name in columns]
    found = table(names, rows, tuple(range(2, len(names))))
    go_on = h("p", h("code", "tuning.tagger()"), " makes a Tagger with the best settings.", class_="soft")
    return card("Tuning", h("p", best_sentence(facts)), found, go_on, note=f"{facts['method']}, {facts['metric']}")


def method_html(facts: MethodFacts) -> str:
    """Return which method suits some data and why."""
    settings = ", ".join(f"{name}={value!r}" for name, value in facts["settings"].items())
    rows = [("settings", settings or "defaults"), ("why", facts["why"])]
    rows.append(("next best", f"{facts['runner_up']}: {facts['runner_up_why']}"))
    changes = h("ul", *(h("li", line) for line in facts["would_change"]))
    more = fold("What would change the choice", changes) if facts["would_change"] else None
    return card(f"Method: {facts['method']}", fact_table(rows), more, note=facts["name"])
