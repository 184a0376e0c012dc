"""Base classes that make an estimator or a transformer for scikit-learn, without importing scikit-learn.

Importing scikit-learn takes longer than loading a model and predicting a row with it, so it waits until something
asks for it: cloning, searching, an error of its own kind.
"""

from __future__ import annotations

import functools
import inspect
import sys
import warnings
from collections.abc import Callable, Sequence
from types import MethodType
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar

import numpy as np

from longtail.errors import Keyword, ParameterError, near
from longtail.notebook import Html, card, facts, fold, h, shortened
from longtail.validate import Rows, check_choice

if TYPE_CHECKING:
    from sklearn.utils import Tags

OUTPUTS = ("default", "pandas", "polars")
LETTERS_SHOWN = 80  # of the value of a parameter, in a notebook

T = TypeVar("T")


class Idle(NamedTuple):
    """Why a parameter has no effect: another one has a value, or has not.

    >>> str(Idle("with", Keyword("valid", 0))), str(Idle("without", Keyword("overlap")))
    ('with valid=0', 'without overlap')
    """

    word: str  # "with" or "without"
    other: Keyword

    def __str__(self) -> str:
        return f"{self.word} {self.other}".removesuffix("=")


class Estimator:
    """Constructor parameters that can be read, set and cloned, as scikit-learn's tools expect.

    >>> class Box(Estimator):
    ...     def __init__(self, size=1): self.size = size
    >>> Box(3).get_params(), Box(3).set_params(size=4), Box()
    ({'size': 3}, Box(size=4), Box())
    """

    @classmethod
    def _defaults(cls) -> dict[str, Any]:
        parameters = list(inspect.signature(cls.__init__).parameters.values())[1:]
        return {p.name: p.default for p in parameters if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the constructor's parameters; with `deep`, those of estimators among them too, as `name__param`."""
        out = {}
        for name in sorted(self._defaults()):
            value = getattr(self, name)
            if deep and hasattr(value, "get_params") and not isinstance(value, type):
                out.update({f"{name}__{inner}": v for inner, v in value.get_params().items()})
            out[name] = value
        return out

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name, `name__param` for those of an estimator among them; returns self."""
        own = self._defaults()
        inner: dict[str, dict[str, Any]] = {}
        for key, value in params.items():
            name, below, rest = key.partition("__")
            if name not in own:
                kind = type(self).__name__
                raise ParameterError(f"{kind} has no parameter {name!r}; it has {sorted(own)}.{near(name, own)}")
            if below:
                inner.setdefault(name, {})[rest] = value
            else:
                setattr(self, name, value)
        for name, values in inner.items():
            getattr(self, name).set_params(**values)
        return self

    def idle_params(self) -> dict[str, Idle]:
        """Return the parameters that were changed and have no effect beside the others, and why."""
        return {}

    def _idle_among(self, *names: str, word: str, other: Keyword) -> dict[str, Idle]:
        """Return those of some parameters that are not at their default, as idle for one reason."""
        own = self._defaults()
        changed = [name for name in names if not _same(getattr(self, name), own[name])]
        return {name: Idle(word, other) for name in changed}

    def _warn_of_idle_params(self, *but: str) -> None:
        """Warn of each parameter that was changed in vain, in one sentence; `but` names those that do count."""
        for name, idle in self.idle_params().items():
            if name not in but:
                shown = Keyword(name, getattr(self, name))
                warnings.warn(f"{shown} has no effect {idle}.", UserWarning, stacklevel=3)

    def __repr__(self) -> str:
        given = (
            f"{name}={getattr(self, name, default)!r}"
            for name, default in self._defaults().items()
            if getattr(self, name, default) is not default and getattr(self, name, default) != default
        )
        return f"{type(self).__name__}({', '.join(given)})"

    def _repr_html_(self) -> str:
        """Return what a notebook shows: whether it is fitted and what it learned, and its parameters."""
        learned = self._learned()
        note = "" if learned is None else "fitted" if learned else "not fitted"
        return card(type(self).__name__, facts(learned) if learned else None, *self._shown_params(), note=note)

    def _learned(self) -> list[tuple[str, object]] | None:
        """Return what a notebook tells of the trained object: nothing before `fit`; None where nothing is learned."""
        return None

    def _shown_params(self) -> list[Html]:
        """Return the parameters that were changed, in a table, and the others in a fold."""
        rows: dict[bool, list[tuple[object, object]]] = {True: [], False: []}
        for name, default in self._defaults().items():
            value = getattr(self, name, default)
            rows[_same(value, default)].append((h("code", name), h("code", shortened(repr(value), LETTERS_SHOWN))))
        n = len(rows[True])
        changed = [facts(rows[False])] if rows[False] else []
        return [*changed, fold(f"{n} parameter{'s' * (n != 1)} at the default", facts(rows[True]))] if n else changed

    def __sklearn_tags__(self) -> Tags:
        """Return what scikit-learn's tools may expect; imported when they ask."""
        from sklearn.utils import Tags, TargetTags

        return Tags(estimator_type=None, target_tags=TargetTags(required=False))


class Transformer(Estimator):
    """A step that turns texts into rows: `fit`, `transform`, `get_feature_names_out`, `set_output`."""

    def __sklearn_tags__(self) -> Tags:
        from sklearn.utils import TransformerTags

        tags = super().__sklearn_tags__()
        tags.transformer_tags = TransformerTags(preserves_dtype=[])
        tags.input_tags.two_d_array, tags.input_tags.one_d_array, tags.input_tags.string = False, True, True
        return tags

    def _learned(self) -> list[tuple[str, object]]:
        return [("features", f"{self.n_features_:,}")] if hasattr(self, "n_features_") else []

    def get_feature_names_out(self, input_features: Sequence[str] | None = None) -> np.ndarray:
        """Return a name for every column of the rows."""
        raise ParameterError(f"{type(self).__name__} does not name its columns.")

    def set_output(self, *, transform: str | None = None) -> Self:
        """Choose what `transform` returns: "default" (arrays), "pandas" or "polars"; None changes nothing.

        Sparse rows stay arrays: data frames of thousands of sparse columns are refused with one sentence.
        """
        if transform is not None:
            self._output = check_choice("transform", transform, OUTPUTS)
        return self

    def _as_output(self, rows: Rows, texts: Sequence[str]) -> Any:
        """Return rows as `set_output` or scikit-learn's `transform_output` wants them."""
        wanted, asked = getattr(self, "_output", None), True
        if wanted is None and "sklearn" in sys.modules:
            wanted, asked = sys.modules["sklearn"].get_config()["transform_output"], False
        sparse = not isinstance(rows, np.ndarray)
        if wanted in (None, "default") or (sparse and not asked):  # a setting for all steps cannot mean sparse rows
            return rows
        if sparse:
            raise ParameterError(name="transform", allowed="'default' where rows are sparse", got=wanted)
        from sklearn.utils._set_output import ADAPTERS_MANAGER

        return ADAPTERS_MANAGER.adapters[wanted].create_container(rows, texts, columns=self.get_feature_names_out())


class available_if:
    """Let an object have a method only where a condition holds, as scikit-learn's decorator of this name does.

    `condition(self)` returns None where the method is there, else the sentence of the AttributeError.

    >>> class Door:
    ...     open = False
    ...     @available_if(lambda door: None if door.open else "the door is shut.")
    ...     def enter(self): return "inside"
    >>> hasattr(Door(), "enter")
    False
    """

    def __init__(self, condition: Callable[[Any], str | None]) -> None:
        self.condition = condition

    def __call__(self, method: Callable[..., Any]) -> Self:
        self.method = method
        functools.update_wrapper(self, method)
        return self

    def __get__(self, owner: Any, kind: type | None = None) -> Callable[..., Any]:
        if owner is None:
            return self.method
        why_not = self.condition(owner)
        if why_not is not None:
            raise AttributeError(why_not)
        return MethodType(self.method, owner)


def plain_value(value: Any) -> Any:
    """Return a parameter as JSON has it: numpy's numbers, flags and arrays as Python's, a random generator as None.

    >>> plain_value([np.int64(3), (np.float64(0.5), "a"), np.True_, np.random.default_rng(0)])
    [3, (0.5, 'a'), True, None]
    """
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if isinstance(value, np.random.Generator | np.random.RandomState):
        return None  # it has moved on since: no number would lead to the same model
    if isinstance(value, dict):
        return {name: plain_value(inner) for name, inner in value.items()}
    return type(value)(map(plain_value, value)) if type(value) in (list, tuple) else value


def not_fitted(sentence: str) -> Exception:
    """Return scikit-learn's NotFittedError with a sentence, to be raised."""
    from sklearn.exceptions import NotFittedError

    return NotFittedError(sentence)


def clone(estimator: T) -> T:
    """Return an unfitted estimator with the same parameters."""
    from sklearn.base import clone as sklearn_clone

    return sklearn_clone(estimator)


def _same(value: Any, default: Any) -> bool:
    """Say whether a parameter is as its default; arrays and modules never are."""
    value = value.item() if isinstance(value, np.generic) else value
    return value is default or (type(value) is type(default) and bool(np.all(value == default)))
