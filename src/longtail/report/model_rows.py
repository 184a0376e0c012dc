"""Rows that describe a model: its method, its training data, and the settings that were in effect."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from longtail.facts import ModelFacts
from longtail.report.fact_rows import fact_rows
from longtail.report.formatting import PLAIN_NAMES, count, decimal, fact_text

METHODS = {
    "tree": "label tree",
    "ova": "one linear classifier per label",
    "dft": "network with a narrow output layer",
    "prime": "encoder that compares texts with labels",
    "hybrid": "experts with learned weights",
}
READERS = {
    "TfidfFeatures": "words weighed by TF-IDF",
    "BeginningFeatures": "words weighed by TF-IDF, those at the beginning of a text apart too",
    "EncoderFeatures": "a sentence encoder",
}
MAIN = (  # settings worth a line at the top, as far as a model has them
    "C",
    "branching",
    "max_leaf",
    "beam",
    "overlap",
    "n_trees",
    "preset",
    "experts",
    "encoder",
    "k",
    "width",
    "epochs",
    "lr",
    "batch_size",
)
MAIN_OF_TEXTS = ("analyzer", "ngrams", "beginning", "min_df", "stop_words")
NOT_ON_ONE_LINE = ("max leaf", "lr", "batch size", "stop words")  # nor what is 1, but for C
TOLD = (
    "method",
    "params",
    "settings",
    "reads",
    "trained_rows",
    "labels",
    "features",
    "calibrated",
    "trained_on",
    "name",
)
LEFT_OPEN = (None, "auto")


class Setting(NamedTuple):
    """A parameter with the value that was used, and whether the choice was left open."""

    name: str
    value: str
    chosen: bool


def model_settings(model: ModelFacts) -> list[Setting]:
    """Return every setting of a model as it was used; a setting that is off or without a limit is "none".

    >>> model_settings({"params": {"C": None, "beam": 5}, "settings": {"C": 0.25, "beam": 5}})
    [Setting(name='C', value='0.25', chosen=True), Setting(name='beam', value='5', chosen=False)]
    """
    given: Mapping[str, Any] = model.get("params") or {}
    used: Mapping[str, Any] = model.get("settings") or {k: v for k, v in given.items() if v not in LEFT_OPEN}
    return [
        Setting(_plain(name), _text(name, value), value is not None and given.get(name, 0) in LEFT_OPEN)
        for name, value in used.items()
    ]


def text_settings(model: ModelFacts) -> list[Setting]:
    """Return how texts become rows: the settings of the features."""
    return [Setting(_plain(name), _text(name, value), False) for name, value in (model.get("reads") or {}).items()]


def main_settings(model: ModelFacts) -> list[Setting]:
    """Return the settings that matter most, those of the model before those of its texts."""
    wanted = ([_plain(name) for name in MAIN], model_settings(model)), (MAIN_OF_TEXTS, text_settings(model))
    out = []
    for names, settings in wanted:
        known = {setting.name: setting for setting in settings}
        out += [known[_plain(name)] for name in names if _plain(name) in known and known[_plain(name)].value != "none"]
    return out


def setting_rows(model: ModelFacts) -> list[tuple[str, str]]:
    """Return the main settings as named values; what was left open is marked."""
    return [(s.name, s.value + (" (auto)" if s.chosen else "")) for s in main_settings(model)]


def origin_rows(model: ModelFacts) -> list[tuple[str, str]]:
    """Return what a model is and what it was trained on, as named values."""
    trained: Mapping[str, Any] = model.get("trained_on") or {}
    vocabulary: Mapping[str, Any] = trained.get("vocabulary") or {}
    seed = (model.get("settings") or {}).get("random_state")
    reads = (model.get("reads") or {}).get("features")
    rows = [
        ("method", _method(model)),
        ("reads", None if reads is None else READERS.get(str(reads), str(reads))),
        ("trained on", trained.get("name") or None),
        ("rows", count(model.get("trained_rows"))),
        ("labels", count(model.get("labels"))),
        ("features", count(model.get("features"))),
        ("labels per row", decimal(trained.get("labels_per_row"))),
        ("vocabulary", f"{vocabulary.get('name')} ({count(vocabulary['concepts'])} concepts)" if vocabulary else None),
        ("learned later", _updates(trained)),
        ("probabilities", None if "calibrated" not in model else _calibrated(model)),
        ("seed", None if seed is None else str(seed)),
    ]
    return [(name, value) for name, value in rows if value]


def other_rows(model: ModelFacts) -> list[tuple[str, str]]:
    """Return the facts about a model that are neither its settings nor what it was trained on."""
    return fact_rows({key: value for key, value in model.items() if key not in TOLD})


def model_line(model: ModelFacts) -> str:
    """Return in one line what a model is, for the terminal.

    >>> model_line({"method": "tree", "trained_rows": 1200, "labels": 30, "settings": {"C": 0.25, "beam": 5}})
    'Model: label tree (tree), 1,200 rows, 30 labels; C 0.25, beam 5.'
    """
    method = _method(model)
    if not method:
        return ""
    sizes = ((model.get("trained_rows"), "rows"), (model.get("labels"), "labels"), (model.get("features"), "features"))
    told = ", ".join([method, *(f"{count(number)} {name}" for number, name in sizes if number)])
    settings = ", ".join(
        f"{setting.name} {setting.value}"
        for setting in main_settings(model)
        if setting.name == "C" or (setting.value != "1" and setting.name not in NOT_ON_ONE_LINE)
    )
    return f"Model: {told}{'; ' + settings if settings else ''}."


def _method(model: ModelFacts) -> str | None:
    method = model.get("method")
    return f"{METHODS[method]} ({method})" if method in METHODS else method or model.get("model")


def _updates(trained: Mapping[str, Any]) -> str | None:
    """Return how often a model learned new rows after its training."""
    times = trained.get("updates")
    if not times:
        return None
    return f"{count(trained.get('rows_of_updates'))} of the rows, in {count(times)} update{'s' * (times != 1)}"


def _calibrated(model: ModelFacts) -> str:
    if not model.get("calibrated"):
        return "none: scores only"
    rows = (model.get("held_out") or {}).get("rows")
    return "calibrated" + (f" on {count(rows)} rows held out" if rows else "")


def _plain(name: str) -> str:
    return PLAIN_NAMES.get(name, name).replace("_", " ")


def _text(name: str, value: Any) -> str:
    """Return the value of a setting as text; a pair of n-gram lengths as a range."""
    if value is None:
        return "none"
    if name == "ngrams" and isinstance(value, list | tuple) and len(value) == 2:
        low, high = value
        return str(low) if low == high else f"{low} to {high}"
    return fact_text(name, value)
