"""What makes an object an estimator for scikit-learn, without importing scikit-learn.

Importing scikit-learn takes longer than loading a model and predicting a row with it, so it waits until something
asks for it: cloning, searching, an error of its own kind.
"""

from __future__ import annotations

import inspect
from typing import Any, Self, TypeVar

from longtail.errors import ParameterError, near

T = TypeVar("T")


class Estimator:
    """Constructor parameters that can be read, set and cloned, as scikit-learn's tools expect.

    >>> class Box(Estimator):
    ...     def __init__(self, size=1): self.size = size
    >>> Box(3).get_params(), Box(3).set_params(size=4), Box()
    ({'size': 3}, Box(size=4), Box())
    """

    @classmethod
    def _defaults(cls) -> dict[str, Any]:
        found = list(inspect.signature(cls.__init__).parameters.values())[1:]
        return {p.name: p.default for p in found if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)}

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

    def __repr__(self) -> str:
        given = (
            f"{name}={getattr(self, name, default)!r}"
            for name, default in self._defaults().items()
            if getattr(self, name, default) is not default and getattr(self, name, default) != default
        )
        return f"{type(self).__name__}({', '.join(given)})"

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import Tags, TargetTags

        return Tags(estimator_type=None, target_tags=TargetTags(required=False))


def not_fitted(sentence: str) -> Exception:
    """Return scikit-learn's NotFittedError with a sentence, to be raised."""
    from sklearn.exceptions import NotFittedError

    return NotFittedError(sentence)


def clone(estimator: T) -> T:
    """Return an unfitted estimator with the same parameters."""
    from sklearn.base import clone as sklearn_clone

    return sklearn_clone(estimator)
