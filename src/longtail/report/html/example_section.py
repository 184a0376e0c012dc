"""Examples on a page: the text with its telling words marked, and the suggestions with the words behind them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from longtail.report.fact_rows import confidence, marked_parts, missed, strongest, suggestions
from longtail.report.html.page import Markup, element, section
from longtail.report.html.tree_section import steps
from longtail.report.plots.canvas import escape

Facts = Mapping[str, Any]
TEXT_SHOWN = 700  # letters of the text
WORDS_SHOWN = 5  # words behind one label


def examples(facts: Facts) -> Markup:
    """Return one card per example.

    >>> card = examples({"examples": [{"text": "red wine", "predicted": [{"label": "wine", "probability": 0.9}]}]})
    >>> "red wine" in card and "90%" in card
    True
    """
    cards = [_card(example) for example in facts.get("examples") or []]
    said = [p for e in facts.get("examples") or [] for p in suggestions(e)]
    lead = ""
    if any(p.get("words") for p in said):
        lead = "Words for a suggestion are marked blue, words against it red; the stronger the colour, the more they "
        lead += "weigh."
    if any(steps(p) for p in said):
        lead += " “In” names the clusters of labels a suggestion was found in, each with its own margin."
    return section("Examples", lead.strip(), *cards)


def _card(example: Facts) -> Markup:
    predicted = suggestions(example)
    gone = [element("li", element("bdi", name)) for name in missed(example)]
    tags = element("div", element("span", "Missed", css="soft"), element("ul", *gone, css="tags"), css="missed")
    return element(
        "article",
        element("p", _text(str(example.get("text", "")), predicted)),
        element("ol", *(_suggestion(p) for p in predicted), css="said") if predicted else "",
        tags if gone else "",
        css="card",
    )


def _suggestion(p: Facts) -> Markup:
    right = p.get("correct")
    judged = "" if right is None else element("span", "✓ right" if right else "✗ wrong", css="yes" if right else "no")
    words = [_word(word) for word in strongest(p, WORDS_SHOWN)]
    return element(
        "li",
        element("b", element("bdi", p.get("label", ""))),
        element("span", confidence(p), css="share"),
        judged or element("span"),
        element("span", Markup(", ".join(words)), css="words") if words else "",
        _path(p),
    )


def _path(p: Facts) -> Markup:
    """Return the clusters on the way to a suggestion."""
    way = [element("span", element("bdi", names), f"\u00a0{margin}") for margin, names in steps(p)]
    return element("span", "in ", Markup(" › ".join(way)), css="path") if way else Markup()


def _word(word: Facts) -> Markup:
    weight = element("span", f"{word['weight']:+.2f}", css="soft")
    return element("span", element("bdi", word["word"]), " ", weight, css="word")


def _text(text: str, predicted: Sequence[Facts]) -> Markup:
    if len(text) > TEXT_SHOWN:
        text = text[:TEXT_SHOWN].rsplit(" ", 1)[0] + " …"
    parts, most = marked_parts(text, predicted)
    out = []
    for part, weight in parts:
        if weight is None:
            out.append(escape(part))
        else:
            tone, depth = "mark" if weight > 0 else "unmark", 0.12 + 0.38 * abs(weight) / most
            style = f"background:rgba(var(--{tone}),{depth:.2f})"
            out.append(f'<mark style="{style}" title="{weight:+.2f}">{escape(part)}</mark>')
    return Markup("".join(out))
