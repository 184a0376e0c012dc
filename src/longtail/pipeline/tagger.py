"""The Tagger: texts and label names in; label names, scores and probabilities out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeAlias, TypeGuard

import numpy as np
import scipy.sparse as sp

from longtail.data import Dataset, TopK, binary_hits
from longtail.decisions import Decision, check_purpose
from longtail.engine import Engine, running_on
from longtail.errors import DataError, ModelError, ParameterError
from longtail.facts import DatasetFacts, ExplanationFacts, MethodFacts, MonitorFacts, UpdateFacts
from longtail.model import (
    BuiltLater,
    EpochReport,
    Estimator,
    SavedFeatures,
    Stages,
    TextFeatures,
    TextReader,
    XMCEstimator,
    available_if,
    clone,
    not_fitted,
    plain_value,
)
from longtail.monitoring import Reference
from longtail.pipeline.choose_method import AUTO, choose_method
from longtail.pipeline.deciding import assign, decide_on_data, decide_on_held_out, n_candidates
from longtail.pipeline.drift import monitor_dataset, reference_of_held_out
from longtail.pipeline.explain import explain_text
from longtail.pipeline.held_out import held_out_facts, hold_out
from longtail.pipeline.label_names import check_new_labels, numbers_of
from longtail.pipeline.label_numbering import truth
from longtail.pipeline.labels_in_vocabulary import (
    check_any_known,
    hierarchy_of,
    ids_of,
    label_texts_of,
    match_labels,
    new_concepts,
)
from longtail.pipeline.registry import DEFAULT_METHOD, METHODS
from longtail.pipeline.shown import ShownTags, tagger_card
from longtail.pipeline.stored_features import features_for, made_alike
from longtail.pipeline.update import check_labels_agree, update_tagger, without_labels
from longtail.storage import MANY_LABELS, LabelColumns, MappedStrings, Part, save_folder
from longtail.text import as_texts
from longtail.validate import (
    Json,
    MatrixLike,
    RandomState,
    Rows,
    as_rows,
    check_choice,
    check_integer,
    check_same_rows,
    resolve_seed,
)
from longtail.vocabulary import Vocabulary

if TYPE_CHECKING:
    from sklearn.utils import Tags

    from longtail.data import GroupedDataset, GroupsOfRow, LabelsOfGroup
    from longtail.pipeline.imputation import Imputed

Texts: TypeAlias = "Sequence[str] | np.ndarray | sp.sparray | sp.spmatrix"
"""Texts, or rows of features in their place."""


def is_matrix(values: object) -> TypeGuard[np.ndarray | sp.sparray | sp.spmatrix]:
    """Say whether rows or labels are given as numbers; arrays of strings are lists of texts."""
    return sp.issparse(values) or (isinstance(values, np.ndarray) and values.dtype.kind not in "OUT")


def as_dataset(
    texts: Texts,
    labels: Iterable[str | Iterable[str]] | MatrixLike,
    label_names: Sequence[str] | None,
    label_texts: Sequence[str] | None,
) -> Dataset:
    """Return texts, or rows, and their labels, lists of names or a matrix, as a Dataset."""
    texts = numbers_of_frame(texts)
    if is_frame(labels):
        label_names = [str(name) for name in labels.columns] if label_names is None else label_names
        labels = numbers_of_frame(labels)
        if not is_matrix(labels):
            raise DataError(
                "labels must be a list of lists of names, or a DataFrame of numbers; got one of other values."
            )
    names = None if label_names is None else tuple(label_names)
    fields: dict[str, Any] = {"label_names": names, "label_texts": label_texts}
    rows: dict[str, Any] = {"X": texts} if is_matrix(texts) else {"texts": texts}
    if labels is None:
        raise DataError("labels must hold the labels of every text; got None.")
    if is_matrix(labels):
        return Dataset(Y=labels, **rows, **fields)
    lists = lists_of_names(labels)
    listed = Dataset.from_lists([""] * len(lists), lists, label_names=names)
    return Dataset(Y=listed.Y, **rows, **{**fields, "label_names": listed.label_names})


def is_frame(values: object) -> TypeGuard[Any]:
    """Say whether values are a DataFrame, of pandas, polars or another library."""
    return hasattr(values, "columns") and hasattr(values, "to_numpy")


def numbers_of_frame(values: Any) -> Any:
    """Return a DataFrame of numbers as a matrix; anything else as it is."""
    if not is_frame(values):
        return values
    array = values.to_numpy()
    return array if array.dtype.kind in "biuf" else values


def lists_of_names(labels: Iterable[Any]) -> list[list[str]]:
    """Return the labels of every row as a list of names; whole numbers are names, as they are in files.

    >>> lists_of_names([["a", "b"], (7,)])
    [['a', 'b'], ['7']]
    """
    out = []
    for at, row in enumerate(labels):
        if isinstance(row, str | bytes | Mapping) or not isinstance(row, Iterable):
            got = "NaN" if isinstance(row, float) and row != row else type(row).__name__
            got = "a string" if isinstance(row, str) else got
            raise DataError(f"labels must be a list of lists of names, one list per text; got {got} at position {at}.")
        names = list(row)
        if set(map(type, names)) - {str}:
            names = [_name_of(name, at) for name in names]
        out.append(names)
    return out


def _name_of(name: object, at: int) -> str:
    """Return one label of a row as a name."""
    if isinstance(name, str):
        return str(name)
    if isinstance(name, int | np.integer) and not isinstance(name, bool):
        return str(int(name))
    got = "NaN" if isinstance(name, float) and name != name else f"{name!r:.60}"
    raise DataError(f"labels must be names or whole numbers; got {got} at position {at}.")


class Tag(NamedTuple):
    """One suggested label; `name` is what people call it, None where the Tagger has no vocabulary."""

    label: str
    score: float
    probability: float | None

    @property
    def name(self) -> str | None:
        """What people call the label."""
        return None


class NamedTag(Tag):
    """One suggested label of a Tagger with a vocabulary; still a tuple of three."""

    shown: str

    @classmethod
    def of(cls, tag: Tag, name: str) -> NamedTag:
        """Return a tag with the name of its label."""
        out = cls(*tag)
        out.shown = name
        return out

    @property
    def name(self) -> str | None:
        return self.shown

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, name={self.shown!r})"


class Tagger(Estimator):
    """Learns to tag texts from examples; gives label names with scores and calibrated probabilities.

    Parameters
    ----------
    method : {"tree", "ova", "dft", "prime", "hybrid", "auto"} or None, default=None
        Which model to train: "tree" (a label tree: fast, for any number of labels), "ova" (one linear classifier per
        label: exact, for some thousands of labels), "dft" (a network whose narrow output layer can give every small
        label set; needs torch), "prime" (an encoder that reads texts and the texts, or names, of labels; needs torch)
        or "hybrid" (encoder, label tree, similar training texts and names of labels, with learned weights: the most
        accurate; needs torch to train). "auto" takes the one that suits the data, by measurements: see `choose_method`.
        None for that of `model`, or "tree".
    features : TextFeatures or None, default=None
        How texts become rows; None for `TfidfFeatures()`. Not used when rows are given instead of texts, and not to be
        given to models that read texts themselves ("prime", "hybrid").
    model : XMCEstimator or None, default=None
        An estimator to use instead of the method's default one.
    calibrate : float, default=0.1
        Share of the rows (at most 20,000 rows) held out to learn what a score means as a probability and which
        threshold suits label sets. A first model is trained without them, the final one with all rows; 0 skips this,
        which halves the training time. With fewer than 50 rows there is nothing to learn from, and it is skipped too.
        Networks ("dft", "prime", "hybrid") are trained once, without the rows held out: trained again, a network gives
        scores of another scale.
    target : str or None, default=None
        What the labels that `predict` assigns are chosen for, on the rows held out: "precision=0.8", "recall=0.9",
        "labels-per-row=3", "f1", "macro-f1", or a goal for k labels a row: "macro-f1@5", "coverage@5",
        "macro-recall@5" ("macro-f1@5:0.3" for 30% of it and 70% of P@5). None for "f1".
    per : {"global", "band", "label"}, default="global"
        Which labels share a threshold: all, those of similar frequency, or each has its own, drawn towards that of
        its band where it is rare.
    random_state : int, Generator, RandomState or None, default=None
        Seed; the same seed gives the same model, byte for byte ("dft" and "prime": on a CPU, with the same number of
        threads). None for 0.
    n_jobs : int or None, default=None
        Threads; None for all cores.

    Attributes
    ----------
    model_ : XMCEstimator
        The trained model.
    method_ : str
        The method that was trained: with "auto", the one chosen.
    features_ : TextReader or None
        The fitted features; None where the model was trained on rows, or reads texts itself.
    labels_ : tuple of str
        The names of the labels; predictions number them in this order.
    label_texts_ : tuple of str or None
        The texts of the labels, where the data had some.
    vocabulary_ : Vocabulary or None
        The concepts that the labels are, where one was given: what people see of a label is the name of its concept.
    n_labels_ : int
    held_out_ : dict or None
        Rows held out, and the metrics on them.
    decision_ : Decision or None
        How labels are assigned, where a target or a guarantee was chosen; else by the threshold of the calibration.
    reference_ : Reference or None
        What the rows held out look like, for `monitor` to compare later rows with.
    data_ : dict
        Facts about the training data.
    updated_ : dict
        What the last update did: rows, labels and words added, and precision before and after on rows held out.

    Examples
    --------
    >>> texts = ["red apple", "green apple", "fast car", "old car"] * 20
    >>> labels = [["fruit", "red"], ["fruit"], ["vehicle"], ["vehicle"]] * 20
    >>> tagger = Tagger(random_state=0).fit(texts, labels)
    >>> tagger.predict(["a new car", "one red apple"])
    [('vehicle',), ('fruit', 'red')]
    >>> tagger.tag(["a new car"], k=1)[0][0].label
    'vehicle'
    """

    model_: XMCEstimator
    features_: TextReader | None
    labels_: tuple[str, ...]
    label_texts_: tuple[str, ...] | None
    vocabulary_: Vocabulary | None = None
    held_out_: Json | None
    data_: DatasetFacts
    updated_: UpdateFacts
    decision_: Decision | None = None
    reference_: Reference | None = None

    def __init__(
        self,
        method: str | None = None,
        *,
        features: TextFeatures | None = None,
        model: XMCEstimator | None = None,
        calibrate: float = 0.1,
        target: str | None = None,
        per: str = "global",
        random_state: RandomState = None,
        n_jobs: int | None = None,
    ) -> None:
        self.method = method
        self.features = features
        self.model = model
        self.calibrate = calibrate
        self.target = target
        self.per = per
        self.random_state = random_state
        self.n_jobs = n_jobs

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array, tags.input_tags.string, tags.input_tags.sparse = False, True, True
        return tags

    def fit(
        self,
        texts: Texts,
        labels: Iterable[str | Iterable[str]] | MatrixLike,
        *,
        label_names: Sequence[str] | None = None,
        label_texts: Sequence[str] | None = None,
        vocabulary: Vocabulary | None = None,
        unknown_labels: str = "keep",
        deprecated_labels: str = "keep",
        tree_from_vocabulary: bool = False,
        progress: Stages | None = None,
        on_epoch: EpochReport | None = None,
        engine: Engine | None = None,
    ) -> Self:
        """Train on texts (or on rows: a sparse or dense matrix) and their labels.

        `labels` is a list of lists of names, or a matrix Y with one column per label. The other parameters are those of
        `fit_dataset`.
        """
        data = as_dataset(texts, labels, label_names, label_texts)
        own: dict[str, Any] = {"vocabulary": vocabulary, "unknown_labels": unknown_labels}
        own |= {"deprecated_labels": deprecated_labels, "tree_from_vocabulary": tree_from_vocabulary}
        return self.fit_dataset(data, progress=progress, on_epoch=on_epoch, engine=engine, **own)

    def fit_dataset(
        self,
        data: Dataset,
        progress: Stages | None = None,
        on_epoch: EpochReport | None = None,
        *,
        vocabulary: Vocabulary | None = None,
        unknown_labels: str = "keep",
        deprecated_labels: str = "keep",
        tree_from_vocabulary: bool = False,
        engine: Engine | None = None,
    ) -> Self:
        """Train on a Dataset: on its texts, or on its features where it has no texts.

        `vocabulary` says what the labels are: they may be given by id, notation or name, and become ids; its names are
        the texts of labels where the data has none. Labels that it lacks are kept, dropped or refused
        (`unknown_labels`: "keep", "drop" or "error") and counted in `data_`. Deprecated concepts are kept, or
        replaced by what took their place (`deprecated_labels`: "keep" or "replace"), also in data to judge by. With
        `tree_from_vocabulary` its broader concepts are the clusters of the label tree. `on_epoch`, of models trained in
        epochs ("dft", "prime"), gets a record with the loss after every epoch. `engine` says where classifiers are
        trained, on threads (None) or a cluster; the model is the same.
        """
        if not isinstance(data, Dataset):
            remedy = f"; pass lt.data.read({data!r:.200})" if isinstance(data, str | Path) else ""
            raise ParameterError(f"data must be a Dataset; got {type(data).__name__}{remedy}.")
        data, seed = data.compact_labels(), resolve_seed(self.random_state)
        model = self.chosen(self.choose_method(data, vocabulary)).new_model() if self._is_auto() else self.new_model()
        matched, as_read = None, data.digest()
        if vocabulary is not None:
            check_any_known(data.names(), vocabulary)
            data, matched = match_labels(data, vocabulary, unknown_labels, deprecated_labels)
            if model.reads_texts and data.label_texts is None:
                data = replace(data, label_texts=label_texts_of(data.names(), vocabulary))
        if tree_from_vocabulary:
            model.use_hierarchy(*hierarchy_of(data.names(), vocabulary))
        features = None if model.reads_texts else features_for(data, self.features, self.n_jobs)
        split = hold_out(data.Y, self.calibrate, seed, model.held_out_at_most)
        self._check_target(split is not None)
        with running_on(engine):
            held_out = model.fit_dataset(data, features=features, split=split, progress=progress, on_epoch=on_epoch)
        self.features_, self.model_, self.decision_, self.reference_ = features, model, None, None
        if held_out is not None and self.target is not None:
            self.decision_ = decide_on_held_out(model, held_out, self.target, self.per)
        self.held_out_ = None if held_out is None else held_out_facts(held_out, seed)
        self.labels_ = data.names()
        self.label_texts_ = data.label_texts
        self.vocabulary_ = vocabulary
        digest = as_read if matched is None else data.digest()
        self.data_ = {"digest": digest, "digests": [as_read], **data.summary()}
        if matched is not None:
            self.data_["vocabulary"] = matched
        self._seed = seed
        if held_out is not None and split is not None:
            self.reference_ = reference_of_held_out(self, held_out, data.take(split[1]), learned_from=data.n_rows)
        return self

    def _check_target(self, has_held_out: bool) -> None:
        """Refuse a target that is none, or that there are no rows to choose by, before anything slow begins."""
        if self.target is None:
            check_purpose("f1", None, self.per)
            if self.per != "global":
                raise ParameterError(name="per", allowed="'global' without a target", got=self.per)
            return
        check_purpose(self.target, None, self.per)
        if not has_held_out:
            raise ParameterError(name="target", problem="needs rows held out to choose by; here there are none.")

    def learn_decision(
        self, data: Dataset, *, target: str | None = None, guarantee: str | None = None, per: str = "global"
    ) -> Self:
        """Choose anew which labels `predict` assigns, on rows that this Tagger was not trained on; nothing is trained.

        `target` and `per` are those of the constructor. `guarantee` is "missed=0.1" or "wrong=0.1": the expected share
        of a row's true labels that are missed, or of its assigned labels that are wrong, is at most that, for rows
        drawn as those of `data` are.
        """
        self._check_fitted()
        self.decision_, top = decide_on_data(self, data, target, guarantee, per)
        self.target, self.per = target, per
        if self.reference_ is not None:
            self.reference_ = self.reference_.with_assigned(assign(self, top).ids, self.n_labels_)
        return self

    def fit_groups(
        self,
        texts: Iterable[str],
        groups: Iterable[GroupsOfRow],
        group_labels: Mapping[Any, LabelsOfGroup],
        *,
        progress: Stages | None = None,
        on_epoch: EpochReport | None = None,
        **settings: Any,
    ) -> Self:
        """Train on texts whose labels are known for groups of them only; settings are those of `impute_dataset`.

        >>> texts = ["red apple", "fast car", "an old car", "green apple", "apple", "car"]
        >>> tags = {"1": ["fruit", "vehicle"], "2": ["vehicle", "fruit"], "3": ["fruit"], "4": ["vehicle"]}
        >>> tagger = Tagger(random_state=0).fit_groups(texts, ["1", "1", "2", "2", "3", "4"], tags)
        >>> tagger.tag(["a car"], k=1)[0][0].label
        'vehicle'
        """
        from longtail.data import GroupedDataset  # with all formats of files

        data = GroupedDataset.from_lists(texts, groups, group_labels)
        imputed = self.impute(data, progress=progress, **settings)
        return self.fit_imputed(imputed, progress=progress, on_epoch=on_epoch)

    def impute(self, data: GroupedDataset, *, progress: Stages | None = None, **settings: Any) -> Imputed:
        """Find the labels of rows with the features, the model and the seed of this Tagger."""
        from longtail.pipeline.imputation import impute_dataset  # only this needs the methods for groups

        model = (Tagger(features=self.features, n_jobs=self.n_jobs) if self._is_auto() else self).new_model()
        model.check_training_data(data.rows)
        own: dict[str, Any] = {"features": self.features, "n_jobs": self.n_jobs}
        own["random_state"] = resolve_seed(self.random_state)
        if settings.get("rounds"):
            own["model"] = model.imputing_model()
        return impute_dataset(data, progress=progress, **{**own, **settings})

    def fit_imputed(
        self,
        imputed: Imputed,
        progress: Stages | None = None,
        on_epoch: EpochReport | None = None,
        *,
        vocabulary: Vocabulary | None = None,
        unknown_labels: str = "keep",
        deprecated_labels: str = "keep",
        tree_from_vocabulary: bool = False,
    ) -> Self:
        """Train on the rows for which a label was found; how they were found is kept with the model.

        The other parameters are those of `fit_dataset`.
        """
        own: dict[str, Any] = {"vocabulary": vocabulary, "unknown_labels": unknown_labels}
        own |= {"deprecated_labels": deprecated_labels, "tree_from_vocabulary": tree_from_vocabulary}
        self.fit_dataset(imputed.labelled(), progress=progress, on_epoch=on_epoch, **own)
        self.data_["imputed"] = imputed.facts
        return self

    @property
    def method_name(self) -> str:
        """The name of the method: the one given or chosen, else that of the model, else "tree"."""
        if self.method is not None and not (self.method == AUTO and hasattr(self, "model_")):
            return check_choice("method", self.method, (*METHODS, AUTO))
        model = getattr(self, "model_", self.model)
        return DEFAULT_METHOD if model is None else model.tagger_method or type(model).__name__

    @property
    def method_(self) -> str:
        """The method that was trained."""
        self._check_fitted()
        return self.model_.tagger_method or type(self.model_).__name__

    def _is_auto(self) -> bool:
        """Say whether the method is to be chosen by the data."""
        return self.method == AUTO

    def choose_method(self, data: Dataset, vocabulary: Vocabulary | None = None) -> MethodFacts:
        """Return which method suits a Dataset, with which settings and why, as facts; `method="auto"` trains that.

        The choice rests on measurements: rows, labels and rows per label, whether labels have texts (in the data or in
        a `vocabulary`), and whether there are an encoder and a GPU.

        >>> from longtail.data.synthetic.generate import make_topics
        >>> Tagger().choose_method(make_topics(300, 10)[0])["method"]
        'tree'
        """
        return choose_method(data, own_features=self.features is not None, has_label_texts=vocabulary is not None)

    def chosen(self, choice: MethodFacts) -> Tagger:
        """Return a Tagger of the method chosen, not fitted, where the method is "auto"; else this one."""
        if not self._is_auto():
            return self
        if self.model is not None:
            raise ParameterError(name="model", problem=f"cannot be given with the method {AUTO!r}.")
        return clone(self).set_params(method=choice["method"], model=METHODS[choice["method"]](**choice["settings"]))

    def new_model(self) -> XMCEstimator:
        """Return the model that `fit_dataset` trains, untrained, with the seed and the threads of this Tagger."""
        method = self.method_name
        if self._is_auto():
            raise ParameterError(name="method", problem=f"is {AUTO!r}: which model suits depends on the data.")
        model = clone(self.model) if self.model is not None else METHODS[method]()
        if self.method is not None and model.tagger_method not in (None, method):
            wanted, got = METHODS[method].__name__, type(model).__name__
            raise ParameterError(name="model", problem=f"must be a {wanted} with the method {method!r}; got a {got}.")
        known = model.get_params(deep=False)
        if known.get("random_state", 0) is None:
            model.set_params(random_state=resolve_seed(self.random_state))
        if known.get("n_jobs", 0) is None:
            model.set_params(n_jobs=self.n_jobs)
        model.check_features(self.features)
        return model

    @property
    def n_labels_(self) -> int:
        self._check_fitted()
        return len(self.labels_)

    def _repr_html_(self) -> str:
        """Return what a notebook shows: what was learned and how good it was on the rows held out."""
        return tagger_card(self) if hasattr(self, "model_") else super()._repr_html_()

    def _learned(self) -> list[tuple[str, object]]:
        return []

    def _check_fitted(self) -> None:
        if not hasattr(self, "model_"):
            raise not_fitted("this Tagger is not fitted yet; call fit(texts, labels) first.")
        check_labels_agree(self)

    @property
    def reads_texts_(self) -> bool:
        """Whether it was trained on texts, by features or by a model that reads them itself; else on rows."""
        self._check_fitted()
        return self.features_ is not None or self.model_.reads_texts

    def rows(self, texts: Texts) -> Rows:
        """Return the rows of texts as the model sees them; rows given instead of texts are checked and passed on."""
        self._check_fitted()
        texts = numbers_of_frame(texts)
        if is_matrix(texts):
            return as_rows(texts)
        if not self.reads_texts_:
            raise DataError(
                f"the model was trained on rows of features, not on texts: give rows of {self.model_.n_features_in_} "
                f"features as a matrix, sparse or dense; got {type(texts).__name__}."
            )
        return self.model_.rows_of(as_texts(texts), self.features_)

    def dataset_rows(self, data: Dataset) -> Rows:
        """Return the rows of a Dataset: from its texts where this Tagger reads texts, else its features."""
        if self.reads_texts_:
            if data.texts is None and self.features_ is not None and made_alike(data, self.features_):
                return self.rows(data.X)
            if data.texts is None:
                raise DataError("the model was trained on texts, and the data has only features.")
            return self.rows(data.texts)
        if data.X is None:
            raise DataError("the model was trained on rows of features, and the data has only texts.")
        return self.rows(data.X)

    def predict_topk(
        self, texts: Texts, k: int = 5, *, allow: Sequence[str] | None = None, deny: Sequence[str] | None = None
    ) -> TopK:
        """Return the k best labels of every text as numbers (positions in `labels_`), with scores.

        `allow` (only these labels) and `deny` (none of these) are lists of labels.
        """
        rows = self.rows(texts)
        only = None if allow is None else self.label_numbers(allow, "allow")
        none_of = None if deny is None else self.label_numbers(deny, "deny")
        return self.model_.predict_topk(rows, k=k, allow=only, deny=none_of)

    @available_if(lambda tagger: tagger.model_._why_no_probabilities() if hasattr(tagger, "model_") else None)
    def predict_proba(
        self, texts: Texts, k: int = 20, *, allow: Sequence[str] | None = None, deny: Sequence[str] | None = None
    ) -> sp.csr_array:
        """Return calibrated probabilities of the k best labels of every text, as a sparse matrix.

        `allow` (only these labels) and `deny` (none of these) are lists of label names. A Tagger trained without
        calibration does not have this method.
        """
        top = self.predict_topk(texts, k=min(check_integer("k", k, low=1), self.n_labels_), allow=allow, deny=deny)
        return self.model_.probabilities(top).to_csr(self.n_labels_)

    def predict(
        self,
        texts: Texts,
        k: int | None = None,
        *,
        allow: Sequence[str] | None = None,
        deny: Sequence[str] | None = None,
        optimise: str | None = None,
    ) -> list[tuple[str, ...]]:
        """Return the labels each text should get, by name, best first, at most k.

        They are chosen among its 50 likeliest labels. `allow` (only these labels) and `deny` (none of these) are lists
        of label names. With `optimise`, a goal such as "macro-f1@5", all texts are looked at together, and each gets 5
        labels, so that rare labels are found too.
        """
        top = self.predict_topk(texts, k=n_candidates(self, optimise), allow=allow, deny=deny)
        assigned = assign(self, top, k, optimise)
        return [tuple(self.labels_[i] for i in ids if i >= 0) for ids in assigned.ids.tolist()]

    def tag(
        self, texts: Texts, k: int = 5, *, allow: Sequence[str] | None = None, deny: Sequence[str] | None = None
    ) -> list[list[Tag]]:
        """Return the k best labels of every text, by name, with score and probability, best first.

        `allow` (only these labels) and `deny` (none of these) are lists of labels.
        """
        return ShownTags.of(self.name_tags(self.predict_topk(texts, k=k, allow=allow, deny=deny)), texts)

    def name_tags(self, top: TopK) -> list[list[Tag]]:
        """Return predictions with label names and, where the model is calibrated, probabilities."""
        calibrated = self.model_.calibrated_
        chances = self.model_.probabilities(top).scores if calibrated else top.scores
        tags = [
            [
                Tag(self.labels_[i], float(score), float(chance) if calibrated else None)
                for i, score, chance in zip(ids, scores, row, strict=True)
                if i >= 0
            ]
            for ids, scores, row in zip(top.ids, top.scores, chances, strict=True)
        ]
        if self.vocabulary_ is None:
            return tags
        ids = np.unique(top.ids[top.ids >= 0]).tolist()
        names = {self.labels_[i]: self.label_name(i) for i in ids}
        return [[NamedTag.of(tag, names[tag.label]) for tag in row] for row in tags]

    def label_matrix(self, labels: Iterable[str | Iterable[str]] | MatrixLike) -> sp.csr_array:
        """Return the true labels of rows as a matrix numbered as predictions are, unknown labels after the known.

        `labels` are lists of names, or a matrix with the columns of `labels_` or of the matrix it was trained on.
        """
        self._check_fitted()
        width = labels.shape[1] if is_matrix(labels) and labels.ndim == 2 else -1
        names = self.labels_ if width == self.n_labels_ else None
        rows = labels.shape[0] if is_matrix(labels) else len(labels := list(labels))
        Y: sp.csr_array = truth(self, as_dataset([""] * rows, labels, names, None))[0]
        return Y

    def score(self, texts: Texts, labels: Iterable[str | Iterable[str]] | MatrixLike) -> float:
        """Return the share of texts whose first label is right (precision at 1); labels as for `fit`."""
        Y = self.label_matrix(labels)
        top = self.predict_topk(texts, k=1)
        check_same_rows(top.ids, Y)
        return float(binary_hits(top, Y).mean())

    def explain(
        self,
        text: str,
        k: int = 5,
        labels: Sequence[str] | None = None,
        *,
        allow: Sequence[str] | None = None,
        deny: Sequence[str] | None = None,
    ) -> ExplanationFacts:
        """Return why the k best labels (or the given ones) came, as facts: the words for and against each.

        Word weights and the bias of a label add up to its margin; from the margins of the label and of the nodes on its
        path, where the model has a tree, comes its score. Of a model that reads texts ("prime") the weight of a word
        is what the score loses without it; these do not add up, and the bias is None. `allow` (only these labels) and
        `deny` (none of these) are lists of labels.
        """
        return explain_text(self, text, k, labels, allow, deny)

    def monitor(
        self,
        texts: Texts,
        labels: Iterable[str | Iterable[str]] | MatrixLike | None = None,
        *,
        reference: tuple[Texts, Iterable[str | Iterable[str]] | MatrixLike | None] | None = None,
    ) -> MonitorFacts:
        """Return how texts differ from the rows held out of the training: has the data changed since?

        Unknown words, lengths, probabilities and the mix of labels are compared and, with `labels`, which are as for
        `fit`, precision and calibration. Every comparison has a verdict, "steady", "watch" or "changed", which takes
        into account what chance does to so few rows. `reference` is a pair of texts and labels (or None) to compare
        with in place of those of the training.

        >>> tagger = Tagger(random_state=0).fit(["red apple", "old car"] * 100, [["fruit"], ["vehicle"]] * 100)
        >>> tagger.monitor(["old car", "red apple"] * 20)["verdict"]
        'steady'
        >>> tagger.monitor(["ein altes Auto", "roter Apfel"] * 20)["unknown_words"][0]["word"]
        'altes'
        """
        self._check_fitted()
        rows = self._rows_to_monitor(texts, labels)
        return monitor_dataset(self, rows, None if reference is None else self._rows_to_monitor(*reference))

    def _rows_to_monitor(self, texts: Texts, labels: Iterable[str | Iterable[str]] | MatrixLike | None) -> Dataset:
        """Return texts, or rows, with or without labels, as a Dataset."""
        texts = numbers_of_frame(texts)
        if labels is None:
            labels = sp.csr_array((texts.shape[0] if is_matrix(texts) else len(as_texts(texts)), 0), dtype=np.float32)
            return as_dataset(texts, labels, (), None)
        width = labels.shape[1] if is_matrix(labels) and labels.ndim == 2 else -1
        return as_dataset(texts, labels, self.labels_ if width == self.n_labels_ else None, None)

    def add_labels(
        self,
        names: Sequence[str] | None = None,
        texts: Sequence[str] | None = None,
        *,
        vocabulary: Vocabulary | None = None,
    ) -> Self:
        """Add labels by their texts alone, or by their names; nothing is trained. For models that read texts ("prime").

        The new labels are numbered after the old ones. Probabilities keep the curve that was learned with those. With a
        `vocabulary` and no names: all its concepts that are no labels yet and not deprecated; its concepts come into
        the vocabulary of the Tagger. The names of a concept are its text where none is given.
        """
        self._check_fitted()
        known = self.vocabulary_
        if vocabulary is not None:
            known = vocabulary if known is None else known.updated(vocabulary)
        if names is None:
            names = [] if vocabulary is None else new_concepts(self.labels_, vocabulary)
        if known is not None:
            names = ids_of(as_texts(names, "names"), known)
            texts = label_texts_of(names, known) if texts is None else texts
        new, given = check_new_labels(self.labels_, names, texts)
        self.model_.add_labels_by_text(given)
        if texts is not None or self.label_texts_ is not None:
            self.label_texts_ = (*(self.label_texts_ or self.labels_), *given)
        self.labels_ = (*self.labels_, *new)
        self.vocabulary_ = known
        self.data_ = {**self.data_, "labels_added": self.data_.get("labels_added", 0) + len(new)}
        return self

    def partial_fit(
        self,
        texts: Texts,
        labels: Iterable[str | Iterable[str]] | MatrixLike,
        classes: object = None,
        *,
        label_names: Sequence[str] | None = None,
        label_texts: Sequence[str] | None = None,
        progress: Stages | None = None,
    ) -> Self:
        """Learn new texts without the old ones; labels and words that are new are added. Returns self.

        `labels` is as for `fit`; a matrix has the columns of `label_names`, or those of `labels_`. For the methods
        "tree" and "ova". `classes` is ignored. What was done is in `updated_`.

        >>> tagger = Tagger(random_state=0).fit(["red apple", "old car"] * 30, [["fruit"], ["vehicle"]] * 30)
        >>> tagger.partial_fit(["a tall tree", "an old tree"] * 3, [["plant"]] * 6).labels_
        ('fruit', 'vehicle', 'plant')
        """
        if not hasattr(self, "model_"):
            given: dict[str, Any] = {"label_names": label_names, "label_texts": label_texts, "progress": progress}
            return self.fit(texts, labels, **given)
        if label_names is None and is_matrix(labels) and labels.shape[1] == len(self.labels_):
            label_names = self.labels_
        return self.update_dataset(as_dataset(texts, labels, label_names, label_texts), progress=progress)

    def update_dataset(self, data: Dataset, replay: Dataset | None = None, progress: Stages | None = None) -> Self:
        """Learn the rows of a Dataset, as `partial_fit` does. Returns self.

        `replay` holds rows that were learned before: shown again, less of them is forgotten, and with all of them the
        labels of the new rows are trained anew on old and new rows together.
        """
        self._check_fitted()
        state, self.updated_ = update_tagger(self, data, replay, progress)
        self.__dict__.update(state)
        return self

    def remove_labels(self, labels: Sequence[str]) -> Self:
        """Let labels go, by name; nothing is trained. Returns self. For the methods "tree" and "ova"."""
        self._check_fitted()
        self.__dict__.update(without_labels(self, self.label_numbers(labels)))
        return self

    def label_numbers(self, names: Sequence[str], argument: str = "labels") -> list[int]:
        """Return the numbers of labels, their positions in `labels_`.

        A Tagger with a vocabulary takes the id, the notation or a name of a concept.
        """
        self._check_fitted()
        return numbers_of(self.labels_, names, argument, self.vocabulary_)

    def label_name(self, number: int) -> str:
        """Return what people call a label: the name of its concept where there is a vocabulary."""
        label = self.labels_[number]
        return label if self.vocabulary_ is None or label not in self.vocabulary_ else self.vocabulary_.name(label)

    def build(self) -> None:
        """Make the networks that loading leaves until they are needed, so that a damaged one is found now.

        A network that cannot be made is a `ModelError`, a missing torch a `MissingExtraError`.
        """
        self._check_fitted()
        if isinstance(self.features_, BuiltLater):
            self.features_.build()
        self.model_.build()

    def save(self, path: str | Path) -> Path:
        """Write the tagger to a folder; `longtail.load` reads it back. A checkpoint of its training is then removed."""
        self._check_fitted()
        parts = {"tagger": Part("tagger.v1", {"method": self.method_name, "calibrate": plain_value(self.calibrate)})}
        if self.features_ is not None:
            if not isinstance(self.features_, SavedFeatures):
                raise ModelError(f"features of the class {type(self.features_).__name__} cannot be saved.")
            parts["features"] = self.features_.to_part()
        parts |= self.model_.parts()
        if self.vocabulary_ is not None:
            parts["vocabulary"] = self.vocabulary_.to_part()
        if self.decision_ is not None:
            parts["decision"] = self.decision_.to_part()
        if self.reference_ is not None:
            parts["reference"] = self.reference_.to_part()
        counts = np.asarray(self.model_.label_counts_, dtype=np.int64)
        texts = None if self.label_texts_ is None else MappedStrings.of(self.label_texts_)
        columns = LabelColumns(MappedStrings.of(self.labels_), counts, texts)
        labels = columns if len(columns) > MANY_LABELS else list(columns)
        seed = getattr(self, "_seed", None)  # a loaded tagger has none: its random_state is the seed
        facts = {
            "seed": resolve_seed(self.random_state) if seed is None else seed,
            "data": self.data_,
            "held_out": self.held_out_,
        }
        saved = save_folder(path, "tagger.v1", parts, labels, facts)
        self.model_.drop_checkpoint()
        return saved
