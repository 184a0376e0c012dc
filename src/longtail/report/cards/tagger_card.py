"""The card of a trained Tagger: what it is, how good it was on rows held out, and how to go on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from longtail.facts import DecisionFacts, ModelFacts
from longtail.notebook import Html, card, facts, fold, h, join, meter, table
from longtail.report.cards.pieces import cell
from longtail.report.decision_rows import decision_sentence
from longtail.report.expert_sentences import EXPERTS
from longtail.report.fact_rows import metric_grid
from longtail.report.formatting import count, file_size, percent
from longtail.report.model_rows import model_settings, origin_rows, setting_rows, text_settings

SHOWN = ("P", "R", "nDCG", "PSP")


def tagger_html(
    model: ModelFacts, *, n_bytes: int | None = None, ways: Sequence[tuple[str, str]] = (), trained_twice: bool = True
) -> str:
    """Return the facts about a trained Tagger; `ways` are calls to go on with, and what each is for.

    >>> held_out = {"rows": 50, "metrics": {"p@1": {"value": 0.8, "low": 0.7, "high": 0.9}}}
    >>> shown = tagger_html({"method": "tree", "labels": 30, "held_out": held_out}, ways=[("tagger.tag(texts)", "")])
    >>> all(told in shown for told in ("label tree", "30", "80.0", "70.0–90.0", "tagger.tag(texts)"))
    True
    """
    rows = origin_rows(model)
    rows += [] if n_bytes is None else [("size", file_size(n_bytes))]
    settings = [*model_settings(model), *text_settings(model)]
    body = [facts(rows), *_held_out(model.get("held_out"), trained_twice)]
    told: DecisionFacts | None = model.get("decision")
    decision = decision_sentence(told or {})
    body += [h("p", decision)] if decision else []
    body += _experts(model.get("experts") or {})
    if settings:
        main = ", ".join(f"{name} {value}" for name, value in setting_rows(model))
        every = facts((setting.name, setting.value) for setting in settings)
        body.append(fold(join(["Settings", h("small", f" {main}", class_="soft")]), every))
    if ways:
        calls = ([h("code", call), what] for call, what in ways)
        body.append(fold("How to go on", table(["", ""], calls)))
    return card("Tagger", *body, note="fitted")


def _experts(experts: Mapping[str, Mapping[str, float]]) -> list[Html]:
    """Return how good every expert of a hybrid is alone, and all together, on the rows held out."""
    if not experts:
        return []
    names = list(dict.fromkeys(name for found in experts.values() for name in found))
    rows = [
        [EXPERTS.get(expert, expert), *(meter(found.get(name) or 0.0, percent(found.get(name), 1)) for name in names)]
        for expert, found in experts.items()
    ]
    return [fold("Experts, on the rows held out", table(["percent", *names], rows), open=True)]


def _held_out(held_out: Mapping[str, Any] | None, trained_twice: bool) -> list[Html]:
    """Return how good the model was on the rows held out of its training."""
    if not held_out:
        return [h("p", "No rows were held out, so nothing is known of its quality yet.", class_="soft")]
    ks, grid = metric_grid(held_out["metrics"])
    body = [[row["name"], *(cell(metric) for metric in row["at_k"])] for row in grid if row["name"] in SHOWN]
    after = ", before they were added to the training" if trained_twice else ""
    lead = h("p", f"On {count(held_out['rows'])} rows held out{after}:")
    return [lead, table(["percent", *(f"at {k}" for k in ks)], body)]
