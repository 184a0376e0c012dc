"""Parameters of a project, which are texts in projects.cfg, as the values that longtail takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from longtail.errors import ParameterError, near

ANNIFS_OWN = {"access", "allow_learn", "analyzer", "backend", "language", "limit", "name", "transform", "vocab"}
OMIKUJIS = {"cluster_balanced", "cluster_k", "collapse_every_n_layers", "max_depth"}
Parser = Callable[[str], Any]


def whole(text: str) -> int:
    """Return a whole number."""
    return int(text)


def number(text: str) -> float:
    """Return a finite number."""
    value = float(text)
    if value != value or abs(value) == float("inf"):
        raise ValueError(text)
    return value


def rows_or_share(text: str) -> int | float:
    """Return a number of rows, or a share where there is a point."""
    return number(text) if "." in text else whole(text)


def flag(text: str) -> bool:
    """Return yes or no."""
    return {"1": True, "yes": True, "true": True, "on": True, "0": False, "no": False, "false": False, "off": False}[
        text.lower()
    ]


def whole_or_auto(text: str) -> int | str:
    """Return a whole number, or "auto"."""
    return "auto" if text == "auto" else whole(text)


def words(text: str) -> tuple[str, ...]:
    """Return the words of a list with commas."""
    return tuple(word.strip() for word in text.split(",") if word.strip())


ALLOWED: dict[Parser, str] = {
    whole: "a whole number",
    number: "a number",
    rows_or_share: "a whole number, or a share such as 0.5",
    flag: "true or false",
    whole_or_auto: "a whole number or auto",
    words: "words with commas between them",
    str: "a word",
}
COMMON: dict[str, Parser] = {"limit": whole, "calibrate": number, "random_state": whole, "stem": str}
FEATURES: dict[str, Parser] = {"min_df": rows_or_share, "max_df": rows_or_share, "ngram": whole, "max_features": whole}
TREE: dict[str, Parser] = {
    "C": number,
    "balanced": flag,
    "beam": whole,
    "branching": whole,
    "cost_sensitive": flag,
    "loss": str,
    "max_iter": whole,
    "max_leaf": whole,
    "n_trees": whole,
    "negatives": str,
    "overlap": whole_or_auto,
    "path_weight": number,
    "positive_weight": number,
    "tol": number,
}
HYBRID: dict[str, Parser] = {
    "batch_size": whole,
    "checkpoint": str,
    "device": str,
    "encoder": str,
    "encoder_precision": str,
    "epochs": whole,
    "experts": words,
    "long_texts": str,
    "lr": number,
    "max_length": whole,
    "minutes": number,
    "overlap": whole_or_auto,
    "runtime": str,
    "tail": number,
}
LOWER = {name.lower(): name for name in (*COMMON, *FEATURES, *TREE, *HYBRID)}  # projects.cfg knows no capitals


def read_settings(given: Mapping[str, Any], known: Mapping[str, Parser], warn: Callable[[str], None]) -> dict[str, Any]:
    """Return the values of the parameters that were given; a bad value, or a misspelled name, is a ParameterError.

    A name that is like none of ours, as those of another backend are, is warned of and left out.
    """
    out: dict[str, Any] = {}
    for key, value in given.items():
        name = LOWER.get(key.lower(), key)
        if name in known:
            if value is not None and str(value).strip().lower() not in ("", "none"):
                out[name] = _parsed(name, str(value).strip(), known[name])
        elif key in OMIKUJIS:
            warn(f"{key} is a parameter of Omikuji and has no effect here.")
        elif key not in ANNIFS_OWN:
            hint = near(key, [*known, *ANNIFS_OWN])
            if hint:
                raise ParameterError(name=key, problem=f"is no parameter of this backend.{hint}")
            warn(f"{key} is no parameter of this backend and has no effect.")
    return out


def _parsed(name: str, text: str, parser: Parser) -> Any:
    """Return the value that a text stands for."""
    try:
        return parser(text)
    except (ValueError, KeyError) as error:
        raise ParameterError(name=name, allowed=ALLOWED[parser], got=text) from error
