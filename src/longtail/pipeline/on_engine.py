"""Predictions on the engine in use: the model is shared once with every node, and rows are scored block by block there.

No node needs the model folder: what is shared are the arrays that would be saved.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from longtail.data import Dataset, TopK
from longtail.engine import Arrays, Engine, Shared, Work
from longtail.errors import DataError
from longtail.kernels import blocks
from longtail.model import SavedFeatures, TextReader, XMCEstimator
from longtail.pipeline.registry import FEATURES, MODELS
from longtail.storage import Part
from longtail.validate import Json, make_csr

if TYPE_CHECKING:
    from longtail.pipeline.tagger import Tagger

ROWS_OF_A_TASK = 2048
Advance = Callable[[int, int], None]


class Scoring:
    """A tagger whose rows are scored by an engine; the model is shared when it is made."""

    engine: Engine
    tagger: Tagger

    def __init__(self, tagger: Tagger, engine: Engine) -> None:
        self.tagger, self.engine = tagger, engine
        parts = tagger.model_.parts()
        if isinstance(tagger.features_, SavedFeatures):
            parts["features"] = tagger.features_.to_part()
        elif tagger.features_ is not None:
            raise DataError(
                f"features of the class {type(tagger.features_).__name__} cannot be sent to other machines."
            )
        arrays = {f"{name}/{key}": array for name, part in parts.items() for key, array in part.arrays.items()}
        kept = ("model", "features")
        self.settings: Json = {
            "parts": {name: {"kind": parts[name].kind, "params": parts[name].params} for name in kept if name in parts}
        }
        self.shared: Shared = engine.share(arrays)

    def predict_topk(
        self,
        data: Dataset,
        k: int,
        *,
        allow: Sequence[int] | None = None,
        deny: Sequence[int] | None = None,
        progress: Advance | None = None,
    ) -> TopK:
        """Return the k best labels of every row, as the model itself would."""
        if data.texts is None if self.tagger.reads_texts_ else data.X is None:
            self.tagger.dataset_rows(data)  # which refuses them
        if data.texts is not None:
            self.tagger.model_.check_texts(data.texts)  # while rows are numbered as in the data
        limits = {name: None if of is None else list(map(int, of)) for name, of in (("allow", allow), ("deny", deny))}
        tasks = [{"k": k, **limits, **self._rows(data, at)} for at in blocks(data.n_rows, ROWS_OF_A_TASK)]
        done = 0

        def told(number: int) -> None:
            nonlocal done
            done += min(ROWS_OF_A_TASK, data.n_rows - number * ROWS_OF_A_TASK)
            if progress is not None:
                progress(done, data.n_rows)

        parts = self.engine.map(SCORE, [self.shared], self.settings, tasks, told=told)
        return TopK.stack([TopK(part["ids"], part["scores"]) for part in parts])

    def _rows(self, data: Dataset, at: slice) -> dict[str, Any]:
        """Return some rows as a task has them: texts, or the arrays of a matrix."""
        if self.tagger.reads_texts_:
            return {"texts": list((data.texts or ())[at])}
        X: Any = self.tagger.dataset_rows(data.take(at))
        if not sp.issparse(X):
            return {"dense": X}
        return {"indptr": X.indptr, "indices": X.indices, "data": X.data, "width": int(X.shape[1])}


def prepare_model(arrays: Arrays, settings: Json) -> tuple[XMCEstimator, TextReader | None]:
    """Make the model and its features of shared arrays."""

    def part(name: str) -> Part:
        own = {key.partition("/")[2]: array for key, array in arrays.items() if key.partition("/")[0] == name}
        return Part(settings["parts"][name]["kind"], settings["parts"][name]["params"], own)

    model = MODELS[settings["parts"]["model"]["kind"]].from_part(part("model"))
    model.n_jobs = 1
    if "features" not in settings["parts"]:
        return model, None
    return model, FEATURES[settings["parts"]["features"]["kind"]].from_part(part("features"))


def score_rows(given: tuple[XMCEstimator, TextReader | None], task: dict[str, Any]) -> Arrays:
    """Score some rows."""
    model, features = given
    rows: Any = task.get("dense")
    if "texts" in task:
        rows = model.rows_of(task["texts"], features)
    elif "indptr" in task:
        rows = make_csr(task["indptr"], task["indices"], task["data"], task["width"])
    top = model.predict_topk(rows, k=task["k"], allow=task["allow"], deny=task["deny"])
    return {"ids": np.asarray(top.ids), "scores": np.asarray(top.scores)}


SCORE = Work(prepare_model, score_rows)
