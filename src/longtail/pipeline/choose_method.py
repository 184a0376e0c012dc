"""Which method suits some data, and why: one table of rules, each with the measurements it rests on.

The first rule whose needs are all met is taken; the last one needs nothing. To add a method, add a rule above those
that it does better than, and what it needs to the class `Situation`.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from longtail.data import Dataset, rows_per_label
from longtail.encoder import DEFAULT_ENCODER, find_encoder
from longtail.facts import MethodFacts
from longtail.notebook import shown_as
from longtail.pipeline.shown import ShownMethod
from longtail.training import import_torch

AUTO = "auto"  # in place of a method: the one that suits the data
ENOUGH_ROWS = 20_000  # for an encoder; the smallest data it was measured on has 25,000
NAMES = {
    "tree": "a label tree",
    "ova": "one linear classifier per label",
    "hybrid": "an encoder that reads texts and the texts of labels, beside a label tree, similar texts and names",
}


@dataclass(frozen=True)
class Situation:
    """What the choice of a method depends on: the data, what is installed, and the machine."""

    rows: int
    labels: int  # that have a row
    pairs: int  # of a row and a label
    has_texts: bool
    has_label_texts: bool
    own_features: bool  # texts are to become rows in a way of the user's own

    @property
    def rows_per_label(self) -> float:
        """Return how many rows a label has, on average."""
        return self.pairs / max(self.labels, 1)

    @cached_property
    def has_encoder(self) -> bool:
        """Say whether the packages of an encoder are installed, and the default encoder."""
        packages = all(importlib.util.find_spec(name) is not None for name in ("torch", "sentence_transformers"))
        return packages and find_encoder(DEFAULT_ENCODER) is not None

    @cached_property
    def has_gpu(self) -> bool:
        """Say whether torch finds a GPU; only asked where all else is there, since it takes seconds."""
        return bool(import_torch("A GPU").cuda.is_available())


class Need(NamedTuple):
    """Something that a method needs to be chosen, in words and as a test."""

    words: Callable[[Situation], str]
    is_met: Callable[[Situation], bool]


@dataclass(frozen=True)
class Rule:
    """A method with its settings, what it needs to be chosen, what was measured, and the next best method."""

    method: str
    settings: dict[str, Any]
    needs: tuple[Need, ...]
    measured: str
    runner_up: str
    runner_up_why: str
    sources: tuple[str, ...]  # files under benchmarks/results

    def missing(self, situation: Situation) -> list[str]:
        """Return what the method lacks to be chosen, in words; what is slow to find out is asked last."""
        lacking: list[str] = []
        for need in self.needs:
            if (lacking and need is GPU) or not need.is_met(situation):
                lacking.append(need.words(situation))
        return lacking


TEXTS = Need(lambda s: "texts in place of rows of numbers", lambda s: s.has_texts)
LABEL_TEXTS = Need(lambda s: "texts of labels", lambda s: s.has_label_texts)
NO_FEATURES = Need(lambda s: "no settings of its own for words", lambda s: not s.own_features)
MANY_ROWS = Need(lambda s: f"{ENOUGH_ROWS:,} rows (here {s.rows:,})", lambda s: s.rows >= ENOUGH_ROWS)
ENCODER = Need(lambda s: f"the packages torch, sentence-transformers and {DEFAULT_ENCODER}", lambda s: s.has_encoder)
GPU = Need(lambda s: "a GPU", lambda s: s.has_gpu)
FEW_LABELS = Need(lambda s: f"fewer than 2,000 labels (here {s.labels:,})", lambda s: s.labels < 2_000)
SOME_LABELS = Need(lambda s: f"2,000 to 5,000 labels (here {s.labels:,})", lambda s: 2_000 <= s.labels <= 5_000)
MORE_LABELS = Need(lambda s: f"2,000 to 15,000 labels (here {s.labels:,})", lambda s: 2_000 <= s.labels <= 15_000)
FEW_ROWS = Need(lambda s: f"fewer than 3 rows per label (here {s.rows_per_label:.1f})", lambda s: s.rows_per_label < 3)

RULES = (  # the first that has all it needs is taken
    Rule(
        method="hybrid",
        settings={},
        needs=(TEXTS, LABEL_TEXTS, NO_FEATURES, MANY_ROWS, ENCODER, GPU),
        measured="with texts of labels and a GPU its P@1 was 2.1 to 7.8 points above a label tree's on five sets of "
        "25,000 to 308,000 rows, in one to four minutes",
        runner_up="tree",
        runner_up_why="needs no GPU and trains in seconds to minutes",
        sources=("hybrid.json",),
    ),
    Rule(
        method="tree",
        settings={"overlap": AUTO},
        needs=(FEW_LABELS,),
        measured="with fewer than 2,000 labels its P@1 was as high as that of one classifier per label, or up to 0.9 "
        "points above it",
        runner_up="ova",
        runner_up_why="may be as good, and is exact: no label is missed by a search",
        sources=("methods.json",),
    ),
    Rule(
        method="ova",
        settings={},
        needs=(SOME_LABELS,),
        measured="with 2,000 to 5,000 labels its P@1 was 0.1 to 0.5 points above a label tree's in all four cases "
        "measured, for about six times the training time",
        runner_up="tree",
        runner_up_why="is some tenths of a point behind, and several times as fast",
        sources=("disentangle.json", "methods.json"),
    ),
    Rule(
        method="ova",
        settings={},
        needs=(FEW_ROWS, MORE_LABELS),
        measured="with fewer than 3 rows per label its P@1 was about half a point above a label tree's, for several "
        "times the training time",
        runner_up="tree",
        runner_up_why="is about half a point behind, and several times as fast",
        sources=("disentangle.json", "methods.json"),
    ),
    Rule(
        method="tree",
        settings={"overlap": AUTO},
        needs=(),
        measured="with more labels its P@1 was 0.1 to 0.6 points above that of one classifier per label, for a fifth "
        "of the training time",
        runner_up="ova",
        runner_up_why="some tenths of a point behind, and slower the more labels there are",
        sources=("disentangle.json",),
    ),
)


def choose_method(data: Dataset, *, own_features: bool = False, has_label_texts: bool = False) -> MethodFacts:
    """Return which method suits the data, with which settings, and why.

    `own_features` says that texts are to become rows in a way of the user's own, `has_label_texts` that labels will
    have texts though the data has none.

    >>> from longtail.data.synthetic.generate import make_topics
    >>> choice = choose_method(make_topics(300, 10)[0])
    >>> choice["method"], choice["settings"], choice["runner_up"]
    ('tree', {'overlap': 'auto'}, 'ova')
    """
    counts = rows_per_label(data.Y)
    situation = Situation(
        rows=data.n_rows,
        labels=int(counts.size),
        pairs=int(counts.sum()),
        has_texts=data.texts is not None,
        has_label_texts=has_label_texts or data.label_texts is not None,
        own_features=own_features,
    )
    return shown_as(ShownMethod, choose_for(situation))


def choose_for(situation: Situation) -> MethodFacts:
    """Return the method that suits a situation, and what would change the choice."""
    missing = [rule.missing(situation) for rule in RULES]
    rule = RULES[missing.index([])]
    others = {r.method: _joined(lacks) for r, lacks in reversed(list(zip(RULES, missing, strict=True))) if lacks}
    each = f"{situation.rows_per_label:.1f} rows each"
    return {
        "method": rule.method,
        "name": NAMES[rule.method],
        "settings": dict(rule.settings),
        "why": f"{situation.rows:,} rows, {situation.labels:,} labels with {each}: {rule.measured}.",
        "sources": list(rule.sources),
        "runner_up": rule.runner_up,
        "runner_up_why": f"{NAMES[rule.runner_up]}: {rule.runner_up_why}.",
        "would_change": [
            f"{method} with {others[method]}" for method in NAMES if method != rule.method and method in others
        ],
    }


def _joined(words: list[str]) -> str:
    """Return words as they stand in a sentence.

    >>> _joined(["a", "b", "c"])
    'a, b and c'
    """
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
