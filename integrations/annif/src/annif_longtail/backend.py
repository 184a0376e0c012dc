"""The backends: train, suggest, learn and search for parameters; the model is a folder in the data of a project."""

from __future__ import annotations

import contextlib
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from annif.analyzer.analyzer import Analyzer
from annif.backend.backend import AnnifLearningBackend
from annif.backend.hyperopt import AnnifHyperoptBackend
from annif.corpus.types import Document, DocumentCorpus
from annif.exception import (
    AnnifException,
    ConfigurationException,
    NotInitializedException,
    NotSupportedException,
    OperationFailedException,
)
from annif.suggestion import SuggestionBatch
from scipy.sparse import csr_array

from annif_longtail.concepts import vocabulary_of
from annif_longtail.hyperopt import HybridOptimizer, TreeOptimizer
from annif_longtail.scores import annif_scores
from annif_longtail.settings import COMMON, FEATURES, HYBRID, TREE, Parser, read_settings
from annif_longtail.training_file import Documents, read_documents, write_documents
from longtail import Dataset, Hybrid, LabelTreeClassifier, Tagger, TfidfFeatures
from longtail.errors import DataError, DataWarning, LongtailError, MissingExtraError, ParameterError
from longtail.pipeline import load_tagger

WORD = re.compile(r"\w\w")
ENCODING = {"prototypes", "classifier", "neighbours"}  # experts that read by an encoder, which has no unknown words
MANIFEST = "manifest.json"  # replaced last when a model is saved, so that it tells whether there is another one


class LongtailBackend(AnnifHyperoptBackend):
    """What both backends share: documents in, a saved Tagger, suggestions out."""

    SETTINGS: ClassVar[dict[str, Parser]]
    ALL_NAMES: ClassVar[bool]  # whether the model reads alternative names of subjects too
    DEFAULT_PARAMETERS: ClassVar[dict[str, Any]] = {"calibrate": 0.1}

    _model: Tagger | None = None
    _loaded: tuple[int, int] | None = None  # of the manifest: inode and time
    _numbers: np.ndarray = np.empty(0, dtype=np.int64)  # subject number of every label, -1 where Annif has none in use
    _threads: int | None = None

    @property
    def model_path(self) -> Path:
        """The model folder."""
        return Path(self.datadir) / f"{self.name}-model"

    @property
    def training_path(self) -> Path:
        """The documents of the last training; Annif does not count files of this name as models."""
        return Path(self.datadir) / f"{self.name}-train.txt"

    @property
    def is_trained(self) -> bool:
        """Whether there is a model; other files in the folder count for nothing."""
        return self.state_on_disk() is not None

    # reading texts

    @property
    def analyzer(self) -> Analyzer | None:
        """The analyzer of the project; None where it has none, and longtail cuts texts into words itself."""
        try:
            return self.project.analyzer
        except ConfigurationException:
            return None

    def words_of(self, text: str) -> str:
        """Return a text as the model reads it."""
        raise NotImplementedError

    def reader(self) -> str:
        """Return how texts are read, in a word that changes when they are read otherwise."""
        raise NotImplementedError

    # training

    def new_tagger(self, settings: dict[str, Any], jobs: int) -> Tagger:
        """Return a Tagger, not trained, of the parameters of a project."""
        raise NotImplementedError

    def settings(self, params: dict[str, Any]) -> dict[str, Any]:
        """Return parameters as values, or say in one sentence what is wrong with one."""
        with self.annifs_errors():
            return read_settings(params, self.SETTINGS, self.warning)

    def _train(self, corpus: DocumentCorpus | str, params: dict[str, Any], jobs: int = 0) -> None:
        settings = self.settings(params)
        with self.annifs_log():
            tagger = self.new_tagger(settings, jobs)
            documents = self.cached_documents() if corpus == "cached" else self.keep_documents(corpus)
            self.info(f"training on {len(documents.texts)} documents")
            tagger.fit(*documents, vocabulary=vocabulary_of(self.project, all_names=self.ALL_NAMES))
            self.save(tagger)

    def cached_documents(self) -> Documents:
        """Return the documents of the last training."""
        if not self.training_path.exists():
            raise NotInitializedException(
                f"there are no cached documents: {self.training_path} not found", backend_id=self.backend_id
            )
        self.info("reusing cached training data from previous run")
        return read_documents(self.training_path, self.reader())

    def keep_documents(self, corpus: DocumentCorpus) -> Documents:
        """Return the documents of a corpus as the model reads them, and keep them for the next training."""
        if corpus.is_empty():
            raise NotSupportedException(f"Cannot train {self.name} project with no documents")
        documents = write_documents(self.training_path, self.reader(), self.read_corpus(corpus))
        if not documents.texts:
            self.training_path.unlink()
            raise NotSupportedException(
                f"Cannot train {self.name} project: no document has both words and a subject of the vocabulary"
            )
        return documents

    def read_corpus(self, corpus: DocumentCorpus) -> Iterator[tuple[str, list[str]]]:
        """Yield text and subjects of every document that has words and at least one subject in use."""
        subjects = self.project.subjects
        for document in corpus.documents:
            uris = []
            for number in sorted(document.subject_set):
                with contextlib.suppress(IndexError):  # a deprecated or excluded subject
                    uris.append(subjects[number].uri)
            text = self.words_of(document.text)
            if uris and WORD.search(text):
                yield text, uris

    def save(self, tagger: Tagger) -> None:
        """Write the model folder; until its last step the old model is there, then the new one."""
        tagger.save(self.model_path)
        self.use(tagger)

    # asking

    def initialize(self, parallel: bool = False) -> None:
        """Load the model, if there is another one on disk than the one in memory."""
        if parallel:
            self._threads = 1
        state = self.state_on_disk()
        if state is None:
            raise NotInitializedException(f"model {self.model_path} not found", backend_id=self.backend_id)
        if self._model is not None and self._loaded == state:
            return
        self.debug(f"loading model from {self.model_path}")
        with self.annifs_errors():
            self.use(load_tagger(self.model_path))

    def state_on_disk(self) -> tuple[int, int] | None:
        """Return what changes when another model is saved; None where there is none."""
        try:
            found = (self.model_path / MANIFEST).stat()
        except FileNotFoundError:
            return None
        return found.st_ino, found.st_mtime_ns

    def use(self, tagger: Tagger) -> None:
        """Take a Tagger that is on disk for all questions from now on."""
        tagger.model_.set_params(n_jobs=self._threads)
        subjects = self.project.subjects
        found = (subjects.by_uri(uri, warnings=False) for uri in tagger.labels_)
        self._numbers = np.array([-1 if number is None else number for number in found], dtype=np.int64)
        self._model, self._loaded = tagger, self.state_on_disk()

    def known_rows(self, tagger: Tagger, texts: list[str], rows: Any) -> np.ndarray:
        """Say which texts have anything that the model knows; the others get no suggestions."""
        raise NotImplementedError

    def _suggest_batch(self, documents: list[Document], params: dict[str, Any]) -> SuggestionBatch:
        if self._model is None:
            raise NotInitializedException(f"model {self.model_path} not found", backend_id=self.backend_id)
        settings = self.settings(params)
        with self.annifs_errors():
            limit = settings.get("limit", 100)
            if limit < 1:
                raise ParameterError(name="limit", allowed="a whole number >= 1", got=limit)
            texts = [self.words_of(document.text) for document in documents]
            return self.suggest_texts(self._model, self._numbers, texts, limit)

    def suggest_texts(self, tagger: Tagger, numbers: np.ndarray, texts: list[str], limit: int) -> SuggestionBatch:
        """Return the subjects of texts, read as the model reads them."""
        shape = (len(texts), len(self.project.subjects))
        rows = tagger.rows(texts)
        top = tagger.model_.predict_topk(rows, k=min(limit, tagger.n_labels_))
        scores = annif_scores(tagger, top)
        columns = np.where(top.ids >= 0, numbers[top.ids], -1)
        columns[~self.known_rows(tagger, texts, rows)] = -1
        at = np.nonzero(columns >= 0)
        return SuggestionBatch(csr_array((scores[at], (at[0], columns[at])), shape=shape, dtype=np.float32))

    # errors

    @contextlib.contextmanager
    def annifs_errors(self) -> Iterator[None]:
        """Say longtail's errors as Annif's."""
        try:
            yield
        except LongtailError as error:
            raise _annifs_error(error, self.backend_id) from error

    @contextlib.contextmanager
    def annifs_log(self) -> Iterator[None]:
        """Say longtail's errors as Annif's, and its warnings in Annif's log; for commands, not for requests."""
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always", DataWarning)
            with self.annifs_errors():
                yield
        for warning in seen:
            self.warning(str(warning.message))


def _annifs_error(error: LongtailError, backend_id: str) -> AnnifException:
    """Return the exception of Annif that says the same."""
    classes: list[tuple[type[LongtailError], type[AnnifException]]] = [
        (ParameterError, ConfigurationException),
        (MissingExtraError, NotSupportedException),
        (DataError, OperationFailedException),
    ]
    found = next((annifs for ours, annifs in classes if isinstance(error, ours)), OperationFailedException)
    return found(str(error), backend_id=backend_id)


class LongtailTreeBackend(LongtailBackend, AnnifLearningBackend):
    """A label tree on TF-IDF of words: fast, for any number of subjects, learns on."""

    name = "longtail_tree"
    SETTINGS = COMMON | FEATURES | TREE
    ALL_NAMES = False
    DEFAULT_PARAMETERS: ClassVar[dict[str, Any]] = {"min_df": 1, "ngram": 1, "calibrate": 0.1}

    def words_of(self, text: str) -> str:
        analyzer = self.analyzer
        return text if analyzer is None else " ".join(analyzer.tokenize_words(text))

    def reader(self) -> str:
        if self.analyzer is None:
            return "longtail"
        spec = getattr(self.project, "analyzer_spec", None)
        return spec if isinstance(spec, str) else type(self.analyzer).__name__

    def new_tagger(self, settings: dict[str, Any], jobs: int) -> Tagger:
        threads = jobs or None
        stem = settings.get("stem")
        if stem is not None and self.analyzer is not None:
            raise ParameterError(name="stem", problem="cannot be given in a project with an analyzer, which stems too.")
        chosen = {name: settings[name] for name in ("min_df", "max_df", "max_features") if name in settings}
        analyzer = "word" if stem is None else f"snowball:{stem}"
        features = TfidfFeatures((1, settings.get("ngram", 1)), analyzer=analyzer, n_jobs=threads, **chosen)
        tree = LabelTreeClassifier(n_jobs=threads, **{name: settings[name] for name in TREE if name in settings})
        own = {name: settings[name] for name in ("calibrate", "random_state") if name in settings}
        return Tagger("tree", features=features, model=tree, n_jobs=threads, **own)

    def known_rows(self, tagger: Tagger, texts: list[str], rows: Any) -> np.ndarray:
        return np.diff(rows.indptr) > 0

    def _learn(self, corpus: DocumentCorpus, params: dict[str, Any]) -> None:
        """Add documents to what the model knows; words and subjects that are new to it are added too."""
        self.initialize()
        documents = Documents([], [])
        for text, labels in self.read_corpus(corpus):
            documents.texts.append(text)
            documents.labels.append(labels)
        if not documents.texts:
            self.warning("nothing to learn: no document has both words and a subject of the vocabulary")
            return
        with self.annifs_log():
            tagger = load_tagger(self.model_path, in_memory=True)  # the one in use stays until this is saved
            tagger.update_dataset(Dataset.from_lists(*documents))
            self.save(tagger)

    def get_hp_optimizer(self, corpus: DocumentCorpus, metric: str) -> TreeOptimizer:
        return TreeOptimizer(self, corpus, metric)


class LongtailHybridBackend(LongtailBackend):
    """An encoder, a label tree, similar training texts and names of subjects: the most accurate, slower to train."""

    name = "longtail_hybrid"
    SETTINGS = COMMON | HYBRID
    ALL_NAMES = True

    def words_of(self, text: str) -> str:
        return text

    def reader(self) -> str:
        return "longtail"

    def new_tagger(self, settings: dict[str, Any], jobs: int) -> Tagger:
        threads = jobs or None
        chosen = {name: settings[name] for name in HYBRID if name in settings}
        model = Hybrid(language=settings.get("stem"), n_jobs=threads, **chosen)
        own = {name: settings[name] for name in ("calibrate", "random_state") if name in settings}
        return Tagger("hybrid", model=model, n_jobs=threads, **own)

    def known_rows(self, tagger: Tagger, texts: list[str], rows: Any) -> np.ndarray:
        """Say which texts have words; without an encoder, which have words or names that the model knows."""
        if not ENCODING & set(tagger.model_.get_params()["experts"]):
            return np.diff(rows.indptr) > 0
        analyzer = self.analyzer
        return np.array([bool(analyzer.tokenize_words(t) if analyzer else WORD.search(t)) for t in texts], dtype=bool)

    def get_hp_optimizer(self, corpus: DocumentCorpus, metric: str) -> HybridOptimizer:
        return HybridOptimizer(self, corpus, metric)
