"""`NameMatches`: labels whose names stand in a text, with the log-odds that the text carries each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Self

import numpy as np

from longtail.data import TopK
from longtail.errors import DataError, ParameterError
from longtail.kernels import run_tasks
from longtail.model import MAX_K, Estimator, kept_labels, not_fitted, plain_value
from longtail.name_matches.candidates import Candidates, NameSearch
from longtail.name_matches.features import candidate_features
from longtail.name_matches.find_kernel import LABEL, ROW
from longtail.name_matches.fit import Learned, entry_facts, learn
from longtail.name_matches.link_rates import Links
from longtail.name_matches.name_index import (
    NameEntries,
    Names,
    Terms,
    as_names,
    make_entries,
    search_index,
)
from longtail.name_matches.schema import ASKED_RULES, MOST_WORDS, NAME_MATCHES_SCHEMA
from longtail.storage import Part, PartSchema, checked, pack_strings, unpack_strings
from longtail.text import LANGUAGES, PackedTerms, StemmedWords, as_texts, cut_texts, stem_rules
from longtail.validate import (
    LabelNumbers,
    MatrixLike,
    RandomState,
    as_labels,
    check_integer,
    check_same_rows,
    resolve_jobs,
    resolve_seed,
)

WINDOW = 40  # words to either side of its rarest word within which all words of a name must stand


class NameMatches(Estimator):
    """Finds the labels whose names stand in a text, and says how likely the text carries each.

    Names match by the stems of their words, together or near each other. How often a match means the label is learned
    from texts with labels; labels without such texts are judged as other labels with names alike are.

    Parameters
    ----------
    language : str or None, default="english"
        Language of names and texts, whose stop words are left out and whose words are cut to their stems: by the
        package snowballstemmer where it is installed, else English words by simple rules. None: words as they are.
    rules : {"snowball", "light"} or None, default=None
        How words are cut: "light" by simple rules for English, which need no package; "snowball" by the package, which
        is then needed wherever the model is used; None by the package where it is installed.
    max_words : int, default=8
        Words that a name may have, without stop words; of longer ones only parts are looked for.
    random_state : int, numpy generator or None, default=None
        Seed of the rows that weights are learned from, if there are very many.
    n_jobs : int or None, default=None
        Threads; None for all cores. The results are the same.

    Attributes
    ----------
    n_labels_ : int
        The number of labels.
    no_match_ : float
        Log-odds of a label that a text does not name.

    Examples
    --------
    >>> texts = ["A house for cats", "My cat and your dog", "Dogs in the city", "The city at night"]
    >>> Y = np.array([[1, 0, 0], [1, 1, 0], [0, 1, 1], [0, 0, 1]])
    >>> model = NameMatches().fit(texts, Y, [["cats"], ["dogs", "hounds"], ["cities"]])
    >>> model.predict_topk(["Three hounds"], k=2).ids.tolist()
    [[1, -1]]
    >>> model.matches("Three hounds", 1)
    [(6, 12, 'hounds')]
    """

    n_labels_: int
    no_match_: float
    kind: ClassVar[str] = NAME_MATCHES_SCHEMA.kind
    schema: ClassVar[PartSchema] = NAME_MATCHES_SCHEMA

    def __init__(
        self,
        *,
        language: str | None = "english",
        rules: str | None = None,
        max_words: int = 8,
        random_state: RandomState = None,
        n_jobs: int | None = None,
    ) -> None:
        self.language = language
        self.rules = rules
        self.max_words = max_words
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, texts: Sequence[str], Y: MatrixLike, names: Sequence[Sequence[str] | str]) -> Self:
        """Learn from texts and their labels how often a name in a text means its label.

        Parameters
        ----------
        texts : sequence of str
            The training texts.
        Y : matrix of shape (n_rows, n_labels)
            Their labels.
        names : sequence of sequences of str
            The names of each label, the preferred one first; a label may have none. A string is one name.

        Returns
        -------
        self : NameMatches
        """
        rows, Y = as_texts(texts), as_labels(Y)
        check_same_rows(np.empty((len(rows), 1)), Y, "texts", "Y")
        listed = _checked_names(names)
        if len(listed) != Y.shape[1]:
            told = "{name} must be of as many labels as Y has columns, {allowed}; got {got}."
            raise DataError(told, name="names", allowed=Y.shape[1], got=len(listed))
        max_words = check_integer("max_words", self.max_words, low=1, high=MOST_WORDS)
        seed, n_jobs = resolve_seed(self.random_state), resolve_jobs(self.n_jobs)
        if self.language is not None and self.language not in LANGUAGES:
            raise ParameterError(name="language", allowed=f"one of {list(LANGUAGES)} or None", got=self.language)
        words = StemmedWords(self.language, self._rules())
        known = as_names(listed)
        terms, entries = make_entries(known, words, max_words)
        search = _search(words, terms, entries, Y.shape[1])
        learned = learn(search, terms, rows, Y, seed, n_jobs)
        counts = np.bincount(Y.indices, minlength=Y.shape[1]).astype(np.int64)
        self._keep(_State(known, words, max_words, terms, entries, counts, learned))
        return self

    def _rules(self) -> str:
        """Return the rules by which words are cut, as the parameters say."""
        if self.rules is None:
            return stem_rules(self.language)
        allowed = ASKED_RULES if self.language == "english" else ASKED_RULES[:1] if self.language else ()
        if self.rules not in allowed:
            named = f"{' or '.join(map(repr, allowed))} with language={self.language!r}, or None"
            raise ParameterError(name="rules", allowed=named if allowed else "None", got=self.rules)
        return self.rules

    def predict_topk(self, texts: Sequence[str], k: int) -> TopK:
        """Return the k likeliest labels that each text names, with their log-odds.

        Parameters
        ----------
        texts : sequence of str
            The texts.
        k : int
            Labels of each text; -1 and -inf where it names fewer.

        Returns
        -------
        topk : TopK
        """
        state = self._fitted()
        k = check_integer("k", k, low=1, high=MAX_K)
        k = min(k, state.n_labels)
        found = [_best(candidates, scores, k) for candidates, scores in self._scored(as_texts(texts))]
        empty = TopK(np.empty((0, k), dtype=np.int32), np.empty((0, k), dtype=np.float32))
        return TopK.stack([empty, *found])

    def scores_of(self, texts: Sequence[str], ids: np.ndarray) -> np.ndarray:
        """Return the log-odds of some labels of each text; `no_match_` where a text does not name the label.

        Parameters
        ----------
        texts : sequence of str
            The texts.
        ids : int array of shape (n_texts, m)
            Label numbers; -1 for none.

        Returns
        -------
        scores : float32 array of shape (n_texts, m)
            -inf where the number is -1.
        """
        state, rows = self._fitted(), as_texts(texts)
        ids = np.asarray(ids)
        if ids.ndim != 2 or ids.shape[0] != len(rows) or ids.dtype.kind not in "iu":
            allowed = f"whole numbers of shape ({len(rows)}, m)"
            raise DataError(input="ids", problem=f"must be {allowed}; got {ids.dtype} of shape {ids.shape}.")
        if ids.size and (int(ids.min()) < -1 or int(ids.max()) >= state.n_labels):
            raise DataError(input="ids", problem=f"must be label numbers from -1 to {state.n_labels - 1}.")
        out = np.full(ids.shape, self.no_match_, dtype=np.float32)
        at = 0
        for candidates, scores in self._scored(rows):
            block = slice(at, at + candidates.n_words.size)
            out[block] = _scores_of(candidates, scores, ids[block], state.n_labels, out[block])
            at = block.stop
        out[ids < 0] = -np.inf
        return out

    def matches(self, text: str, label: int) -> list[tuple[int, int, str]]:
        """Return where a text names a label: first character, the one after the last, and the name.

        Matches come in the order of the text, each word by itself where words stand apart. Where several overlap, the
        surest stands for them: words together before words apart, then the longest.
        """
        state = self._fitted()
        label = check_integer("label", label, low=0, high=state.n_labels - 1)
        (text,) = as_texts([text], "text")
        found = state.search.spans(text, label)
        kept: list[tuple[int, int, str]] = []
        taken = bytearray(len(text))  # characters that stand for a name already
        for match in sorted(found, key=lambda m: (-m.grade, m.spans[0][0] - m.spans[-1][1], m.spans)):
            name = state.names.texts[state.entries.name[match.entry]]
            if not any(any(taken[start:end]) for start, end in match.spans):
                kept += [(start, end, name) for start, end in match.spans]
                for start, end in match.spans:
                    taken[start:end] = b"\1" * (end - start)
        return sorted(kept)

    def add_labels(self, names: Sequence[Sequence[str] | str]) -> Self:
        """Add labels by their names, numbered after the old ones; nothing is trained."""
        state = self._fitted()
        new = as_names(_checked_names(names))
        old, learned = state.entries, state.learned
        words = state.words.copied()  # copies of this model keep theirs
        terms, more = make_entries(new, words, state.max_words, state.terms)
        entries = old.plus(more, state.n_labels, len(state.names.texts))
        n_new = new.starts.size - 1
        starts = np.concatenate([state.names.starts, state.names.starts[-1] + new.starts[1:]])
        known = Names(state.names.texts + new.texts, starts)
        learned = learned.with_entries(terms, old, more, words.n_stems)
        counts = np.concatenate([state.label_counts, np.zeros(n_new, dtype=np.int64)])
        self._keep(_State(known, words, state.max_words, terms, entries, counts, learned))
        return self

    def remove_labels(self, labels: LabelNumbers) -> Self:
        """Forget labels, given by number; those after them move up."""
        state = self._fitted()
        keep = kept_labels(labels, state.n_labels)
        names = state.names
        keep_names = keep[names.labels]
        texts = [text for text, kept in zip(names.texts, keep_names.tolist(), strict=True) if kept]
        starts = np.concatenate([[0], np.cumsum(np.diff(names.starts)[keep])]).astype(np.int64)
        learned = state.learned.only(keep[state.entries.label])
        entries = state.entries.only(keep, keep_names)
        counts = state.label_counts[keep]
        known = Names(texts, starts)
        self._keep(_State(known, state.words, state.max_words, state.terms, entries, counts, learned))
        return self

    def to_part(self) -> Part:
        """Return what is saved."""
        state = self._fitted()
        learned, entries = state.learned, state.entries
        words, stems, stem_of = state.words.saved()
        params = {
            "language": state.words.language,
            "max_words": state.max_words,
            "random_state": plain_value(self.random_state),
            "rules": state.words.rules,
            "asked_rules": self.rules,
            "n_rows": learned.n_rows,
            "strength": learned.strength,
            "phrase_share": learned.phrase_share,
            "no_match": learned.no_match,
        }
        arrays = {
            "label_counts": state.label_counts,
            **pack_strings("names", state.names.texts),
            "names.starts": state.names.starts,
            "words.bytes": words.raw,
            "words.offsets": words.offsets,
            "stems.bytes": stems.raw,
            "stems.offsets": stems.offsets,
            "words.stem": stem_of,
            "stem_rows": learned.stem_rows,
            "terms.stems": state.terms.stems,
            "terms.starts": state.terms.starts,
            "entries.term": entries.term,
            "entries.label": entries.label,
            "entries.name": entries.name,
            "entries.kind": entries.kind,
            "entries.words": entries.words,
            "entries.starts": entries.starts,
            "entries.rows": learned.entry_rows,
            "links.named": learned.links.named,
            "links.carried": learned.links.carried,
            "traits.weights": learned.trait_weights,
            "features.weights": learned.feature_weights,
        }
        return Part(self.kind, params, arrays)

    @classmethod
    def from_part(cls, part: Part) -> Self:
        """Make the model from what was saved of it."""
        part = checked(part, NAME_MATCHES_SCHEMA)
        params = part.params
        asked = {name: params[name] for name in ("language", "max_words", "random_state")}
        out = cls(**asked, rules=params.get("asked_rules"))
        array = {name: np.array(values) for name, values in part.arrays.items()}
        own, stems = (PackedTerms(array[f"{name}.bytes"], array[f"{name}.offsets"]) for name in ("words", "stems"))
        words = StemmedWords.restored(params["language"], params["rules"], own, stems, array["words.stem"])
        entries = NameEntries(*(array[f"entries.{name}"] for name in NameEntries._fields))
        learned = Learned(
            params["n_rows"],
            params["strength"],
            params["phrase_share"],
            params["no_match"],
            array["stem_rows"],
            array["entries.rows"],
            Links(array["links.named"], array["links.carried"]),
            array["traits.weights"],
            array["features.weights"],
        )
        names = Names(unpack_strings("names", part), array["names.starts"])
        terms = Terms(array["terms.stems"], array["terms.starts"])
        out._keep(_State(names, words, params["max_words"], terms, entries, array["label_counts"], learned))
        return out

    def _scored(self, texts: list[str]) -> list[tuple[Candidates, np.ndarray]]:
        """Return the candidates of block after block of texts with their log-odds."""
        state = self._fitted()

        def score(block: slice) -> tuple[Candidates, np.ndarray]:
            candidates = state.search.candidates(state.search.content(texts[block]))
            features = candidate_features(candidates.columns, candidates.n_words, state.facts)
            return candidates, features @ state.learned.feature_weights

        return run_tasks(score, list(cut_texts(texts)), resolve_jobs(self.n_jobs))

    def _keep(self, state: _State) -> None:
        """Set the learned state."""
        self._state, self.n_labels_, self.no_match_ = state, state.n_labels, state.learned.no_match

    def _fitted(self) -> _State:
        if not hasattr(self, "_state"):
            raise not_fitted("this NameMatches is not fitted yet; call fit(texts, Y, names) first.")
        return self._state


class _State:
    """All that was learned, and what is made of it to search and to score."""

    def __init__(
        self,
        names: Names,
        words: StemmedWords,
        max_words: int,
        terms: Terms,
        entries: NameEntries,
        label_counts: np.ndarray,
        learned: Learned,
    ) -> None:
        self.names, self.words, self.max_words = names, words, max_words
        self.terms, self.entries = terms, entries
        self.label_counts, self.learned = label_counts, learned
        self.n_labels = label_counts.size
        self.search = _search(words, terms, entries, self.n_labels)
        self.facts = entry_facts(terms, entries, label_counts > 0, learned)


def _search(words: StemmedWords, terms: Terms, entries: NameEntries, n_labels: int) -> NameSearch:
    """Return the search for names in texts."""
    index = search_index(terms, entries, words.n_stems, words.short_stems())
    return NameSearch(words, index, entries, n_labels, WINDOW)


def _checked_names(names: Sequence[Sequence[str] | str]) -> list[list[str]]:
    """Return the names of labels as lists of strings; what is none is refused."""
    if isinstance(names, str | bytes):
        raise DataError(input="names", problem="must be a list with the names of each label; got one string.")
    out = []
    for label, listed in enumerate(names):
        own = [listed] if isinstance(listed, str) else listed
        if not isinstance(own, Sequence) or not all(isinstance(name, str) for name in own):
            told = "{input} must hold the names of each label as strings; got {got!r} for label {label}."
            raise DataError(told, input="names", got=listed, label=label)
        out.append(list(own))
    return out


def _best(candidates: Candidates, scores: np.ndarray, k: int) -> TopK:
    """Return the k best candidates of each row; equal scores go by label number, lower first."""
    columns, n_rows = candidates.columns, candidates.n_words.size
    order = np.lexsort((columns[:, LABEL], -scores, columns[:, ROW]))
    row = columns[order, ROW]
    first = np.searchsorted(row, np.arange(n_rows))
    position = np.arange(row.size) - first[row]
    keep = position < k
    ids, out = np.full((n_rows, k), -1, dtype=np.int32), np.full((n_rows, k), -np.inf, dtype=np.float32)
    ids[row[keep], position[keep]] = columns[order, LABEL][keep]
    out[row[keep], position[keep]] = scores[order][keep]
    return TopK(ids, out)


def _scores_of(
    candidates: Candidates, scores: np.ndarray, ids: np.ndarray, n_labels: int, otherwise: np.ndarray
) -> np.ndarray:
    """Return the scores of some labels of each row, and those of `otherwise` where a label is no candidate."""
    width = np.int64(n_labels)
    key = candidates.columns[:, ROW] * width + candidates.columns[:, LABEL]
    if not key.size:
        return otherwise
    order = np.argsort(key)
    wanted = np.arange(len(ids), dtype=np.int64)[:, None] * width + ids
    at = np.minimum(np.searchsorted(key, wanted, sorter=order), key.size - 1)
    return np.where((key[order[at]] == wanted) & (ids >= 0), scores[order[at]], otherwise)
