"""How a check fails: one sentence that names the estimator."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from longtail.data import TopK
from longtail.errors import LongtailError


class CheckFailed(LongtailError):
    """An estimator does not do what every estimator must do."""


def require(ok: bool, estimator: object, sentence: str) -> None:
    """Fail with a sentence unless something holds."""
    if not ok:
        raise CheckFailed(f"{type(estimator).__name__}: {sentence}")


def refuses(estimator: object, function: Callable[[], object], errors: type[Exception], what: str) -> None:
    """Fail unless a call is refused by an error of this kind, in one sentence."""
    try:
        function()
    except errors as error:
        sentence = str(error)
        require(bool(sentence) and "\n" not in sentence, estimator, f"{what} must be refused in one sentence")
        return
    except Exception as error:
        raise CheckFailed(f"{type(estimator).__name__}: {what} raised {type(error).__name__}") from error
    raise CheckFailed(f"{type(estimator).__name__}: {what} was accepted")


def same_ranking(a: TopK, b: TopK) -> bool:
    """Say whether two predictions have the same labels and scores, to the last bit."""
    return np.array_equal(a.ids, b.ids) and np.array_equal(a.scores, b.scores)
