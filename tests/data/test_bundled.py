"""The bundled data: what is promised about it holds for the files that are installed."""

from __future__ import annotations

import lzma
import re
from importlib import resources

import numpy as np
import pytest

from longtail.data import bundled
from longtail.data.bundled import bundled_info, bundled_names, load_bundled
from longtail.data.dataset import Dataset
from longtail.errors import DataError, ParameterError

FILES = resources.files("longtail.data").joinpath("files")
Splits = dict[str, tuple[Dataset, Dataset]]


@pytest.fixture(scope="module")
def data() -> Splits:
    return {name: (load_bundled(name), load_bundled(name, "test")) for name in bundled_names()}


def test_names() -> None:
    assert bundled_names() == ("debtags", "debian-relations")


@pytest.mark.parametrize("name", bundled_names())
def test_facts_describe_the_data(data: Splits, name: str) -> None:
    train, test = data[name]
    facts = bundled_info(name)
    assert facts["name"] == train.name == test.name == name
    assert (facts["rows_train"], facts["rows_test"], facts["labels"]) == (train.n_rows, test.n_rows, train.n_labels)
    in_train = np.diff(train.Y.tocsc().indptr) > 0
    assert facts["labels_in_train"] == in_train.sum()
    assert facts["labels_only_in_test"] == (~in_train).sum()
    assert facts["labels_per_row"] == pytest.approx((train.Y.nnz + test.Y.nnz) / (len(train) + len(test)), abs=1e-3)
    assert facts["test_labels_seen_in_train"] == pytest.approx(in_train[test.Y.indices].mean(), abs=1e-4)
    for file, size in facts["bytes"].items():
        assert len(FILES.joinpath(file).read_bytes()) == size
    assert "Debian 12.15" in facts["index"]
    assert all(re.fullmatch("[0-9a-f]{64}", digest) for digest in facts["inputs_sha256"].values())


@pytest.mark.parametrize(("name", "rows", "labels"), [("debtags", 29_297, 566), ("debian-relations", 56_463, 38_449)])
def test_sizes(data: Splits, name: str, rows: int, labels: int) -> None:
    train, test = data[name]
    assert train.n_rows + test.n_rows == rows
    assert 0.13 < test.n_rows / rows < 0.17
    assert train.n_labels == labels


@pytest.mark.parametrize("name", bundled_names())
def test_splits_share_labels_and_every_label_is_used_and_has_text(data: Splits, name: str) -> None:
    train, test = data[name]
    assert train.label_names == test.label_names
    assert train.label_texts == test.label_texts
    assert list(train.names()) == sorted(train.names())
    assert all(text.strip() for text in train.label_texts or ())
    assert set(train.Y.indices) | set(test.Y.indices) == set(range(train.n_labels))


@pytest.mark.parametrize("name", bundled_names())
def test_every_row_has_text_and_labels(data: Splits, name: str) -> None:
    for split in data[name]:
        assert all(20 <= len(text) <= 1000 for text in split.texts or ())
        assert np.diff(split.Y.indptr).min() >= 1
        assert len(set(split.ids or ())) == split.n_rows


def test_no_package_and_no_text_stands_on_both_sides(data: Splits) -> None:
    def words(text: str) -> str:
        return re.sub(r"[\W\d_]+", " ", text.lower())

    train_ids = {i for train, _ in data.values() for i in train.ids or ()}
    test_ids = {i for _, test in data.values() for i in test.ids or ()}
    assert not train_ids & test_ids
    for train, test in data.values():
        assert not {words(t) for t in train.texts or ()} & {words(t) for t in test.texts or ()}


def test_packages_of_one_source_stay_together(data: Splits) -> None:
    train, test = (set(split.ids or ()) for split in data["debian-relations"])
    vim = {"vim", "vim-common", "vim-gtk3", "vim-nox", "vim-tiny"}
    assert vim <= test and not vim & train
    for prefix in ("libboost", "libreoffice-l10n-", "llvm-1", "qemu-system", "tesseract-ocr-"):
        assert sum(i.startswith(prefix) for i in train) >= 10
        assert not any(i.startswith(prefix) for i in test)


def test_no_package_needs_itself(data: Splits) -> None:
    for split in data["debian-relations"]:
        names = split.names()
        rows = np.repeat(np.arange(split.n_rows), np.diff(split.Y.indptr))
        assert split.ids is not None
        assert not any(split.ids[row] == names[label] for row, label in zip(rows, split.Y.indices, strict=True))


def test_spot_checks(data: Splits) -> None:
    tags = data["debtags"][1]
    relations = data["debian-relations"][1]
    assert tags.ids is not None and relations.ids is not None and tags.texts is not None
    vim = tags.ids.index("vim")
    assert tags.texts[vim].startswith("Vi IMproved - enhanced vi editor\nVim is an almost compatible version of")
    assert tags.labels_of(vim) == (
        "devel::editor",
        "implemented-in::c",
        "interface::commandline",
        "interface::text-mode",
        "role::program",
        "scope::application",
        "uitoolkit::ncurses",
        "use::editing",
        "works-with::text",
        "works-with::unicode",
    )
    assert relations.labels_of(relations.ids.index("vim")) == (
        "libacl1",
        "libc6",
        "libgpm2",
        "libselinux1",
        "libsodium23",
        "libtinfo6",
        "vim-common",
        "vim-runtime",
    )
    texts = dict(zip(tags.names(), tags.label_texts or (), strict=True))
    assert texts["uitoolkit::gtk"] == "Interface Toolkit: GTK."
    texts = dict(zip(relations.names(), relations.label_texts or (), strict=True))
    assert texts["vim-runtime"] == "Vi IMproved - Runtime files"


def test_all_files_together_stay_small() -> None:
    assert sum(len(file.read_bytes()) for file in FILES.iterdir()) <= 8_000_000


def test_readme_states_the_numbers() -> None:
    readme = FILES.joinpath("README.md").read_text("utf-8")
    for name in bundled_names():
        facts = bundled_info(name)
        keys = ("rows_train", "rows_test", "labels", "labels_used_once", "labels_only_in_test", "texts_cut")
        for number in [*(facts[key] for key in keys), sum(facts["bytes"].values())]:
            assert f"{number:,}" in readme
        for number in (facts["labels_per_row"], facts["characters_per_text"]):
            assert str(number) in readme
        assert f"{100 * facts['test_labels_seen_in_train']:.2f} %" in readme


def test_unknown_names_are_refused() -> None:
    with pytest.raises(ParameterError, match=r"name must be one of .*'debtag'\. Did you mean 'debtags'\?"):
        load_bundled("debtag")
    with pytest.raises(ParameterError, match=r"split must be one of \['train', 'test'\]; got 'dev'"):
        load_bundled("debtags", "dev")
    with pytest.raises(ParameterError, match="name must be one of"):
        bundled_info("debian")


def test_a_missing_or_damaged_file_gets_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundled, "FOLDER", "nowhere")
    with pytest.raises(DataError, match=r"bundled file debtags\.labels\.jsonl\.xz cannot be read"):
        load_bundled("debtags")
    monkeypatch.setattr(bundled, "_read_file", lambda file: lzma.compress(b'{"id": "a"')[:-3])
    with pytest.raises(DataError, match=r"bundled file debtags\.labels\.jsonl\.xz is damaged"):
        load_bundled("debtags")
