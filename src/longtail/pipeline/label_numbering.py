"""Rows of a Dataset as a Tagger numbers and predicts them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from longtail.data import Dataset, TopK
from longtail.engine import in_use
from longtail.errors import DataError, ParameterError, warn_of_data
from longtail.kernels import blocks
from longtail.pipeline.label_names import split_known
from longtail.pipeline.labels_in_vocabulary import deprecated_choice, with_ids
from longtail.pipeline.on_engine import Scoring
from longtail.validate import make_csr

if TYPE_CHECKING:
    from longtail.pipeline.tagger import Tagger

BLOCK = 4096
LEAST_SHARED = 0.5  # of the labels of rows that a model should know


def with_ids_of(tagger: Tagger, data: Dataset) -> Dataset:
    """Return data without unused labels, whose labels are called as those of a tagger's training data were."""
    return with_ids(data.compact_labels(), tagger.vocabulary_, deprecated_choice(tagger.data_))


def truth(tagger: Tagger, data: Dataset) -> tuple[Any, tuple[str, ...]]:
    """Return the true labels in the tagger's numbering, labels it does not know after those it knows, and the names."""
    data = with_ids_of(tagger, data)
    unknown = sorted(set(data.names()) - set(tagger.labels_))
    names = (*tagger.labels_, *unknown)
    return data.align(names)[0].Y, names


def check_shared_labels(tagger: Tagger, data: Dataset, called: str = "the model") -> None:
    """Refuse data to judge a model by that has none of its labels, and warn where it lacks most of them."""
    if (data.texts if tagger.reads_texts_ and data.made_by is None else data.X) is None:
        return  # rows of the wrong kind, which predicting refuses in its own words
    data = with_ids_of(tagger, data)
    known, names = set(tagger.labels_), data.names()
    shared = np.array([name in known for name in names], dtype=bool)
    share = float(shared[data.Y.indices].mean()) if data.Y.nnz else 1.0
    if share == 0:
        raise DataError(
            "{input} and {model} share no label: the data has {ours}, {model} {theirs}.",
            input="the data",
            model=called,
            ours=_some(names),
            theirs=_some(tagger.labels_),
        )
    if share < LEAST_SHARED:
        missing = [name for name, there in zip(names, shared, strict=True) if not there]
        warn_of_data(
            "{model} does not know {share:.0f}% of the labels of the rows, such as {missing}: they count as misses.",
            model=called,
            share=100 * (1 - share),
            missing=_some(missing),
        )


def _some(names: Sequence[str]) -> str:
    """Return the first few of some names."""
    return ", ".join(repr(name[:60]) for name in names[:3]) + (", …" if len(names) > 3 else "")


class LabelLimit(NamedTuple):
    """Which labels models may give, by name: only those of `allow`, none of `deny`; None leaves them as they are."""

    allow: frozenset[str] | None = None
    deny: frozenset[str] | None = None

    @classmethod
    def of(cls, taggers: Sequence[Tagger], allow: Sequence[str] | None, deny: Sequence[str] | None) -> LabelLimit:
        """Return the limit to labels that at least one of the taggers knows, by id, notation or name."""
        return cls(*(_known_to_any(taggers, names, of) for names, of in ((allow, "allow"), (deny, "deny"))))

    def numbers(self, tagger: Tagger) -> dict[str, list[int]]:
        """Return the limit in the numbers of a tagger, as its model takes it; nothing where there is none."""
        given = {of: names for of, names in self._asdict().items() if names is not None}
        where = {name: number for number, name in enumerate(tagger.labels_)} if given else {}
        return {of: sorted(where[name] for name in names & where.keys()) for of, names in given.items()}

    def may_give(self, name: str) -> bool:
        """Say whether a label may be given."""
        return (self.allow is None or name in self.allow) and name not in (self.deny or ())

    def truth(self, Y: sp.csr_array, names: Sequence[str]) -> sp.csr_array:
        """Return true labels without those that may not be given: nobody asks for them."""
        if self.allow is None and self.deny is None:
            return Y
        may = np.array([self.may_give(name) for name in names])
        kept = may[Y.indices]
        if not kept.any():
            raise ParameterError("allow and deny leave no label of the data to judge by.")
        ends = np.concatenate([[0], np.cumsum(kept)])[Y.indptr]
        return make_csr(ends, Y.indices[kept], Y.data[kept], Y.shape[1])


def _known_to_any(taggers: Sequence[Tagger], names: Sequence[str] | None, argument: str) -> frozenset[str] | None:
    """Return the labels that are meant; a name that no tagger knows is refused."""
    if names is None:
        return None
    meant: set[str] = set()
    unknown = list(names)
    for tagger in taggers:
        meant.update(split_known(tagger.labels_, names, tagger.vocabulary_)[0])
        unknown = split_known(tagger.labels_, unknown, tagger.vocabulary_)[1]
    if unknown:
        taggers[0].label_numbers(unknown, argument)  # which refuses them
    return frozenset(meant)


def predict_dataset(
    tagger: Tagger,
    data: Dataset,
    k: int,
    progress: Callable[[int, int], None] | None = None,
    limit: LabelLimit | None = None,
) -> TopK:
    """Return the k best labels of every row of the data, block by block."""
    parts = []
    may = (limit or LabelLimit()).numbers(tagger)
    if data.texts is not None:
        tagger.model_.check_texts(data.texts)  # while rows are numbered as in the data
    engine = in_use()
    if engine is not None and not engine.in_process and data.n_rows:
        return Scoring(tagger, engine).predict_topk(data, k, progress=progress, **may)
    for at in blocks(data.n_rows, BLOCK):
        parts.append(tagger.model_.predict_topk(tagger.dataset_rows(data.take(at)), k=k, **may))
        if progress is not None:
            progress(at.stop, data.n_rows)
    if not parts:
        raise DataError("the data has no rows.")
    return TopK.stack(parts)
