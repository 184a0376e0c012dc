"""The card of an explanation: the text with marked words, and for each label what spoke for and against it."""

from __future__ import annotations

from collections.abc import Sequence

from longtail.facts import ExplanationFacts, SuggestionFacts, WordFacts
from longtail.notebook import Html, card, h, join, meter, table
from longtail.report.cards.pieces import chance, label
from longtail.report.expert_sentences import expert_reasons
from longtail.report.fact_rows import marked_parts, missed, strongest, suggestions
from longtail.report.people import for_people
from longtail.report.tree_sentences import path_steps

TEXT_SHOWN = 1200  # letters
WORDS_SHOWN = 8  # behind one label
LEGEND = "Blue words spoke for a label, red dotted ones against it; the stronger, the deeper the colour."


def explanation_html(facts: ExplanationFacts) -> str:
    """Return the marked text, and each label with its words, the clusters it was found in and its experts.

    >>> words = [{"word": "wine", "weight": 0.5}, {"word": "red", "weight": -0.25}]
    >>> shown = explanation_html({"text": "red wine", "predicted": [{"label": "drink", "words": words}]})
    >>> shown.count("<mark"), "+0.50" in shown, "-0.25" in shown
    (4, True, True)
    """
    facts = for_people(facts)
    suggested = suggestions(facts)
    parts, most = marked_parts(_beginning(str(facts.get("text", ""))), suggested)
    text = h("p", *(part if weight is None else _mark(part, weight, most) for part, weight in parts), class_="text")
    if not suggested:
        return card("Explanation", text, h("p", "No label was suggested.", class_="soft"))
    heaviest = max((abs(weight) for one in suggested for weight, _ in expert_reasons(one)), default=1.0)
    rows = [[label(one), chance(one), _reasons(one, heaviest)] for one in suggested]
    left = missed(facts)
    told = h("p", "Missed: ", ", ".join(left)) if left else None
    has_words = any(one.get("words") for one in suggested)
    legend = h("p", h("small", LEGEND), class_="soft") if has_words else None
    return card("Explanation", text, table(["label", "probability", "why"], rows), told, legend)


def _reasons(suggestion: SuggestionFacts, heaviest: float) -> Html:
    """Return the words for and against a label, its clusters, and what each expert added."""
    words = strongest(suggestion, WORDS_SHOWN)
    most = max((abs(word["weight"]) for word in words), default=1.0) or 1.0
    pro, con = ([word for word in words if (word["weight"] > 0) == wanted] for wanted in (True, False))
    steps = path_steps(suggestion)
    way = [join([", ".join(names.split(", ")[:3]), " …" if names else None, h("small", f" {m}")]) for m, names in steps]
    experts = [
        h("li", meter(abs(weight) / heaviest, f"{weight:+.1f} ", bad=weight < 0), reason)
        for weight, reason in expert_reasons(suggestion)
    ]
    return join(
        [
            _words("for ", pro, most) if pro else None,
            _words("against ", con, most) if con else None,
            h("div", h("small", "clusters ", join(way, " › ")), class_="soft") if way else None,
            h("ul", *experts) if experts else None,
        ]
    )


def _words(said: str, words: Sequence[WordFacts], most: float) -> Html:
    """Return words with their weights, marked as they are in the text."""
    told = (
        h("span", _mark(word["word"], word["weight"], most), h("small", f" {word['weight']:+.2f}", class_="soft"))
        for word in words
    )
    return h("div", h("small", said, class_="soft"), *told, class_="words")


def _mark(word: object, weight: float, most: float) -> Html:
    """Return a word with its colour: blue for a label, red and dotted against it."""
    depth = f"{0.12 + 0.38 * min(abs(weight) / most, 1.0):.2f}"
    colour, css = ("63,131,214", None) if weight > 0 else ("217,86,74", "against")
    return h("mark", h("bdi", word), class_=css, style=f"background:rgba({colour},{depth})", title=f"{weight:+.3f}")


def _beginning(text: str) -> str:
    return text if len(text) <= TEXT_SHOWN else text[:TEXT_SHOWN].rsplit(" ", 1)[0] + " …"
