"""Look at a saved tokenizer before the tokenizers library does: known parts only, and no token outside the vocabulary.

A tokenizer is JSON that says how texts are cut: patterns among it, which could take for ever on a text, and numbers of
tokens, by which rows of the embedding are taken.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

FIELDS = (
    "version",
    "truncation",
    "padding",
    "added_tokens",
    "normalizer",
    "pre_tokenizer",
    "post_processor",
    "decoder",
    "model",
)
MODELS = ("BPE", "Unigram", "WordLevel", "WordPiece")
STEPS = {
    "normalizer": (
        "BertNormalizer",
        "ByteLevel",
        "Lowercase",
        "NFC",
        "NFD",
        "NFKC",
        "NFKD",
        "Nmt",
        "Precompiled",
        "Prepend",
        "Replace",
        "Sequence",
        "Strip",
        "StripAccents",
    ),
    "pre_tokenizer": (
        "BertPreTokenizer",
        "ByteLevel",
        "CharDelimiterSplit",
        "Digits",
        "Metaspace",
        "Punctuation",
        "Sequence",
        "Split",
        "UnicodeScripts",
        "Whitespace",
        "WhitespaceSplit",
    ),
    "post_processor": ("BertProcessing", "ByteLevel", "RobertaProcessing", "Sequence", "TemplateProcessing"),
}
LONGEST_WORD = 1000  # characters that word pieces are looked for in; the time grows with its square
MOST_STEPS, MOST_SPECIAL = 32, 16
# regular expressions of published tokenizers; any other could take for ever on some text
_ENDINGS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_REST = r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
PATTERNS = (
    " {2,}",
    " +",
    r"\s+",
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    rf"{_ENDINGS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}{{1,3}}|{_REST}",
    rf"{_ENDINGS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}|{_REST}",
)


def tokenizer_problem(text: str, vocab_size: int) -> str | None:
    """Return why a saved tokenizer is refused, or None; `vocab_size` is the number of tokens of its transformer."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return "the tokenizer is not JSON"
    try:
        return _problem(found, vocab_size)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
        return "the tokenizer is not one of the tokenizers library"


def _problem(found: dict[str, Any], vocab_size: int) -> str | None:
    """Return the same of the object that the JSON is; one that is not of its form raises KeyError and the like."""
    unknown = next((name for name in found if name not in FIELDS), None)
    if unknown is not None:
        return f"the tokenizer has an unknown entry {unknown[:60]!r}"
    for name, known in STEPS.items():
        problem = _steps_problem(name, found.get(name), known)
        if problem is not None:
            return problem
    problem = _model_problem(found["model"])
    if problem is not None:
        return problem
    for token in _tokens(found):
        if isinstance(token, bool) or not isinstance(token, int) or not 0 <= token < vocab_size:
            return f"the tokenizer must have tokens from 0 to {vocab_size - 1}; it has {str(token)[:60]}"
    return None


def _steps_problem(name: str, step: dict[str, Any] | None, known: tuple[str, ...]) -> str | None:
    """Return why a step of a tokenizer, or one of those within it, is refused."""
    waiting, seen = [step], 0
    while waiting:
        one = waiting.pop()
        if one is None:
            continue
        seen += 1
        if one["type"] not in known or seen > MOST_STEPS:
            return f"the {name} of the tokenizer is {str(one['type'])[:60]!r}, or has more than {MOST_STEPS} steps"
        if one["type"] == "Sequence":
            inner = [one[key] for key in ("normalizers", "pretokenizers", "processors") if key in one]
            waiting += inner[0]
        pattern = one.get("pattern")
        if isinstance(pattern, dict) and pattern.get("Regex", " +") not in PATTERNS:
            return f"the {name} of the tokenizer has a pattern that is not known, {str(pattern['Regex'])[:60]!r}"
        if len(one.get("single", ())) > MOST_SPECIAL or len(one.get("pair", ())) > MOST_SPECIAL:
            return f"the {name} of the tokenizer adds more than {MOST_SPECIAL} tokens"
    return None


def _model_problem(model: dict[str, Any]) -> str | None:
    """Return why the model of a tokenizer is refused."""
    kind = model.get("type", "BPE")  # older files leave it out
    if kind not in MODELS:
        return f"the model of the tokenizer must be one of {list(MODELS)}; it is {str(kind)[:60]!r}"
    if kind == "WordPiece" and not 1 <= model["max_input_chars_per_word"] <= LONGEST_WORD:
        return f"the tokenizer must look for pieces in words of at most {LONGEST_WORD} characters"
    if kind in ("WordPiece", "WordLevel") and model["unk_token"] not in model["vocab"]:
        return "the tokenizer has no token for unknown words"
    if kind == "Unigram" and not 0 <= (model["unk_id"] or 0) < len(model["vocab"]):
        return "the tokenizer has no token for unknown words"
    if kind == "BPE" and model.get("dropout"):
        return "the tokenizer cuts words at random"
    return None


def _tokens(found: dict[str, Any]) -> Iterator[Any]:
    """Yield the numbers of all tokens that a tokenizer may give."""
    vocabulary = found["model"]["vocab"]
    yield from vocabulary.values() if isinstance(vocabulary, dict) else (len(vocabulary) - 1,)
    for token in found.get("added_tokens") or ():
        yield token["id"]
    waiting = [found.get("post_processor")]
    while waiting:
        one = waiting.pop()
        if one is None:
            continue
        waiting += one.get("processors", ())
        for special in (one.get("special_tokens") or {}).values():
            if len(special["ids"]) > MOST_SPECIAL:
                raise ValueError("many tokens")
            yield from special["ids"]
        for end in ("sep", "cls"):
            if end in one:
                yield one[end][1]
