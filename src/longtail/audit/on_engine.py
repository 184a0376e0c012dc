"""Audits of label sets as work of an engine: one task per block of sets."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from longtail.audit.audited_layer import AuditedLayer
from longtail.audit.certificate import KINDS, Certificate
from longtail.audit.certificate_search import SetAudit, WitnessFinder, audit_set
from longtail.audit.time_left import TimeLeft
from longtail.engine import Arrays, Engine, Shared, Work
from longtail.kernels import blocks
from longtail.model import LabelCircle
from longtail.validate import Json

SETS_OF_A_TASK = 4


class AuditsElsewhere:
    """A layer that is shared with an engine, whose tasks audit its label sets."""

    def __init__(self, layer: AuditedLayer, engine: Engine, eps: float, exact: bool) -> None:
        self.engine = engine
        self.settings: Json = {"box": layer.box, "threshold": layer.threshold, "eps": eps, "exact": exact}
        arrays: Arrays = {"W": np.asarray(layer.W), "lengths": layer.lengths}
        if layer.bias is not None:
            arrays["bias"] = layer.bias
        if layer.circle is not None:
            arrays["positions"] = layer.circle.positions
            self.settings["circle"] = [int(layer.circle.size), int(layer.circle.k)]
        self.shared: Shared = engine.share(arrays)

    def audit(
        self, sets: Sequence[np.ndarray], witnesses: dict[str, WitnessFinder], until: float = np.inf
    ) -> list[SetAudit]:
        """Return the audits of some sets, as `audit_set` makes them; the guesses are made here."""
        asked = [
            {"members": members, "guesses": {how: find(members) for how, find in witnesses.items()}} for members in sets
        ]
        left = None if until == np.inf else max(until - time.monotonic(), 0.0)
        tasks: list[dict[str, Any]] = [
            {"sets": asked[at], "seconds": left} for at in blocks(len(asked), SETS_OF_A_TASK)
        ]
        parts = self.engine.map(AUDITS, [self.shared], self.settings, tasks)
        return [
            _audit_of(part, i, self.settings["threshold"])
            for part, task in zip(parts, tasks, strict=True)
            for i in range(len(task["sets"]))
        ]


def prepare_layer(arrays: Arrays, settings: Json) -> tuple[AuditedLayer, Json]:
    """Put shared arrays together to a layer."""
    circle = None
    if "circle" in settings:
        size, k = settings["circle"]
        circle = LabelCircle(size, k, arrays["positions"])
    parts = (arrays["W"], arrays.get("bias"), settings["box"], settings["threshold"], arrays["lengths"], circle)
    return AuditedLayer(*parts), settings


def audit_some(given: tuple[AuditedLayer, Json], task: dict[str, Any]) -> Arrays:
    """Audit some sets."""
    layer, settings = given
    until = np.inf if task["seconds"] is None else time.monotonic() + task["seconds"]
    out: Arrays = {}
    with threadpool_limits(1, user_api="blas"):
        for i, one in enumerate(task["sets"]):
            finders = {how: _always(x) for how, x in one["guesses"].items()}
            found = audit_set(layer, one["members"], settings["eps"], settings["exact"], finders, TimeLeft(until))
            out[f"{i}.radius"] = np.array([found.radius, found.radius_at_most])
            for name, word in (("verdict", found.verdict), ("how", found.how)):
                out[f"{i}.{name}"] = np.frombuffer(word.encode(), dtype=np.uint8)
            for name in KINDS:
                array = getattr(found.certificate, name)
                if array is not None:
                    out[f"{i}.certificate.{name}"] = np.asarray(array)
    return out


AUDITS = Work(prepare_layer, audit_some)


def _always(x: np.ndarray | None) -> WitnessFinder:
    """Return the function whose guess is x, for any set."""
    return lambda members: x


def _audit_of(part: Arrays, i: int, threshold: bool) -> SetAudit:
    """Return one audit of a task's result."""
    radius, at_most = part[f"{i}.radius"].tolist()
    verdict, how = (part[f"{i}.{name}"].tobytes().decode() for name in ("verdict", "how"))
    proof = {name: part.get(f"{i}.certificate.{name}") for name in KINDS}
    return SetAudit(verdict, radius, at_most, how, Certificate(**proof, threshold=threshold))
