"""The real data that comes with longtail: two data sets made from the Debian package index.

| name               | a row's text        | its labels                                |
|--------------------|---------------------|-------------------------------------------|
| `debtags`          | package description | facet tags, such as `role::program`       |
| `debian-relations` | package description | the packages it depends on or recommends  |

Every label has a text of its own. The split is fixed. Where the data comes from, how it was made and
under which terms: `files/README.md` beside this module; `scripts/make_bundled_data.py` makes it again.

>>> for name in bundled_names():
...     facts = bundled_info(name)
...     print(name, facts["rows_train"], facts["rows_test"], facts["labels"])
debtags 25132 4165 566
debian-relations 48585 7878 38449
"""

from __future__ import annotations

import json
import lzma
from importlib import resources

from longtail.data.dataset import Dataset
from longtail.errors import DataError
from longtail.validate import Json, check_choice

NAMES = ("debtags", "debian-relations")
SPLITS = ("train", "test")
FOLDER = "files"


def bundled_names() -> tuple[str, ...]:
    """Return the names of the bundled data sets, the smaller one first.

    >>> bundled_names()
    ('debtags', 'debian-relations')
    """
    return NAMES


def load_bundled(name: str, split: str = "train") -> Dataset:
    """Load one split of a bundled data set, with texts, ids and the names and texts of the labels.

    Both splits number their labels alike, in the order of the label file; `debian-relations` has labels
    that only test rows use, as a real collection has.

    Parameters
    ----------
    name : {"debtags", "debian-relations"}
        The data set.
    split : {"train", "test"}, default="train"
        Which of its rows.

    Returns
    -------
    data : Dataset

    Examples
    --------
    >>> data = load_bundled("debtags", "test")
    >>> data
    Dataset(debtags: 4165 rows of texts, 566 labels)
    >>> row = data.ids.index("vim")
    >>> data.texts[row].partition("\\n")[0]
    'Vi IMproved - enhanced vi editor'
    >>> data.labels_of(row)[:3]
    ('devel::editor', 'implemented-in::c', 'interface::commandline')
    """
    check_choice("name", name, NAMES)
    check_choice("split", split, SPLITS)
    labels = _read_records(f"{name}.labels.jsonl.xz")
    rows = _read_records(f"{name}.{split}.jsonl.xz")
    return Dataset.from_lists(
        [row["text"] for row in rows],
        [row["labels"] for row in rows],
        label_names=[label["id"] for label in labels],
        label_texts=tuple(label["text"] for label in labels),
        ids=tuple(row["id"] for row in rows),
        name=name,
    )


def bundled_info(name: str) -> Json:
    """Return sizes, origin and digests of a bundled data set, without reading it.

    Parameters
    ----------
    name : {"debtags", "debian-relations"}
        The data set.

    Returns
    -------
    facts : dict
        JSON-able: `rows_train`, `rows_test`, `labels`, `about`, `index`, `inputs_sha256` and more.

    Examples
    --------
    >>> facts = bundled_info("debian-relations")
    >>> facts["about"]
    'package descriptions with the packages they depend on or recommend'
    >>> facts["index"]
    'Debian 12.15 (bookworm), main, amd64, Release file of 2026-07-11'
    """
    check_choice("name", name, NAMES)
    facts = json.loads(_read_file("facts.json"))
    return {
        "name": name,
        **facts["data"][name],
        "index": facts["index"],
        "inputs_sha256": facts["inputs_sha256"],
    }


def _read_records(file: str) -> list[Json]:
    try:
        lines = lzma.decompress(_read_file(file)).splitlines()
        return [json.loads(line) for line in lines]
    except (lzma.LZMAError, ValueError) as error:
        raise DataError(f"the bundled file {file} is damaged ({error}); install longtail again.") from error


def _read_file(file: str) -> bytes:
    try:
        return resources.files("longtail.data").joinpath(FOLDER, file).read_bytes()
    except OSError as error:
        raise DataError(f"the bundled file {file} cannot be read ({error}); install longtail again.") from error
