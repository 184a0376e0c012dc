"""Pieces that cards share: labels with their probability, plots, and cells with an interval."""

from __future__ import annotations

from collections.abc import Sequence

from longtail.facts import MetricFacts, SuggestionFacts
from longtail.notebook import Html, escape, h, join, meter
from longtail.report.fact_rows import confidence
from longtail.report.formatting import percent, percent_range
from longtail.report.html.rendering import Figure
from longtail.report.plots.canvas import finite


def label(suggestion: SuggestionFacts) -> Html:
    """Return the name of a label, with the id of machines beside it where it has a name of its own."""
    id = suggestion.get("id")
    return join([h("bdi", suggestion.get("label", "")), h("small", " ", h("bdi", id), class_="soft") if id else None])


def chance(suggestion: SuggestionFacts) -> Html:
    """Return the probability of a suggestion as a bar and in percent; its score where there is no probability."""
    told, share = confidence(suggestion), suggestion.get("probability")
    return meter(share, told) if finite(share) else Html(escape(told))


def cell(metric: MetricFacts, digits: int = 1) -> Html:
    """Return a metric in percent, with its interval."""
    interval = percent_range(metric)
    return join([percent(metric.get("value"), digits), h("small", f" {interval}", class_="soft") if interval else None])


def plots(figures: Sequence[Figure | None]) -> list[Html]:
    """Return plots with their captions beside each other; nothing if there are none."""
    drawn = [
        h("figure", h("figcaption", figure.caption, h("p", h("small", figure.note), class_="soft")), Html(figure.svg))
        for figure in figures
        if figure is not None and figure.svg
    ]
    return [h("div", *drawn, class_="plots")] if drawn else []
