"""Search for parameters by `annif hyperopt`: models are trained on the cached documents and judged on others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import annif.eval
import numpy as np
from annif.backend.hyperopt import HPObjective, HPRecommendation, HyperparameterOptimizer
from annif.corpus.types import DocumentCorpus

from annif_longtail.concepts import vocabulary_of

if TYPE_CHECKING:
    from optuna.study.study import Study
    from optuna.trial import Trial

    from annif_longtail.backend import LongtailBackend


class _Objective(HPObjective):
    """Trains a model with the parameters of a trial and returns the metric on the documents given."""

    @classmethod
    def drawn(cls, trial: Trial) -> dict[str, Any]:
        """Return the parameters that a trial tries."""
        raise NotImplementedError

    @classmethod
    def objective(cls, trial: Trial, args: dict[str, Any]) -> float:
        backend: LongtailBackend = args["backend"]
        settings = args["settings"] | cls.drawn(trial)
        tagger = backend.new_tagger(settings, args["jobs"])
        tagger.fit(*args["documents"], vocabulary=args["vocabulary"])
        subjects = backend.project.subjects
        found = (subjects.by_uri(uri, warnings=False) for uri in tagger.labels_)
        numbers = np.array([-1 if number is None else number for number in found], dtype=np.int64)
        batch = annif.eval.EvaluationBatch(subjects)
        batch.evaluate_many(backend.suggest_texts(tagger, numbers, args["texts"], args["limit"]), args["truth"])
        return float(batch.results(metrics=[args["metric"]])[args["metric"]])


class TreeObjective(_Objective):
    """Parameters of the label tree and of its words that matter most."""

    @classmethod
    def drawn(cls, trial: Trial) -> dict[str, Any]:
        return {
            "min_df": trial.suggest_int("min_df", 1, 5),
            "ngram": trial.suggest_int("ngram", 1, 2),
            "C": trial.suggest_float("C", 0.1, 4.0, log=True),
            "overlap": trial.suggest_int("overlap", 1, 2),
        }


class HybridObjective(_Objective):
    """Parameters of the hybrid that its own held-out rows do not choose."""

    @classmethod
    def drawn(cls, trial: Trial) -> dict[str, Any]:
        return {
            "tail": trial.suggest_float("tail", 0.0, 1.5),
            "overlap": trial.suggest_int("overlap", 1, 2),
        }


class _Optimizer(HyperparameterOptimizer):
    """Prepares the documents once, and writes the best trial as lines for projects.cfg."""

    OBJECTIVE: type[_Objective]

    def __init__(self, backend: LongtailBackend, corpus: DocumentCorpus, metric: str) -> None:
        super().__init__(backend, corpus, metric, objective=self.OBJECTIVE)

    def _prepare(self, n_jobs: int = 1) -> dict[str, Any]:
        backend, settings = self._backend, self._backend.settings(self._backend.params)
        judged = list(self._corpus.documents)
        with backend.annifs_errors():
            return {
                "backend": backend,
                "settings": settings,
                "jobs": 0 if n_jobs == 1 else 1,  # trials at once share the cores
                "documents": backend.cached_documents(),
                "vocabulary": vocabulary_of(backend.project, all_names=backend.ALL_NAMES),
                "texts": [backend.words_of(document.text) for document in judged],
                "truth": [document.subject_set for document in judged],
                "limit": settings.get("limit", 100),
                "metric": self._metric,
            }

    def _postprocess(self, study: Study) -> HPRecommendation:
        best = {
            name: round(value, 4) if isinstance(value, float) else value for name, value in study.best_params.items()
        }
        return HPRecommendation(lines=[f"{name}={value}" for name, value in best.items()], score=study.best_value)


class TreeOptimizer(_Optimizer):
    """Search for parameters of `longtail_tree`."""

    OBJECTIVE = TreeObjective


class HybridOptimizer(_Optimizer):
    """Search for parameters of `longtail_hybrid`; every trial trains the whole model."""

    OBJECTIVE = HybridObjective
