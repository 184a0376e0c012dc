"""Worked examples on a page: texts with their telling words marked, and the suggestions with the words behind them."""

from __future__ import annotations

from collections.abc import Sequence

from longtail.facts import ExplanationFacts, SuggestionFacts
from longtail.report.expert_sentences import expert_sentences
from longtail.report.fact_rows import confidence, marked_parts, missed, strongest, suggestions
from longtail.report.html.rendering import View
from longtail.report.people import for_people
from longtail.report.tree_sentences import path_steps

TEXT_SHOWN = 700  # letters of the text
WORDS_SHOWN = 5  # words behind one label


def example_section(examples: Sequence[ExplanationFacts]) -> View | None:
    """Return one card per example.

    >>> view = example_section([{"text": "red wine", "predicted": [{"label": "wine", "probability": 0.9}]}])
    >>> view["cards"][0]["parts"]
    [{'text': 'red wine', 'weight': None}]
    """
    suggested = [suggestion for example in examples for suggestion in suggestions(example)]
    view: View = {
        "cards": [card(example) for example in examples],
        "has_words": any(suggestion.get("words") for suggestion in suggested),
        "has_paths": any(path_steps(suggestion) for suggestion in suggested),
        "has_experts": any(expert_sentences(suggestion) for suggestion in suggested),
    }
    return view if examples else None


def card(example: ExplanationFacts) -> View:
    """Return an example with its marked text, its suggestions and the labels that were missed."""
    example = for_people(example)
    return {
        "parts": _text_parts(str(example.get("text", "")), suggestions(example)),
        "suggestions": [_suggestion(suggestion) for suggestion in suggestions(example)],
        "missed": missed(example),
    }


def _suggestion(suggestion: SuggestionFacts) -> View:
    return {
        "label": suggestion.get("label", ""),
        "id": suggestion.get("id", ""),
        "confidence": confidence(suggestion),
        "correct": suggestion.get("correct"),
        "words": [(word["word"], f"{word['weight']:+.2f}") for word in strongest(suggestion, WORDS_SHOWN)],
        "path": path_steps(suggestion),
        "experts": expert_sentences(suggestion),
    }


def _text_parts(text: str, suggested: Sequence[SuggestionFacts]) -> list[View]:
    """Return the beginning of a text in parts; a telling word has its weight, a tone and a depth of colour."""
    if len(text) > TEXT_SHOWN:
        text = text[:TEXT_SHOWN].rsplit(" ", 1)[0] + " …"
    parts, most = marked_parts(text, suggested)
    out: list[View] = []
    for part, weight in parts:
        view: View = {"text": part, "weight": None}
        if weight is not None:
            tone, depth = "mark" if weight > 0 else "unmark", f"{0.12 + 0.38 * abs(weight) / most:.2f}"
            view = {"text": part, "weight": f"{weight:+.2f}", "tone": tone, "depth": depth}
        out.append(view)
    return out
