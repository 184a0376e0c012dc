"""Facts to pages: one self-contained HTML file for an evaluation or a comparison.

Each section renders its part of the facts and is left out when that part is missing. Nothing is computed here.

>>> html = evaluation_page({"title": "My model", "evaluation": {"ks": [1], "metrics": {"p@1": {"value": 0.8125}}}})
>>> "My model" in html and "81.25" in html
True
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from longtail._version import __version__
from longtail.report import fact_rows as reading
from longtail.report import sentences
from longtail.report.formatting import flat_rows
from longtail.report.html import comparison_sections as differences
from longtail.report.html import sections
from longtail.report.html.example_section import examples
from longtail.report.html.overlap_section import splits
from longtail.report.html.page import Markup, definitions, element, figure, page, section, write_page
from longtail.report.html.tree_section import tree
from longtail.report.plots import charts as svg

__all__ = ["comparison_page", "evaluation_page", "write_page"]

Facts = Mapping[str, Any]
NOT_SHOWN = ("files", "parts", "format", "name")  # of a model's facts: for the program, or shown elsewhere


def evaluation_page(facts: Facts) -> str:
    """Return the page about one model on one dataset.

    Keys, all optional: `title`, `model`, `data`, `evaluation` (from `metrics.evaluate`), `labels`, `confusions`,
    `tree` (from `pipeline.page_tree`), `splits` (from `pipeline.page_splits`), `examples`, `timings` and `command`.
    """
    title, evaluation = str(facts.get("title") or "Evaluation"), facts.get("evaluation") or {}
    parts = [
        header(title, sentences.headline(facts), sections.tiles(evaluation)),
        sections.metrics(facts),
        sections.frequencies(evaluation),
        sections.calibration(evaluation),
        sections.labels(facts),
        sections.confusions(facts),
        tree(facts),
        splits(facts),
        examples(facts),
        _background(facts),
        footer(facts),
    ]
    return page(title, parts, facts)


def comparison_page(facts: Facts) -> str:
    """Return the page about two models on one dataset.

    Keys, all optional: `title`, `a` and `b` (a name, or facts with a `name`), `data`, `comparison` (from
    `metrics.compare`), `examples`, `timings` and `command`.

    >>> "No clear difference" in comparison_page({"comparison": {"ks": [1], "metrics": {"p@1": {"a": 0.5, "b": 0.6}}}})
    True
    """
    title = str(facts.get("title") or "Comparison")
    parts = [
        header(title, sentences.comparison_headline(facts)),
        differences.plots(facts),
        differences.numbers(facts),
        examples(facts),
        _background(facts),
        footer(facts),
    ]
    return page(title, parts, facts)


def header(title: str, sentence: str, *parts: object) -> Markup:
    """Return the head of a page: its title, what it says in a sentence, and parts below."""
    return element("header", element("h1", title), element("p", sentence, css="headline") if sentence else "", *parts)


def _background(facts: Facts) -> Markup:
    data = facts.get("data") or {}
    names = dict(zip(("a", "b"), reading.model_names(facts)))
    compared = [key for key in ("a", "b") if isinstance(facts.get(key), Mapping)]
    blocks = []
    if data.get("tail"):
        first, last = data["tail"][0], data["tail"][-1]
        caption = f"{last[0]:,} labels, from {first[1]:,} rows down to {last[1]:,}"
        plot = svg.tail_plot(data["tail"], title="The long tail of labels")
        blocks.append(figure(caption, "How often each label occurs; both axes by powers of ten.", plot))
    for heading, rows in (
        ("Data", reading.data_rows(data)),
        ("Model", _about(facts.get("model"))),
        *((names[key], _about(facts[key])) for key in compared),
        ("Time", flat_rows(facts.get("timings"))),
    ):
        if rows:
            blocks.append(element("div", element("h3", heading), definitions(rows)))
    return section("Behind the numbers", "", element("div", *blocks, css="pair") if blocks else "")


def _about(model: Any) -> list[tuple[str, str]]:
    return reading.fact_rows({key: value for key, value in (model or {}).items() if key not in NOT_SHOWN})


def footer(facts: Facts) -> Markup:
    """Return the end of a page: the command that made it, and where its numbers are."""
    command = element("pre", element("code", facts["command"])) if facts.get("command") else ""
    note = f"longtail {__version__}. The page holds all its numbers as JSON, in the element with the id “facts”."
    return element("footer", element("p", "Made with") if command else "", command, element("p", note))
