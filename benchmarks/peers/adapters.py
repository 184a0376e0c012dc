"""The four libraries behind one interface, so that one program can measure them all in the same way.

Each adapter is used in its library's own environment, so it imports nothing but that library, numpy and scipy, and
these only where they are needed: what a library does not need must not count as its memory.
"""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

BEAM = 10
Params = dict[str, Any]
Predict = Callable[[Any], Any]


def read_part(folder: Path, part: str) -> tuple[Any, Any]:
    """Return X and Y of a prepared folder as csr_matrix, the form that all libraries take."""
    np, sp = importlib.import_module("numpy"), importlib.import_module("scipy.sparse")
    with np.load(folder / f"{part}.npz") as file:
        X, Y = (
            sp.csr_matrix((file[f"{m}_data"], file[f"{m}_indices"], file[f"{m}_indptr"]), file[f"{m}_shape"])
            for m in ("X", "Y")
        )
    return X, Y


class Adapter:
    """One library: how to start it, read, train, save, load and predict.

    `params` are the method's settings; a library that takes no seed leaves `seed` alone.
    """

    variants: tuple[str, ...] = ("as loaded",)  # ways to hold the model in memory; the best of each time counts
    row_by_row = False  # no way to predict many rows in one call

    def __init__(self, params: Params, threads: int, seed: int) -> None:
        self.params, self.threads, self.seed = params, threads, seed

    def start(self) -> None:
        """Import the library."""
        raise NotImplementedError

    def read(self, folder: Path) -> None:
        """Bring the training data into memory in the form that training takes."""
        self.X, self.Y = read_part(folder, "train")

    def warm(self, folder: Path) -> None:
        """Load what the library loads on its first use."""

    def train(self, path: Path) -> None:
        raise NotImplementedError

    def save(self, path: Path) -> None:
        raise NotImplementedError

    def load(self, path: Path, variant: str) -> None:
        raise NotImplementedError

    def rows(self, X: Any) -> list[Any]:
        """Return single rows in the form that prediction takes."""
        return [X[i] for i in range(X.shape[0])]

    def batch(self, X: Any, k: int) -> Any:
        """Predict all rows."""
        raise NotImplementedError

    def one(self, k: int) -> Predict:
        """Return the function that predicts one row, on one thread."""
        raise NotImplementedError

    def pairs(self, predicted: Any) -> list[list[tuple[int, float]]]:
        """Return what `batch` returned as a list of (label, score), best first, per row."""
        return predicted


class Longtail(Adapter):
    def start(self) -> None:
        self.longtail = importlib.import_module("longtail")
        self.kind: Any = self.longtail.LabelTreeClassifier

    def _model(self) -> Any:
        params = dict(self.params)
        make = self.kind.fast if params.pop("fast", False) else self.kind
        return make(**params, n_jobs=self.threads, random_state=self.seed)

    def warm(self, folder: Path) -> None:
        """Load the compiled kernels from their cache, by training on the first rows."""
        self._model().fit(self.X[:300], self.Y[:300])

    def train(self, path: Path) -> None:
        self.model = self._model().fit(self.X, self.Y)

    def save(self, path: Path) -> None:
        self.model.save(path)

    def load(self, path: Path, variant: str) -> None:
        self.model = self.longtail.load(path)

    def batch(self, X: Any, k: int) -> Any:
        self.model.n_jobs = self.threads
        return self.model.predict_topk(X, k=k)

    def one(self, k: int) -> Predict:
        self.model.n_jobs = 1
        return lambda row: self.model.predict_topk(row, k=k)

    def pairs(self, predicted: Any) -> list[list[tuple[int, float]]]:
        rows = zip(predicted.ids.tolist(), predicted.scores.tolist(), strict=True)
        return [[(i, s) for i, s in zip(*row, strict=True) if i >= 0] for row in rows]


class Pecos(Adapter):
    """XR-Linear as its own training program calls it: PIFA vectors, hierarchical 2-means, one model per layer."""

    variants = ("BINARY_SEARCH_CHUNKED", "HASH_CHUNKED")

    def start(self) -> None:
        self.xmc: Any = importlib.import_module("pecos.xmc")
        self.kind: Any = importlib.import_module("pecos.xmc.xlinear.model").XLinearModel

    def read(self, folder: Path) -> None:
        super().read(folder)
        self.Y = self.Y.tocsc()

    def train(self, path: Path) -> None:
        params = {**self.params, "threads": self.threads}
        vectors = self.xmc.LabelEmbeddingFactory.create(self.Y, self.X, method="pifa", threads=self.threads)
        tree = self.xmc.Indexer.gen(vectors, **params, seed=self.seed)
        self.model = self.kind.train(
            self.X,
            self.Y,
            C=tree,
            train_params=self.kind.TrainParams.from_dict(params, recursive=True),
            pred_params=self.kind.PredParams.from_dict({}, recursive=True),
            pred_kwargs={"beam_size": BEAM},
        )

    def save(self, path: Path) -> None:
        self.model.save(str(path))

    def load(self, path: Path, variant: str) -> None:
        self.model = self.kind.load(str(path), is_predict_only=True, weight_matrix_type=variant)

    def batch(self, X: Any, k: int) -> Any:
        return self.model.predict(X, beam_size=BEAM, only_topk=k, threads=self.threads)

    def one(self, k: int) -> Predict:
        return lambda row: self.model.predict(row, beam_size=BEAM, only_topk=k, threads=1)

    def pairs(self, predicted: Any) -> list[list[tuple[int, float]]]:
        ids, scores, at = predicted.indices.tolist(), predicted.data.tolist(), predicted.indptr.tolist()
        rows = (zip(ids[a:b], scores[a:b], strict=True) for a, b in itertools.pairwise(at))
        return [sorted(row, key=lambda pair: (-pair[1], pair[0])) for row in rows]


class Omikuji(Adapter):
    """Trains from a text file and predicts one row a call. Reading the file is kept apart from training."""

    variants = ("as loaded", "densified", "one thread")
    row_by_row = True

    def start(self) -> None:
        self.omikuji: Any = importlib.import_module("omikuji")
        self.low: Any = importlib.import_module("omikuji._libomikuji")

    def read(self, folder: Path) -> None:
        lib, ffi = self.low.lib, self.low.ffi
        self.pool = lib.init_omikuji_thread_pool(self.threads)
        self.data = lib.load_omikuji_data_set(ffi.new("char[]", str(folder / "train.txt").encode()), self.pool)
        if self.data == ffi.NULL:
            raise RuntimeError("the training file could not be read")

    def train(self, path: Path) -> None:
        settings = self.omikuji.Model.default_hyper_param()
        for name, value in self.params.items():
            setattr(settings, name, value)
        model = self.low.lib.train_omikuji_model(self.data, settings, self.pool)
        if model == self.low.ffi.NULL:
            raise RuntimeError("training failed")
        self.model = self.omikuji.Model(model)

    def save(self, path: Path) -> None:
        self.model.save(str(path))

    def load(self, path: Path, variant: str) -> None:
        self.model = self.omikuji.Model.load(str(path))
        self.model.init_prediction_thread_pool(1 if variant == "one thread" else self.threads)
        if variant == "densified":
            self.model.densify_weights()

    def rows(self, X: Any) -> list[Any]:
        ids, values, at = X.indices.tolist(), X.data.tolist(), X.indptr.tolist()
        return [list(zip(ids[a:b], values[a:b], strict=True)) for a, b in itertools.pairwise(at)]

    def batch(self, X: Any, k: int) -> Any:
        return [self.model.predict(row, beam_size=BEAM, top_k=k) for row in X]

    def one(self, k: int) -> Predict:
        self.model.init_prediction_thread_pool(1)
        return lambda row: self.model.predict(row, beam_size=BEAM, top_k=k)


class Napkinxc(Adapter):
    """Probabilistic label tree; it writes its model while it trains."""

    def start(self) -> None:
        self.models: Any = importlib.import_module("napkinxc.models")

    def _model(self, path: Path) -> Any:
        return self.models.PLT(str(path), **self.params, seed=self.seed, threads=self.threads)

    def train(self, path: Path) -> None:
        self.model = self._model(path)
        self.model.fit(self.X, self.Y)

    def save(self, path: Path) -> None:
        pass

    def load(self, path: Path, variant: str) -> None:
        self.model = self._model(path)
        self.model.load()

    def batch(self, X: Any, k: int) -> Any:
        return self.model.predict_proba(X, top_k=k)

    def one(self, k: int) -> Predict:
        self.model.set_params(threads=1)
        return lambda row: self.model.predict_proba(row, top_k=k)


ADAPTERS: dict[str, type[Adapter]] = {
    "longtail": Longtail,
    "libpecos": Pecos,
    "omikuji": Omikuji,
    "napkinxc": Napkinxc,
}


def adapter(library: str, params: Params, threads: int, seed: int) -> Adapter:
    return ADAPTERS[library](params, threads, seed)
