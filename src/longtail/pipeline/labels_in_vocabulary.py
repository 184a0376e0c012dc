"""The labels of data and the concepts of a vocabulary: matched, and what one lacks of the other counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from longtail.data import Dataset
from longtail.errors import DataError, Keyword, Parameter, ParameterError, warn_of_data
from longtail.facts import DatasetFacts, VocabularyFacts, VocabularyLabelFacts
from longtail.validate import check_choice, make_csr
from longtail.vocabulary import Vocabulary

UNKNOWN = ("keep", "drop", "error")
DEPRECATED = ("keep", "replace")
LISTED = 10  # labels named in the facts
NAMED = 3  # labels named in a sentence


def match_labels(
    data: Dataset, vocabulary: Vocabulary, unknown: str = "keep", deprecated: str = "keep", listed: int = LISTED
) -> tuple[Dataset, VocabularyFacts]:
    """Return data whose labels are ids of concepts, and facts about what the vocabulary and the data lack.

    A label that is the notation or the name of one concept becomes its id. Labels that the vocabulary does not have,
    and names of several concepts, are kept, dropped or refused ("error"). Deprecated concepts are kept, or replaced by
    what took their place ("replace"). The facts name `listed` labels of a kind at most.

    >>> from longtail.vocabulary import Concept
    >>> data = Dataset.from_lists(["a cat", "a dog"], [["cats"], ["dogs"]])
    >>> data, facts = match_labels(data, Vocabulary([Concept("c1", {"": "cats"}), Concept("c2", {"": "birds"})]))
    >>> data.label_names, facts["labels_unknown"], facts["concepts_without_rows"]
    (('c1', 'dogs'), 1, 1)
    """
    check_choice("unknown_labels", unknown, UNKNOWN)
    check_choice("deprecated_labels", deprecated, DEPRECATED)
    names = data.names()
    ids = [_id_of(name, vocabulary) for name in names]
    before = ids
    if deprecated == "replace":
        ids = [None if id is None else current_id(id, vocabulary) for id in ids]
    counts = np.bincount(data.Y.indices, minlength=len(names))
    strange = [number for number, id in enumerate(ids) if id is None and counts[number]]
    strange.sort(key=lambda number: (-counts[number], names[number]))
    unclear = dict.fromkeys(n for n in strange if vocabulary.candidates(names[n]))  # names of several concepts
    lacking = [number for number in strange if number not in unclear]
    if strange and unknown == "error":
        _refuse([names[n] for n in lacking], [names[n] for n in unclear], int((counts > 0).sum()), vocabulary)
    kept = [number for number, id in enumerate(ids) if id is not None or unknown != "drop"]
    if unknown == "drop" and not any(ids[number] is not None and counts[number] for number in kept):
        check_any_known(names, vocabulary)
        raise DataError("the data has no label that means one concept of the vocabulary.")
    new = [ids[number] or names[number] for number in kept]
    known = {id for number, id in enumerate(ids) if id is not None and counts[number]}
    facts: VocabularyFacts = {
        "name": vocabulary.name_of_vocabulary,
        "concepts": len(vocabulary),
        "language": vocabulary.shown_language,
        "labels_known": len(known),
        "labels_by_name": sum(
            id is not None and id != name and bool(count) for id, name, count in zip(before, names, counts, strict=True)
        ),
        "labels_unknown": len(lacking),
        "unknown_labels": unknown,
        "unknown": [{"label": names[number], "rows": int(counts[number])} for number in lacking[:listed]],
        "labels_ambiguous": len(unclear),
        "ambiguous": [
            _ambiguous_facts(names[number], int(counts[number]), vocabulary) for number in [*unclear][:listed]
        ],
        "concepts_without_rows": len(vocabulary) - len(known),
        "deprecated_in_use": 0,
        "deprecated": [],
        "deprecated_labels": deprecated,
    }
    if deprecated == "replace":
        _count_replaced(facts, data, before, ids, vocabulary)
    data = data if new == list(names) else _renamed(data, kept, new)
    _count_deprecated(facts, data, vocabulary, listed)
    return data, facts


def with_ids(data: Dataset, vocabulary: Vocabulary | None, deprecated: str = "keep") -> Dataset:
    """Return data whose labels are ids of concepts where they name some; without a vocabulary, the data as it is."""
    return data if vocabulary is None else match_labels(data, vocabulary, deprecated=deprecated)[0]


def ids_of(names: Sequence[str], vocabulary: Vocabulary | None, deprecated: str = "keep") -> list[str]:
    """Return labels of data by their ids, where they name concepts."""
    if vocabulary is None:
        return list(names)
    ids = [_id_of(name, vocabulary) or name for name in names]
    if deprecated == "replace":
        return [current_id(id, vocabulary) if id in vocabulary else id for id in ids]
    return ids


def current_id(id: str, vocabulary: Vocabulary) -> str:
    """Return the concept to use in place of a deprecated one; the same where nothing took its place.

    >>> from longtail.vocabulary import Concept
    >>> current_id("a", Vocabulary([Concept("a", deprecated=True, replaced_by="b"), Concept("b")]))
    'b'
    """
    seen = {id}
    while vocabulary.is_deprecated(id) and (after := vocabulary.replacement(id)) is not None and after not in seen:
        seen.add(after)
        id = after
    return id


def check_any_known(labels: Sequence[str], vocabulary: Vocabulary, of: str = "the data") -> None:
    """Refuse a vocabulary that has none of some labels: it is probably another one."""
    if labels and not any(vocabulary.candidates(label) for label in labels):
        few = (", ".join(repr(name[:100]) for name in names) for names in (labels[:NAMED], vocabulary.ids[:NAMED]))
        raise DataError(
            "none of the {n:,} labels of {input} is in the vocabulary: {input} has {ours}, the vocabulary {theirs}.",
            n=len(labels),
            input=of,
            ours=next(few),
            theirs=next(few),
        )


def count_ambiguous(data: Dataset, known: Collection[str], vocabulary: Vocabulary | None) -> int:
    """Return how many labels of rows that a model does not know are names of several concepts; warn of them."""
    if vocabulary is None:
        return 0
    there = set(known)
    names = [name for name in data.compact_labels().names() if name not in there and name not in vocabulary]
    unclear = [name for name in names if len(vocabulary.candidates(name)) > 1]
    if unclear:
        first = _ambiguous_facts(unclear[0], 0, vocabulary)
        sentence = _ambiguous_sentence({"labels_ambiguous": len(unclear), "ambiguous": [first]})
        warn_of_data("{problem}; such labels count as unknown. Give them by id.", problem=sentence)
    return len(unclear)


def unknown_choice(data: DatasetFacts) -> str:
    """Return what a model that was trained on some data does with labels that the vocabulary lacks."""
    return data["vocabulary"].get("unknown_labels", UNKNOWN[0]) if "vocabulary" in data else UNKNOWN[0]


def deprecated_choice(data: DatasetFacts) -> str:
    """Return what a model that was trained on some data does with deprecated concepts: keep or replace."""
    return data["vocabulary"].get("deprecated_labels", DEPRECATED[0]) if "vocabulary" in data else DEPRECATED[0]


def label_ids(names: Sequence[str], vocabulary: Vocabulary) -> tuple[str, ...]:
    """Return the labels of a model that was trained without the vocabulary by their ids, where each has its own.

    >>> from longtail.vocabulary import Concept
    >>> label_ids(["cats", "dogs"], Vocabulary([Concept("c1", {"": "cats"})]))
    ('c1', 'dogs')
    """
    ids = ids_of(names, vocabulary)
    times = Counter(ids)
    return tuple(id if times[id] == 1 else name for id, name in zip(ids, names, strict=True))


def vocabulary_sentences(facts: VocabularyFacts) -> list[str]:
    """Return in a few sentences how the labels of the data and the vocabulary differ."""
    known, strange = facts["labels_known"], facts["labels_unknown"]
    total = known + strange + facts.get("labels_ambiguous", 0)
    what = {"keep": "kept all the same", "drop": "dropped", "error": "refused"}[facts["unknown_labels"]]
    out = [f"Vocabulary: {known:,} of {total:,} labels of the data are among its {facts['concepts']:,} concepts."]
    if facts["labels_by_name"]:
        out.append(
            f"{facts['labels_by_name']:,} of them were given by name or notation and are called by their ids now."
        )
    if strange:
        listed = _some([row["label"] for row in facts["unknown"]], strange)
        are = "label is" if strange == 1 else "labels are"
        out.append(f"{strange:,} {are} not in the vocabulary and {what}: {listed}.")
    if facts.get("labels_ambiguous"):
        out.append(f"{_ambiguous_sentence(facts)}; {what}. Give such labels by id.")
    if facts["concepts_without_rows"]:
        n = facts["concepts_without_rows"]
        have = "concept has" if n == 1 else "concepts have"
        out.append(f"{n:,} {have} no row in the data.")
    if facts.get("replaced"):
        n, rows = facts["replaced"], facts["rows_replaced"]
        listed = _some([f"{row['name']} by {row['replaced_by_name']}" for row in facts["replacements"]], n)
        were = "deprecated concept was" if n == 1 else "deprecated concepts were"
        out.append(f"{n:,} {were} replaced in {rows:,} row{'s' * (rows != 1)}: {listed}.")
    if facts["deprecated_in_use"]:
        n = facts["deprecated_in_use"]
        listed = _some([_deprecated(row) for row in facts["deprecated"]], n)
        are = "deprecated concept is" if n == 1 else "deprecated concepts are"
        out.append(f"{n:,} {are} in use: {listed}.")
    return out


def label_texts_of(labels: Sequence[str], vocabulary: Vocabulary) -> tuple[str, ...]:
    """Return for every label its names, the preferred one first; a label that is no concept is its own text."""
    return tuple("; ".join(vocabulary.names_of(label)) if label in vocabulary else label for label in labels)


def new_concepts(labels: Sequence[str], vocabulary: Vocabulary) -> list[str]:
    """Return the ids of the concepts that are no labels yet, by id, notation or name, and not deprecated."""
    known = {*labels, *ids_of(labels, vocabulary)}
    return [id for id in vocabulary.ids if id not in known and not vocabulary.is_deprecated(id)]


def hierarchy_of(labels: Sequence[str], vocabulary: Vocabulary | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the concept above each concept, -1 for none, and the concept of every label, -1 for none.

    Of several broader concepts the first counts. A vocabulary without any is refused.
    """
    if vocabulary is None:
        raise ParameterError("{name} needs {other}.", name="tree_from_vocabulary", other=Parameter("vocabulary"))
    if not vocabulary.has_hierarchy:
        problem = "needs broader concepts, and no concept of the vocabulary has one."
        raise ParameterError(name="tree_from_vocabulary", problem=problem)
    above = vocabulary.first_broader()
    own = [vocabulary.number_of(label) if label in vocabulary else -1 for label in labels]
    return above, np.array(own, dtype=np.int64)


def _id_of(name: str, vocabulary: Vocabulary) -> str | None:
    """Return the id of the one concept that a label of data means; None for none, or several."""
    if name in vocabulary:
        return name
    found = vocabulary.candidates(name)
    return found[0] if len(found) == 1 else None


def _refuse(lacking: Sequence[str], unclear: Sequence[str], total: int, vocabulary: Vocabulary) -> None:
    """Refuse labels that the vocabulary lacks, or that are names of several concepts."""
    parts = []
    if lacking:
        parts.append(f"{len(lacking):,} of {total:,} labels of the data are not in the vocabulary: {_some(lacking)}")
    if unclear:
        few = [_ambiguous_facts(name, 0, vocabulary) for name in unclear[:1]]
        parts.append(_ambiguous_sentence({"labels_ambiguous": len(unclear), "ambiguous": few}))
    raise DataError(
        "{told}; {keep} keeps them, {drop} leaves them out.",
        told="; ".join(parts),
        keep=Keyword("unknown_labels", "keep"),
        drop=Keyword("unknown_labels", "drop"),
    )


def _ambiguous_facts(name: str, rows: int, vocabulary: Vocabulary) -> VocabularyLabelFacts:
    """Return a name of several concepts with their ids."""
    return {"label": name, "rows": rows, "ids": vocabulary.candidates(name)[:LISTED]}


def _ambiguous_sentence(facts: Mapping[str, Any]) -> str:
    """Say how many labels are names of several concepts, with an example."""
    n, first = facts["labels_ambiguous"], facts["ambiguous"][0]
    are = "label of the data is the name" if n == 1 else "labels of the data are names"
    ids = " or ".join(f"<{id[:100]}>" for id in first["ids"][:NAMED]) + (" or …" if len(first["ids"]) > NAMED else "")
    return f"{n:,} {are} of several concepts, such as {first['label'][:100]!r}, which may be {ids}"


def _renamed(data: Dataset, kept: Sequence[int], new: Sequence[str]) -> Dataset:
    """Return data with the kept labels under new names; those that get the same name become one label."""
    names = list(dict.fromkeys(new))
    where = {name: number for number, name in enumerate(names)}
    column = np.full(data.n_labels, -1, dtype=np.int64)
    column[list(kept)] = [where[name] for name in new]
    rows = np.repeat(np.arange(data.n_rows), np.diff(data.Y.indptr))
    columns = column[data.Y.indices]
    good = columns >= 0
    pairs, first = np.unique(rows[good] * len(names) + columns[good], return_index=True)
    counts = np.bincount(pairs // len(names), minlength=data.n_rows)
    indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    Y = make_csr(indptr, (pairs % len(names)).astype(np.int32), data.Y.data[good][first], len(names))
    texts = None
    if data.label_texts is not None:
        by_name = {name: data.label_texts[number] for number, name in reversed(list(zip(kept, new, strict=True)))}
        texts = tuple(by_name[name] for name in names)
    return replace(data, Y=Y, label_names=tuple(names), label_texts=texts)


def _count_deprecated(facts: VocabularyFacts, data: Dataset, vocabulary: Vocabulary, most: int) -> None:
    """Add the deprecated concepts that rows have, the most used first, with what replaced them."""
    names, counts = data.names(), np.bincount(data.Y.indices, minlength=data.n_labels)
    used = [i for i in np.argsort(-counts, kind="stable").tolist() if counts[i] and names[i] in vocabulary]
    old = [i for i in used if vocabulary.is_deprecated(names[i])]
    facts["deprecated_in_use"] = len(old)
    listed: list[VocabularyLabelFacts] = []
    for number in old[:most]:
        row: VocabularyLabelFacts = {
            "label": names[number],
            "name": vocabulary.name(names[number]),
            "rows": int(counts[number]),
        }
        replacement = vocabulary.replacement(names[number])
        if replacement is not None:
            row["replaced_by"], row["replaced_by_name"] = replacement, vocabulary.name(replacement)
        listed.append(row)
    facts["deprecated"] = listed


def _count_replaced(
    facts: VocabularyFacts,
    data: Dataset,
    before: Sequence[str | None],
    after: Sequence[str | None],
    vocabulary: Vocabulary,
) -> None:
    """Add which concepts were replaced by others, those of most rows first."""
    changed = np.array([old != new for old, new in zip(before, after, strict=True)], dtype=bool)
    counts = np.bincount(data.Y.indices, minlength=data.n_labels)
    numbers = [number for number in np.argsort(-counts, kind="stable").tolist() if changed[number] and counts[number]]
    rows = np.repeat(np.arange(data.n_rows), np.diff(data.Y.indptr))[changed[data.Y.indices]]
    facts["replaced"], facts["rows_replaced"] = len(numbers), int(np.unique(rows).size)
    facts["replacements"] = []
    for number in numbers[:LISTED]:
        old, new = before[number] or "", after[number] or ""
        row: VocabularyLabelFacts = {"label": old, "name": vocabulary.name(old), "rows": int(counts[number])}
        row["replaced_by"], row["replaced_by_name"] = new, vocabulary.name(new)
        facts["replacements"].append(row)


def _deprecated(row: VocabularyLabelFacts) -> str:
    instead = f" (replaced by {row['replaced_by_name']})" if row.get("replaced_by_name") else ""
    return f"{row['name']}{instead}"


def _some(names: Sequence[str], total: int | None = None) -> str:
    """Return the first of some names, in one line."""
    more = ", …" if (len(names) if total is None else total) > NAMED else ""
    return ", ".join(name[:100] for name in names[:NAMED]) + more
