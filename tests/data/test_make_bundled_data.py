"""The program that makes the bundled data: each rule on a small package index."""

from __future__ import annotations

import importlib.util
import json
import lzma
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "make_bundled_data.py"

PACKAGES = """\
Package: editor
Source: editor-src (2:1.0)
Version: 2:1.0-1
Architecture: amd64
Provides: text-editor, editor-abi-3 (= 3)
Pre-Depends: dpkg (>= 1.17)
Depends: libc6 (>= 2.34), perl:any, editor-data (= 2:1.0-1), default-mta | mailer, gui-abi-9 [amd64]
Recommends: nowhere | fonts, text-editor, two-providers, libc6
Description: small text editor
Description-md5: aaa
Tag: interface::text-mode, role::program,
 special::unreviewed, use::editing,
 game::TODO, privacy::unknown

Package: editor-data
Source: editor-src
Depends: editor
Description: small text editor - data files
Description-md5: bbb

Package: editor-old
Source: editor-src
Depends: editor
Description: Transitional package for editor
Description-md5: ccc
Tag: role::dummy

Package: libc6
Source: glibc
Description: C library
 The GNU C library, with a long description in the index.
  * a list item
 .
 Second paragraph.
Tag: role::shared-lib

Package: dpkg
Depends: libc6
Description: package manager

Package: perl
Depends: libc6
Provides: two-providers
Description: programming language

Package: fonts
Provides: two-providers
Description: some fonts

Package: gui
Source: gui-12
Provides: gui-abi-9
Depends: libc6
Description: the gui of version 12

Package: gui-old
Source: gui-11
Depends: libc6
Description: The GUI of version 11

Package: mailer
Description: mail transport agent
"""

TRANSLATIONS = """\
Package: editor
Description-md5: aaa
Description-en: small text editor
 Edits text
 in a terminal.
 .
 Fast.

Package: editor-data
Description-md5: other-version
Description-en: of another version
 Not to be taken.
"""

VOCABULARY = """\
Facet: role
Description: Role
 Role performed by the package

Tag: role::program
Description: Program
 Executable computer
 program.

Tag: role::shared-lib
Description: Shared Library

Tag: role::dummy
Description: Dummy Package

Tag: interface::text-mode
Description: Text-based Interactive

Tag: special::unreviewed
Description: Needs review

Tag: game::TODO
Description: Need an extra tag

Tag: use::editing
Description: Editing
"""


@pytest.fixture(scope="module")
def make() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_bundled_data", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def packages(make: ModuleType) -> Any:
    found = make.read_packages(PACKAGES.splitlines())
    assert make.add_translations(found, TRANSLATIONS.splitlines()) == 1
    return found


def test_paragraphs_keep_continuation_lines(make: ModuleType) -> None:
    first, second = make.read_paragraphs(["A: 1\n", "B: x,\n", " y\n", "\n", "\n", "A: 2"])
    assert first == {"A": "1", "B": "x,\ny"}
    assert second == {"A": "2"}


def test_a_later_paragraph_of_the_same_package_counts(make: ModuleType) -> None:
    lines = ["Package: b", "Version: 1", "", "Package: a", "", "Package: b", "Version: 2"]
    found = make.read_packages(lines)
    assert list(found) == ["a", "b"] and found["b"]["Version"] == "2"


def test_translation_is_taken_only_for_the_same_md5(make: ModuleType, packages: Any) -> None:
    assert make.full_text(packages["editor"]["Description"]) == "small text editor\nEdits text in a terminal.\nFast."
    assert make.full_text(packages["editor-data"]["Description"]) == "small text editor - data files"
    assert make.full_text(packages["libc6"]["Description"]) == (
        "C library\nThe GNU C library, with a long description in the index. * a list item\nSecond paragraph."
    )
    assert make.short_text(packages["libc6"]["Description"]) == "C library"


def test_text_is_cut_between_words(make: ModuleType) -> None:
    assert make.row_text("short\nlong words here", limit=10) == "short\nlong"
    assert make.row_text("short\nlong words here", limit=13) == "short\nlong"
    assert make.row_text("short\nlong words here", limit=16) == "short\nlong words"
    assert make.row_text("abcdefgh", limit=3) == "abc"
    assert make.row_text("short\nlong") == "short\nlong"


def test_relations_of_one_package(make: ModuleType, packages: Any) -> None:
    provided = make.providers(packages)
    assert provided["two-providers"] == ["fonts", "perl"]
    assert make.related(packages["editor"], packages, provided) == [
        "dpkg",  # Pre-Depends, version stripped
        "editor-data",
        "fonts",  # the second alternative: no package is called nowhere
        "gui",  # the only provider of gui-abi-9
        "libc6",  # once, although it stands twice
        "mailer",  # no package is called default-mta
        "perl",  # perl:any
    ]  # not: editor through text-editor (itself), two-providers (which one?)
    assert make.related(packages["mailer"], packages, provided) == []


def test_first_alternative_counts(make: ModuleType, packages: Any) -> None:
    package = {"Package": "x", "Depends": "fonts | perl, dpkg (<< 2) | libc6"}
    assert make.related(package, packages, {}) == ["dpkg", "fonts"]


def test_relation_field_without_names(make: ModuleType) -> None:
    assert make.parse_relations("") == []
    assert make.parse_relations("a (>= 1:2~b) [amd64] <!nocheck> ,\n b:any|c, ") == [["a"], ["b", "c"]]


def test_vocabulary_and_tags(make: ModuleType, packages: Any) -> None:
    vocabulary = make.read_vocabulary(VOCABULARY.splitlines())
    assert vocabulary["role::program"] == "Role: Program. Executable computer program."
    assert vocabulary["role::shared-lib"] == "Role: Shared Library."
    assert vocabulary["use::editing"] == "Editing."
    assert make.tags_of(packages["editor"], vocabulary) == ["interface::text-mode", "role::program", "use::editing"]
    assert make.tags_of(packages["fonts"], vocabulary) == []


def test_transitional_packages(make: ModuleType, packages: Any) -> None:
    assert [name for name, package in packages.items() if make.is_transitional(package)] == ["editor-old"]
    assert make.is_transitional({"Package": "x", "Description": "library [dummy package]"})
    assert not make.is_transitional({"Package": "x", "Description": "X.Org X server -- dummy display driver"})


def test_sources_with_the_same_text_are_one_group(make: ModuleType, packages: Any) -> None:
    groups = make.split_groups(packages)
    assert groups["gui-12"] == groups["gui-11"] == "gui-11"
    assert groups["editor-src"] == "editor-src"
    assert "editor-old" not in groups
    assert make.source_of(packages["editor"]) == make.source_of(packages["editor-data"]) == "editor-src"


def test_split_is_a_hash_of_the_group(make: ModuleType) -> None:
    share = sum(make.in_test(f"source-{i}") for i in range(4000)) / 4000
    assert 0.13 < share < 0.17
    assert make.in_test("vim") and not make.in_test("bash")


def test_repeated_rows_are_left_out(make: ModuleType) -> None:
    rows = [
        {"id": "a", "text": "t", "labels": ["x"]},
        {"id": "b", "text": "t", "labels": ["x"]},
        {"id": "c", "text": "t", "labels": ["y"]},
    ]
    assert [row["id"] for row in make.drop_repeats(rows)] == ["a", "c"]


def test_whole_run_is_the_same_every_time(
    make: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "Packages.xz").write_bytes(lzma.compress(PACKAGES.encode()))
    (tmp_path / "Translation-en").write_text(TRANSLATIONS, encoding="utf-8")
    (tmp_path / "vocabulary").write_text(VOCABULARY, encoding="utf-8")
    monkeypatch.setattr(make, "in_test", lambda group: group in ("editor-src", "dpkg"))
    outputs = []
    for out in (tmp_path / "one", tmp_path / "two"):
        first = ["--packages", tmp_path / "Packages.xz", "--translations", tmp_path / "Translation-en"]
        rest = ["--vocabulary", tmp_path / "vocabulary", "--out", out, "--index", "a test"]
        assert make.main([str(a) for a in (*first, *rest)]) == 0
        outputs.append({path.name: path.read_bytes() for path in out.iterdir()})
    capsys.readouterr()
    assert outputs[0] == outputs[1] and len(outputs[0]) == 7

    def records(file: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in lzma.decompress(outputs[0][file]).splitlines()]

    train, test = (records(f"debian-relations.{split}.jsonl.xz") for split in ("train", "test"))
    assert [row["id"] for row in train] == ["gui-old", "gui", "perl"]  # ordered by source package
    assert [row["id"] for row in test] == ["dpkg", "editor", "editor-data"]
    labels = records("debian-relations.labels.jsonl.xz")
    assert labels[0] == {"id": "dpkg", "text": "package manager"}
    assert {r["id"] for r in labels} == {label for row in (*train, *test) for label in row["labels"]}
    assert [row["id"] for row in records("debtags.train.jsonl.xz")] == ["libc6"]
    facts = json.loads(outputs[0]["facts.json"])
    assert facts["index"] == "a test"
    inputs = ["packages: Packages", "translations: Translation-en", "vocabulary: vocabulary"]
    assert list(facts["inputs_sha256"]) == inputs
    assert facts["data"]["debian-relations"]["rows_train"] == 3
