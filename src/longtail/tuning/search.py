"""`tune`: successive halving. Many settings are trained on few rows, a third of them on three times as many, and so on.

The settings of a trial depend on the seed and its number alone, the rows held out on the seed, and a trial on nothing
else: so a search that was broken off, or that is given more trials, does again only what was not done.
"""

from __future__ import annotations

import contextlib
import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail.data import Dataset
from longtail.engine import Checkpoint, Engine, LocalEngine, in_use, running_on
from longtail.errors import DataError, ParameterError
from longtail.facts import TrialFacts, TuningFacts
from longtail.metrics import scorer
from longtail.model import Stages
from longtail.pipeline import METHODS, Tagger, hold_out
from longtail.text import TfidfFeatures
from longtail.tuning.space import CheckedSpace, Space, check_space
from longtail.tuning.trial import PRECISION, TRIAL, new_model, rows_to_share, with_tuples
from longtail.validate import Json, RandomState, check_choice, check_integer, check_real, resolve_seed

KEPT = 3  # one in so many settings goes on to so many times the rows
SEARCHED = ("tree", "ova", "dft")  # methods trained on rows of features
QUICK = ("tree", "ova")  # whose values can be tried out on a few rows beforehand
FEWEST_ROWS = 300  # that a trial is trained on, where there are more


@dataclass
class Tuning:
    """What a search found.

    Attributes
    ----------
    facts : dict
        Method, metric, the rows of every round, and all trials, the best first.
    settings : dict
        The settings of the best trial that differ from the defaults: those of the model.
    text_settings : dict
        Those of the features, where the data has texts.
    """

    facts: TuningFacts
    settings: Json
    text_settings: Json
    seed: int = 0
    n_jobs: int | None = None
    has_texts: bool = field(default=True, repr=False)

    def __repr__(self) -> str:
        settings = {**self.settings, **self.text_settings}
        told = ", ".join(f"{name}={value!r}" for name, value in settings.items()) or "the defaults"
        return f"Tuning({len(self.facts['trials'])} trials of {self.facts['method']}; best: {told})"

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the best trials, and what the best is worth."""
        from longtail.report import tuning_html

        return tuning_html(self.facts)

    def tagger(self, **params: Any) -> Tagger:
        """Return a Tagger with the best settings, not fitted; `params` are those of `Tagger`."""
        method = self.facts["method"]
        model = new_model(method, self.settings, self.seed, self.n_jobs)
        features = TfidfFeatures(**with_tuples(self.text_settings)) if self.has_texts else None
        given = {"random_state": self.seed, "n_jobs": self.n_jobs, **params}
        return Tagger(method, model=model, features=features, **given)


def tune(
    data: Dataset,
    method: str = "tree",
    *,
    space: Space | None = None,
    trials: int = 27,
    metric: str = PRECISION,
    held_out: float = 0.1,
    random_state: RandomState = None,
    n_jobs: int | None = None,
    engine: Engine | None = None,
    checkpoint: str | Path | None = None,
    progress: Stages | None = None,
) -> Tuning:
    """Search for settings that suit the data, and return what was found.

    A share of the rows is held out, and settings are judged on it. All are tried on a ninth of the other rows, the best
    third on a third of them, and the best third of those on all; the defaults are among them to the end, so that
    nothing worse on these rows is ever chosen. Test rows are never looked at.

    Parameters
    ----------
    data : Dataset
        Rows with labels; texts become features anew for other settings of texts.
    method : {"tree", "ova", "dft"}, default="tree"
        Which model.
    space : dict or None, default=None
        Of every setting, of the model or of `TfidfFeatures`, a list of values or a pair (smallest, largest); None for
        the space that comes with the method ("tree" and "ova").
    trials : int, default=27
        Settings tried, the defaults being the first.
    metric : str, default="precision"
        What is to be high on the rows held out: a metric such as "p@5", "ndcg@3" or "psp@5"; "precision" is the mean
        of P@1, P@3 and P@5.
    held_out : float, default=0.1
        Share of the rows to judge on, at most 20,000 rows.
    random_state : int, RandomState instance or None, default=None
        Seed of everything; the same seed finds the same settings.
    n_jobs : int or None, default=None
        Threads; None for all cores.
    engine : Engine or None, default=None
        Where trials run: None for one after the other here, each with all threads. On a cluster every trial has a core.
    checkpoint : str, Path or None, default=None
        Folder that keeps finished trials: a search that was broken off, or more trials, go on from there.
    progress : callable or None, default=None
        Called as `progress(round, done, total)`.

    Returns
    -------
    Tuning
        The best settings and all trials.

    Examples
    --------
    >>> from longtail.data.synthetic.generate import make_topics
    >>> found = tune(make_topics(400, 10)[0], "ova", space={"C": (0.1, 10.0)}, trials=4, random_state=0)
    >>> found.facts["trials"][0]["score"] >= found.facts["default_score"]
    True
    """
    check_choice("method", method, SEARCHED)
    trials, seed = check_integer("trials", trials, low=1), resolve_seed(random_state)
    share = check_real("held_out", held_out, low=0, high=0.5, open_low=True)
    checked = check_space(space, method, METHODS[method](), data.texts is not None)
    data = data.compact_labels()
    _check_metric(metric, data.n_labels)
    if method in QUICK:
        _try_out(checked, method)
    split = hold_out(data.Y, share, seed)
    if split is None:
        raise DataError(f"the data must have at least 50 rows with labels to tune on; got {data.n_rows}.")
    order = split[0][np.random.default_rng(seed).permutation(split[0].size)]
    tried = [_Trial(number, checked.draw(seed, number)) for number in range(trials)]
    outer = in_use() if engine is None else engine
    at_once = outer
    if at_once is None or at_once.in_process:  # one trial after the other, each with all threads
        at_once = LocalEngine(1, checkpoint=None if outer is None else outer.checkpoint)
    kept_before = at_once.checkpoint
    if checkpoint is not None:
        at_once.checkpoint = Checkpoint(checkpoint)
    inner = LocalEngine(n_jobs) if at_once.in_process else None
    settings = {"method": method, "metric": metric, "seed": seed}
    sizes = rounds(order.size, trials)
    alive = list(tried)
    try:
        for turn, n_rows in enumerate(sizes):
            if turn:
                alive = _best(alive, turn - 1)
            name = f"Round {turn + 1} of {len(sizes)}"
            done = 0
            for words, some in _by_features(alive):
                shared = at_once.share(rows_to_share(data, order, split[1], words, n_jobs))

                def told(_: int) -> None:
                    nonlocal done
                    done += 1
                    if progress is not None:
                        progress(name, done, len(alive))  # noqa: B023

                tasks = [{"rows": n_rows, "settings": trial.drawn["model"]} for trial in some]
                with running_on(inner):
                    results = at_once.map(TRIAL, [shared], settings, tasks, told=told)
                for trial, result in zip(some, results, strict=True):
                    trial.scores.append(float(result["score"][0]))
                    trial.seconds.append(float(result["seconds"][0]))
    finally:
        at_once.checkpoint = kept_before
    ranked = sorted(tried, key=_Trial.rank)
    best = ranked[0]
    facts: TuningFacts = {
        "method": method,
        "metric": metric,
        "rows": data.n_rows,
        "held_out_rows": int(split[1].size),
        "round_rows": sizes,
        "default_score": tried[0].scores[-1],
        "trials": [trial.facts() for trial in ranked],
        "seed": seed,
    }
    return Tuning(facts, best.drawn["model"], best.drawn["texts"], seed, n_jobs, data.texts is not None)


def _check_metric(metric: str, n_labels: int) -> None:
    """Refuse a metric that is not known, or that asks for more labels than there are."""
    if metric == PRECISION:
        return
    try:
        scorer(metric)  # which reads the name
    except ParameterError as error:
        allowed = f"{PRECISION!r}, or {error.allowed}"
        raise ParameterError(name="metric", allowed=allowed, got=metric, hint=error.fields.get("hint", "")) from error
    if int(metric.rpartition("@")[2]) > n_labels:
        raise ParameterError(name="metric", allowed=f"at most @{n_labels}, as many as there are labels", got=metric)


def _try_out(space: CheckedSpace, method: str) -> None:
    """Refuse values that the model or the features do not take, by training on a few rows with each."""
    X, Y = sp.eye_array(8, 8, dtype=np.float32, format="csr"), sp.eye_array(8, 8, dtype=np.float32, format="csr")
    for part, name, value in space.outermost():
        with contextlib.suppress(DataError):  # which speaks of these rows
            if part == "model":
                new_model(method, {name: value}, 0, 1).fit_rows(X, Y)
            else:
                TfidfFeatures(**with_tuples({name: value})).fit(["one two three", "two three four", "three four"])


@dataclass
class _Trial:
    """Settings, and their score in every round they reached."""

    number: int
    drawn: Json
    scores: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def rank(self) -> tuple[float, float, int]:
        """Return the key by which trials are ranked: those that got further, then those that scored better."""
        return (-len(self.scores), -self.scores[-1], self.number)

    def facts(self) -> TrialFacts:
        """Return what is told of the trial."""
        return {
            "number": self.number,
            "settings": {**self.drawn["model"], **self.drawn["texts"]},
            "scores": self.scores,
            "score": self.scores[-1],
            "seconds": round(sum(self.seconds), 3),
        }


def rounds(n_rows: int, trials: int) -> list[int]:
    """Return how many rows the trials of every round are trained on.

    >>> rounds(9000, 27), rounds(1000, 27), rounds(200, 27), rounds(9000, 2)
    ([1000, 3000, 9000], [333, 1000], [200], [9000])
    """
    out = [n_rows]
    while len(out) < 3 and n_rows // KEPT ** len(out) >= FEWEST_ROWS and trials > KEPT ** len(out):
        out.insert(0, n_rows // KEPT ** len(out))
    return out


def _best(alive: list[_Trial], turn: int) -> list[_Trial]:
    """Return the third that scored best in a round, and the defaults."""
    ranked = sorted(alive, key=lambda trial: (-trial.scores[turn], trial.number))
    kept = ranked[: math.ceil(len(alive) / KEPT)]
    return sorted([*kept, *(trial for trial in ranked[len(kept) :] if trial.number == 0)], key=lambda t: t.number)


def _by_features(alive: list[_Trial]) -> list[tuple[Json, list[_Trial]]]:
    """Return trials by the settings of their features."""
    out: dict[str, tuple[Json, list[_Trial]]] = {}
    for trial in alive:
        words = trial.drawn["texts"]
        out.setdefault(json.dumps(words), (words, []))[1].append(trial)
    return list(out.values())
