"""Sentences about what each expert of a hybrid adds to the score of a suggestion."""

from __future__ import annotations

from longtail.facts import ExpertFacts, SuggestionFacts

LEAST = 0.05  # of the log-odds, below which an expert is not named
EXPERTS = {
    "prototypes": "prototype of the label",
    "classifier": "classifier vector of the label",
    "tree": "label tree on words",
    "neighbours": "similar training texts",
    "names": "name in the text",
    "together": "all together",
}


def expert_sentences(suggestion: SuggestionFacts) -> list[str]:
    """Return a line for every expert that spoke for a label, strongest first; none where a model has no experts.

    >>> expert_sentences({"experts": [{"expert": "tree", "weight": 5.62, "probability": 0.987}]})
    ['+5.6  label tree on words: 99%']
    """
    return [f"{weight:+.1f}  {reason}" for weight, reason in expert_reasons(suggestion)]


def expert_reasons(suggestion: SuggestionFacts) -> list[tuple[float, str]]:
    """Return what every expert that spoke for a label adds to its log-odds, and why, strongest first."""
    told = (fact for fact in suggestion.get("experts", ()) if abs(fact["weight"]) >= LEAST)
    return [(fact["weight"], _reason(fact)) for fact in told]


def _similar_rows(fact: ExpertFacts) -> str:
    """Return the nearest training texts: by id and first words where the model keeps them, else by number.

    >>> _similar_rows({"similar": [{"row": 7, "id": "xboard", "text": "chess board"}, {"row": 1234, "text": "a game"}]})
    ', such as xboard “chess board”, row 1,234 “a game”'
    """
    if fact.get("similar"):
        told = (
            f"{row.get('id') or 'row ' + format(row['row'], ',')} “{row.get('text', '')}”" for row in fact["similar"]
        )
        return f", such as {', '.join(told)}"
    rows = ", ".join(f"{row:,}" for row in fact.get("rows", ()))
    return f", such as rows {rows}" if rows else ""


def _reason(fact: ExpertFacts) -> str:
    expert = fact["expert"]
    if expert == "start":
        return "what a label as frequent as this starts from"
    if expert == "tree":
        return f"{EXPERTS[expert]}: {fact.get('probability', 0):.0%}"
    if expert == "neighbours":
        return f"{EXPERTS[expert]}: {fact.get('share', 0):.0%}{_similar_rows(fact)}"
    if expert == "names":
        names = ", ".join(dict.fromkeys(f"“{match['name']}”" for match in fact.get("matches", ())))
        return f"{EXPERTS[expert]}: {names}" if names else EXPERTS[expert]
    return f"{EXPERTS[expert]}: similarity {fact.get('similarity', 0):.2f}"
