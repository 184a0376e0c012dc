"""Read and check the purpose of a decision: a target, a guarantee or a goal at k, given in words."""

from __future__ import annotations

import re
from dataclasses import dataclass

from longtail.errors import ParameterError, near, with_decimal_point
from longtail.validate import check_integer, check_real

COVERAGE, MACRO_F1, MACRO_RECALL = 0, 1, 2  # numbers of the goals in kernels
GOALS = {"coverage": COVERAGE, "macro-f1": MACRO_F1, "macro-recall": MACRO_RECALL}
SHARES = ("precision", "recall")
TARGETS = (*SHARES, "labels-per-row", "f1", "macro-f1")
GUARANTEES = ("missed", "wrong")
PER = ("global", "band", "label")
MOST_LABELS = 1000  # of a row, that can be asked for
WORDS = "precision=0.8, recall=0.9, labels-per-row=3, f1, macro-f1 or a goal at k such as macro-f1@5"
GOAL_WORDS = "coverage, macro-f1 or macro-recall with @ and the labels per row, such as macro-f1@5 or macro-f1@5:0.3"
PERCENT = re.compile(r"(\d{1,3}(?:\.\d+)?) ?%")
GOAL = re.compile(r"([a-z0-9-]+)@(\d{1,7})(?::(\d*\.?\d+))?$")


@dataclass(frozen=True)
class KGoal:
    """A goal over labels with k labels for every row; `mix` is its share beside P@k.

    >>> str(KGoal("macro-f1", 5)), str(KGoal("coverage", 3, 0.5))
    ('macro-f1@5', 'coverage@3:0.5')
    """

    name: str
    k: int
    mix: float = 1.0

    @property
    def number(self) -> int:
        """The number of the goal in kernels."""
        return GOALS[self.name]

    def __str__(self) -> str:
        return f"{self.name}@{self.k}" + ("" if self.mix == 1.0 else f":{self.mix:g}")


@dataclass(frozen=True)
class Target:
    """What thresholds are chosen for: a name and, of some, the value that must be reached.

    >>> str(Target("precision", 0.8)), str(Target("f1"))
    ('precision=0.8', 'f1')
    """

    name: str
    value: float | None = None

    def __str__(self) -> str:
        return self.name if self.value is None else f"{self.name}={self.value:g}"


def read_goal(text: str, argument: str = "optimise") -> KGoal:
    """Return the goal at k that a word names.

    >>> read_goal("macro-f1@5:0.25")
    KGoal(name='macro-f1', k=5, mix=0.25)
    """
    found = GOAL.match(text) if isinstance(text, str) else None
    if found is None or found[1] not in GOALS:
        hint = near(found[1], GOALS) if found is not None else ""
        raise ParameterError(name=argument, allowed=GOAL_WORDS, got=text, hint=hint)
    k = check_integer(argument, int(found[2]), low=1, high=MOST_LABELS)
    mix = 1.0 if found[3] is None else check_real(argument, float(found[3]), low=0, high=1)
    return KGoal(found[1], k, mix)


def read_target(text: str, argument: str = "target") -> Target | KGoal:
    """Return the target, or the goal at k, that a word names.

    >>> read_target("recall=0.9"), read_target("macro-f1"), read_target("macro-f1@5")
    (Target(name='recall', value=0.9), Target(name='macro-f1', value=None), KGoal(name='macro-f1', k=5, mix=1.0))
    """
    if isinstance(text, str) and "@" in text:
        return read_goal(text, argument)
    name, value = _split(text, argument, TARGETS, WORDS)
    if (value is None) != (name in ("f1", "macro-f1")):
        raise ParameterError(name=argument, allowed=WORDS, got=text)
    if value is None:
        return Target(name)
    if name == "labels-per-row":
        return Target(name, check_real(f"{argument} {name}", value, low=0, high=MOST_LABELS, open_low=True))
    return Target(name, check_real(f"{argument} {name}", value, low=0, high=1, open_low=True))


def read_guarantee(text: str, argument: str = "guarantee") -> Target:
    """Return the guarantee that a word names: the share of missed or of wrong labels, and the most it may be.

    >>> read_guarantee("missed=0.1")
    Target(name='missed', value=0.1)
    """
    words = "missed=0.1 or wrong=0.1, with a share between 0 and 1"
    name, value = _split(text, argument, GUARANTEES, words)
    if value is None or not 0 < value < 1:
        raise ParameterError(name=argument, allowed=words, got=text)
    return Target(name, value)


def _split(text: str, argument: str, known: tuple[str, ...], words: str) -> tuple[str, float | None]:
    """Return the name and the number of `name=number`, or the name alone."""
    name, equals, number = text.partition("=") if isinstance(text, str) else ("", "", "")
    try:
        value = float(number) if equals else None
    except ValueError:
        dotted = with_decimal_point(number)
        if name in known and dotted is not None:
            raise ParameterError(name=argument, allowed=words, got=text, hint=f" Write {name}={dotted}.") from None
        percent = PERCENT.fullmatch(number.strip())
        hint = f" Write {name}={float(percent[1]) / 100:g}." if name in known and percent is not None else ""
        if name in known:
            raise ParameterError(name=argument, allowed=words, got=text, hint=hint) from None
        name, value = "", None
    if name not in known:
        raise ParameterError(name=argument, allowed=words, got=text, hint=near(str(text).partition("=")[0], known))
    return name, value
