"""A new model from reviewed rows: learned, compared with the old one on the control sample, and put in its place.

The control rows are never learned, so that both models are judged by rows drawn at random. The new model takes the
place of the old one if it is not worse: if the whole 95% interval of the difference in F1 lies above minus the margin,
1 point unless told otherwise. Whether reviewed rows were learned is noted by the digest of the new model, before the
swap; whoever is killed in between neither loses rows nor learns them twice.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Sequence
from copy import copy
from pathlib import Path
from typing import Any, cast

import numpy as np

from longtail.data import Dataset
from longtail.errors import DataError, LongtailError, ModelError, one_line
from longtail.facts import ReviewComparisonFacts, ReviewUpdateFacts
from longtail.model import Estimator, Stages, Updatable, clone
from longtail.pipeline import Tagger, load_tagger
from longtail.report import plural
from longtail.review.store import ReviewStore, now
from longtail.review.suggest import check_belongs, check_given_labels, suggest_items
from longtail.review.swap import CANDIDATE, beside, install, remove
from longtail.review.verdicts import ReviewedRow, reviewed_rows
from longtail.storage import check_target, folder_digest
from longtail.validate import check_integer, check_real

MARGIN = 1.0  # points of F1 that a new model may be worse by, at the lower end of the interval
FEWEST_CONTROL_ROWS = 50
RESAMPLES = 4000
LABELS_SHOWN = 5
STATE = "update"  # in the table meta
IDLE: ReviewUpdateFacts = {"state": "idle", "swapped": False, "sentence": "No update was asked for yet."}


def update_from_reviews(
    store: ReviewStore,
    folder: str | Path,
    *,
    data: Dataset | None = None,
    margin: float = MARGIN,
    fewest: int = FEWEST_CONTROL_ROWS,
    swap: bool = True,
    n_jobs: int | None = None,
    key: str | Path | bytes | None = None,
    progress: Stages | None = None,
) -> ReviewUpdateFacts:
    """Make a new model from reviewed rows, and put it in the place of the old one if it is not worse.

    Parameters
    ----------
    store : ReviewStore
        The review file.
    folder : str or Path
        The model folder. The old model is kept in `NAME.previous` beside it.
    data : Dataset or None, default=None
        All rows of the training: the model is trained anew on them, with reviewed labels in place of theirs. None: the
        model learns the reviewed rows that are new (`Tagger.update_dataset`; methods "tree" and "ova").
    margin : float, default=1.0
        Points of F1: the lower end of the interval of the difference must be above minus this.
    fewest : int, default=50
        Finished control rows that are needed to compare.
    swap : bool, default=True
        False only compares.
    n_jobs : int or None, default=None
        Threads; None for all cores.
    key : str, Path, bytes or None, default=None
        Public key that the old model must be signed with. Only with `swap=False`: a new model is not signed.
    progress : callable or None, default=None
        Called with stage, done and total.

    Returns
    -------
    facts : dict
        The comparison, whether the models were swapped, and one sentence that says why.
    """
    folder = Path(folder)
    margin, fewest = check_real("margin", margin, low=0), check_integer("fewest", fewest, low=2)
    if key is not None and swap:
        raise ModelError(
            f"{folder.name} must be signed, and a new model is not: update a copy of it, sign that and put it in place."
        )
    with updating(store):
        state: ReviewUpdateFacts = {"state": "running", "swapped": False, "sentence": "The update is running."}
        state["at"] = now()

        def tell(stage: str, done: int = 0, total: int = 1) -> None:
            if stage != state.get("stage") or "done" not in state:
                state.update({"stage": stage, "done": done, "total": total})
                _keep_state(store, state)
            if progress is not None:
                progress(stage, done, total)

        try:
            tell("Reading")
            _update(store, folder, data, (margin, fewest, swap, n_jobs, key), state, tell)
            state["state"] = "done"
        except BaseException as error:
            sentence = one_line(str(error) or type(error).__name__)
            state.update({"state": "failed", "sentence": f"The update failed: {sentence}"})
            raise
        finally:
            remove(beside(folder, CANDIDATE))
            with contextlib.suppress(LongtailError):
                _keep_state(store, state)
    return state


def _update(
    store: ReviewStore, folder: Path, data: Dataset | None, how: tuple[Any, ...], state: ReviewUpdateFacts, tell: Any
) -> None:
    """Learn, compare and swap; what happens is noted in `state`."""
    margin, fewest, swap, n_jobs, key = how
    digest = folder_digest(folder)
    old = load_tagger(folder, key=key)
    check_belongs(store, old)
    control = list(reviewed_rows(store, control=True))
    rows = new_rows(store, digest) if data is None else list(reviewed_rows(store, control=False))
    state.update({"old_digest": digest, "rows": len(rows), "control": len(control), "fewest": fewest})
    state["method"] = "update" if data is None else "retrain"
    if not rows:
        state["sentence"] = "There are no reviewed rows that the model has not learned."
        return
    if len(control) < fewest:
        state["sentence"] = (
            f"{len(control)} rows of the control sample are finished; {fewest} are needed to compare models."
        )
        return
    check_target(beside(folder, CANDIDATE))
    new = _learned(old, rows, control, data, n_jobs, tell)
    tell("Saving")
    candidate = new.save(beside(folder, CANDIDATE))
    new = load_tagger(candidate)  # what is compared is what would be put in place
    tell("Comparing")
    compared = state["comparison"] = compare_on_control(old, new, control, margin)
    new_digest = state["new_digest"] = folder_digest(candidate)
    if not (compared["not_worse"] and swap):
        state["sentence"] = sentence_of(compared, swapped=False, asked=swap)
        return
    tell("Swapping")
    _note_learned(store, state, rows, new_digest)
    if folder_digest(folder) != digest:
        raise ModelError(f"{folder} was replaced by another model meanwhile; nothing was swapped.")
    backup = install(candidate, folder)
    state.update({"swapped": True, "backup": str(backup)})
    told = sentence_of(compared, swapped=True) + _new_labels(old, new)
    state["sentence"] = f"{told} The old one is kept in {backup.name}."
    suggest_items(store, new, new_digest, progress=tell)
    check_given_labels(store, n_jobs=n_jobs)


def _new_labels(old: Tagger, new: Tagger) -> str:
    """Return a sentence that names labels that a model has learned and the one before did not have."""
    added = sorted(set(new.labels_) - set(old.labels_))
    if not added:
        return ""
    shown = ", ".join(f"'{label}'" for label in added[:LABELS_SHOWN]) + (", …" if len(added) > LABELS_SHOWN else "")
    return f" It has {plural(len(added), 'new label')}: {shown}."


def new_rows(store: ReviewStore, digest: str) -> list[ReviewedRow]:
    """Return finished rows, control rows aside, that the model with this digest has not learned with these labels."""
    known = _learned_before(store, digest)
    rows = reviewed_rows(store, control=False)
    return [row for row in rows if known.get(row.item.number) != list(row.final())]


def _learned_before(store: ReviewStore, digest: str) -> dict[int, list[str]]:
    """Return the labels with which a model learned reviewed rows, by following the updates that led to it."""
    known: dict[int, list[str]] = {}
    seen: set[str] = set()
    with store.reading() as db:
        while digest not in seen:
            seen.add(digest)
            last = db.execute(
                "SELECT number, old_digest FROM updates WHERE new_digest = ? ORDER BY number DESC LIMIT 1", (digest,)
            ).fetchone()
            if last is None:
                break
            for item, labels in db.execute("SELECT item, labels FROM learned WHERE change = ?", (last[0],)):
                known.setdefault(item, store.json_list(labels, str))
            digest = last[1]
    return known


def _note_learned(store: ReviewStore, state: ReviewUpdateFacts, rows: Sequence[ReviewedRow], new_digest: str) -> None:
    """Write down which rows a new model has learned, before it is put in place: its digest says whether it was."""
    with store.writing() as db:
        facts = (now(), state["old_digest"], new_digest, json.dumps(state))
        made = db.execute("INSERT INTO updates (at, old_digest, new_digest, facts) VALUES (?, ?, ?, ?)", facts)
        pairs = [(made.lastrowid, row.item.number, json.dumps(row.final())) for row in rows]
        db.executemany("INSERT INTO learned VALUES (?, ?, ?)", pairs)


def _learned(
    old: Tagger,
    rows: Sequence[ReviewedRow],
    control: Sequence[ReviewedRow],
    data: Dataset | None,
    n_jobs: int | None,
    progress: Stages,
) -> Tagger:
    """Return a new model that has learned reviewed rows."""
    if data is not None:
        return _trained_anew(old, rows, control, data, n_jobs, progress)
    if not isinstance(old.model_, Updatable):
        raise ModelError(
            f"a model of the method {old.method_name!r} cannot learn new rows; give the rows of its training, so that "
            "it can be trained anew with the reviewed ones."
        )
    new = copy(old)  # an update replaces what a Tagger holds, and changes nothing in it
    new.model_.n_jobs = n_jobs
    return new.update_dataset(dataset_of(rows), progress=progress)


def dataset_of(rows: Sequence[ReviewedRow]) -> Dataset:
    """Return reviewed rows with their final labels as a Dataset."""
    return Dataset.from_lists(
        [row.item.text for row in rows], [row.final() for row in rows], ids=[row.item.id for row in rows]
    )


def _trained_anew(
    old: Tagger,
    rows: Sequence[ReviewedRow],
    control: Sequence[ReviewedRow],
    data: Dataset,
    n_jobs: int | None,
    progress: Stages,
) -> Tagger:
    """Return a model trained as the old one was, on its rows with reviewed labels, and never on control rows."""
    if data.texts is None:
        raise DataError("{input} has no texts; reviewed rows are texts.", input="the data")
    reviewed = [row.item for row in (*rows, *control)]
    known_ids, known_texts = {item.id for item in reviewed}, {item.text for item in reviewed}
    ids = data.ids or ("",) * data.n_rows
    kept = [at for at in range(data.n_rows) if ids[at] not in known_ids and data.texts[at] not in known_texts]
    texts = [data.texts[at] for at in kept] + [row.item.text for row in rows]
    labels = [data.labels_of(at) for at in kept] + [row.final() for row in rows]
    features = clone(old.features_) if isinstance(old.features_, Estimator) else None
    method = None if old.method is None else old.method_
    new = Tagger(method, features=features, model=clone(old.model_), calibrate=old.calibrate, n_jobs=n_jobs)
    new.set_params(target=old.target, per=old.per, random_state=old.random_state)
    joined = Dataset.from_lists(texts, labels)
    return new.fit_dataset(joined, progress=progress, vocabulary=old.vocabulary_)


def compare_on_control(
    old: Tagger, new: Tagger, control: Sequence[ReviewedRow], margin: float
) -> ReviewComparisonFacts:
    """Return F1 of the labels that two models give to control rows, the difference, and its 95% interval.

    F1 is that of each row, averaged. The interval is a paired percentile bootstrap of rows.
    """
    texts = [row.item.text for row in control]
    truth = [set(row.final()) for row in control]
    given = [[set(labels) for labels in tagger.predict(texts)] for tagger in (old, new)]
    before, after = (np.array([_f1(a, b) for a, b in zip(one, truth, strict=True)]) for one in given)
    difference = after - before
    low, high = _interval(difference)
    seen = [set(row.values()) for row in control]
    unjudged = sum(len(labels - shown) for labels, shown in zip(given[1], seen, strict=True))
    compared: ReviewComparisonFacts = {
        "rows": len(control),
        "metric": "F1 of the labels given to a row",
        "before": float(before.mean()),
        "after": float(after.mean()),
        "difference": float(difference.mean()),
        "low": low,
        "high": high,
        "margin": margin / 100,
        "not_worse": bool(low > -margin / 100),
        "unjudged": unjudged,
        "rows_needed": None,
        "precision_at": _precision_at(old, new, texts, truth),
    }
    compared["rows_needed"] = _rows_needed(compared)
    return compared


def _f1(given: set[str], true: set[str]) -> float:
    """Return the F1 of one row; 1 where there is nothing to find and nothing was given."""
    return 2 * len(given & true) / (len(given) + len(true)) if given or true else 1.0


def _interval(differences: np.ndarray) -> tuple[float, float]:
    """Return the 95% interval of the mean of differences of rows, by drawing rows again."""
    rng = np.random.default_rng(0)
    n = differences.size
    step = max(1, 2_000_000 // n)
    means = [
        differences[rng.integers(0, n, size=(min(step, RESAMPLES - start), n))].mean(axis=1)
        for start in range(0, RESAMPLES, step)
    ]
    low, high = np.quantile(np.concatenate(means), [0.025, 0.975])
    return float(low), float(high)


def _precision_at(old: Tagger, new: Tagger, texts: Sequence[str], truth: Sequence[set[str]]) -> dict[str, Any]:
    """Return P@1, P@3 and P@5 of two models on rows."""
    out: dict[str, Any] = {f"p@{k}": {} for k in (1, 3, 5)}
    for side, tagger in (("before", old), ("after", new)):
        ranked = [[tagger.labels_[i] for i in ids if i >= 0] for ids in tagger.predict_topk(texts, k=5).ids.tolist()]
        for k in (1, 3, 5):
            hits = [len(true.intersection(names[:k])) / k for names, true in zip(ranked, truth, strict=True)]
            out[f"p@{k}"][side] = float(np.mean(hits))
    return out


def sentence_of(compared: ReviewComparisonFacts, *, swapped: bool, asked: bool = True) -> str:
    """Return in words what a comparison came to."""
    before, after, change = (100 * compared[name] for name in ("before", "after", "difference"))
    low, high, margin = (100 * compared[name] for name in ("low", "high", "margin"))
    facts = (
        f"On {compared['rows']} control rows F1 goes from {before:.1f}% to {after:.1f}% "
        f"({change:+.1f} points, 95% interval {low:+.1f} to {high:+.1f})"
    )
    if swapped:
        return f"{facts}: the new model is in use."
    if compared["not_worse"]:
        return f"{facts}: the new model is not worse" + ("." if asked else "; nothing was swapped, as asked.")
    why = "is worse" if high < 0 else f"may be worse by more than {margin:g} points"
    more = compared["rows_needed"]
    hint = "" if high < 0 or more is None else f" About {more:,} finished control rows would tell."
    return f"{facts}: the new model {why}; the old one stays.{hint}"


def _rows_needed(compared: ReviewComparisonFacts) -> int | None:
    """Return how many control rows would make the interval narrow enough, if the difference stays as it is."""
    room = compared["margin"] + compared["difference"]
    width = compared["difference"] - compared["low"]
    return None if room <= 0 else int(np.ceil(compared["rows"] * (width / room) ** 2 / 10) * 10)


def update_quietly(path: Path, folder: Path) -> None:
    """Make a new model in a process of its own, less urgent than others; what happens is in `update_state` alone."""
    with contextlib.suppress(OSError, AttributeError):
        os.nice(10)
    with contextlib.suppress(LongtailError, KeyboardInterrupt), ReviewStore(path) as store:
        update_from_reviews(store, folder, n_jobs=1)


# --- the state of an update, for those who wait for it ----------------------------------------------------------------


def update_state(store: ReviewStore) -> ReviewUpdateFacts:
    """Return how far an update is, or what the last one came to; one that was killed has failed."""
    with store.reading() as db:
        row = db.execute("SELECT value FROM meta WHERE key = ?", (STATE,)).fetchone()
    state = IDLE if row is None else _state(row[0])
    if state["state"] == "running" and not is_updating(store):
        return {**state, "state": "failed", "sentence": "The update was stopped before it ended; nothing is half done."}
    return state


def _state(raw: str) -> ReviewUpdateFacts:
    """Return a stored state; that of no update where it cannot be read."""
    try:
        found = json.loads(raw)
    except (ValueError, RecursionError):
        return IDLE
    needed = {"state": str, "swapped": bool, "sentence": str}
    sound = isinstance(found, dict) and all(isinstance(found.get(name), kind) for name, kind in needed.items())
    return cast("ReviewUpdateFacts", found) if sound else IDLE


def _keep_state(store: ReviewStore, state: ReviewUpdateFacts) -> None:
    with store.writing() as db:
        db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (STATE, json.dumps(state)))


def is_updating(store: ReviewStore) -> bool:
    """Say whether a process is making a new model from this review file."""
    try:
        with updating(store):
            return False
    except DataError:
        return True


@contextlib.contextmanager
def updating(store: ReviewStore) -> Iterator[None]:
    """Hold the right to update; a killed process loses it."""
    try:
        import fcntl
    except ImportError:  # no file locks on this system: the user must see to it
        yield
        return
    file = store.path.with_name(store.path.name + "-update")
    handle = os.open(file, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise DataError(f"an update from {store.path} is running already.") from error
        yield
    finally:
        os.close(handle)
