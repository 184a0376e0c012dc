"""Model folders: what is written comes back, damage is found, and a crash leaves the old model or the new one."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from longtail.errors import ModelError
from longtail.storage import (
    ArraySpec,
    FolderSchema,
    ParamSpec,
    Part,
    PartSchema,
    Real,
    check_target,
    load_folder,
    pack_csr,
    pack_strings,
    read_manifest,
    save_folder,
    unpack_csr,
    unpack_strings,
    verify_folder,
)
from longtail.storage import folder as folder_module

THING = PartSchema(
    "thing.v1",
    params=(ParamSpec("alpha", Real()),),
    arrays=(ArraySpec("a", "float32", ("n_rows", 3), finite="finite"), ArraySpec("none", "int32", (0,))),
)
FOLDERS = {
    kind: FolderSchema(kind, {name: {THING.kind: THING} for name in "xy"}, frozenset({"y"}), has_labels=labels)
    for kind, labels in (("thing.v1", False), ("named.v1", True))
}


def part(value=1.0):
    return Part("thing.v1", {"alpha": value}, {"a": np.full((2, 3), value, np.float32), "none": np.empty(0, np.int32)})


def test_round_trip(tmp_path):
    labels = [{"name": "Äpfel"}, {"name": "b\u2028c"}]
    save_folder(tmp_path / "m", "named.v1", {"x": part()}, labels, {"seed": 3})
    found = load_folder(tmp_path / "m", FOLDERS)
    assert found.manifest["kind"] == "named.v1" and found.manifest["seed"] == 3
    assert found.labels == labels
    assert found.parts["x"].params == {"alpha": 1.0}
    assert np.array_equal(found.parts["x"].array("a"), part().arrays["a"])
    assert found.parts["x"].array("none").size == 0


def test_arrays_are_mapped_and_read_only(tmp_path):
    save_folder(tmp_path / "m", "thing.v1", {"x": part()})
    a = load_folder(tmp_path / "m", FOLDERS).parts["x"].array("a")
    with pytest.raises(ValueError, match="read-only"):
        a[0, 0] = 5


def test_same_content_gives_the_same_bytes(tmp_path):
    for name in ("one", "two"):
        save_folder(tmp_path / name, "thing.v1", {"x": part()}, [{"name": "l"}])
    files = [sorted(p.name for p in (tmp_path / n).iterdir()) for n in ("one", "two")]
    assert files[0] == files[1]
    assert all((tmp_path / "one" / f).read_bytes() == (tmp_path / "two" / f).read_bytes() for f in files[0])


@pytest.mark.parametrize("place", [0, 40, -1])
def test_a_flipped_byte_is_found(tmp_path, place):
    save_folder(tmp_path / "m", "thing.v1", {"x": part()})
    file = next((tmp_path / "m").glob("*.safetensors"))
    raw = bytearray(file.read_bytes())
    raw[place] ^= 1
    file.write_bytes(raw)
    with pytest.raises(ModelError, match=r"is damaged: its digest does not match the manifest\.$"):
        load_folder(tmp_path / "m", FOLDERS)
    assert [r["ok"] for r in verify_folder(tmp_path / "m", FOLDERS)] == [True, False]


def test_a_missing_file_and_a_short_file_are_found(tmp_path):
    save_folder(tmp_path / "m", "thing.v1", {"x": part()})
    file = next((tmp_path / "m").glob("*.safetensors"))
    raw = file.read_bytes()
    file.write_bytes(raw[:-1])
    with pytest.raises(ModelError, match=f"{len(raw) - 1} bytes instead of {len(raw)}"):
        load_folder(tmp_path / "m", FOLDERS)
    file.unlink()
    with pytest.raises(ModelError, match="is missing"):
        load_folder(tmp_path / "m", FOLDERS)


def test_a_newer_format_is_refused(tmp_path):
    save_folder(tmp_path / "m", "thing.v1", {"x": part()})
    manifest = json.loads((tmp_path / "m" / "manifest.json").read_text())
    manifest["version"] = 99
    (tmp_path / "m" / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(ModelError, match=r"has format version 99; this longtail reads up to 2\. Upgrade longtail\."):
        load_folder(tmp_path / "m", FOLDERS)


@pytest.mark.parametrize("content", ["", "{", "[]", '{"format": "x"}', '{"format": "longtail-model", "version": 1}'])
def test_a_manifest_that_is_none_is_refused(tmp_path, content):
    (tmp_path / "manifest.json").write_text(content)
    with pytest.raises(ModelError):
        read_manifest(tmp_path)


def test_a_manifest_cannot_name_files_elsewhere(tmp_path):
    save_folder(tmp_path / "m", "thing.v1", {"x": part()})
    file = tmp_path / "m" / "manifest.json"
    file.write_text(file.read_text().replace('"x.', '"../x.'))
    with pytest.raises(ModelError, match="must not have a field"):
        load_folder(tmp_path / "m", FOLDERS)


def test_no_folder_and_no_manifest(tmp_path):
    with pytest.raises(ModelError, match=r"nowhere does not exist\.$"):
        load_folder(tmp_path / "nowhere", FOLDERS)
    with pytest.raises(ModelError, match=r"is not a model folder: it has no manifest\.json\.$"):
        load_folder(tmp_path, FOLDERS)


def test_a_new_model_replaces_the_old_one_and_its_files(tmp_path):
    save_folder(tmp_path / "m", "thing.v1", {"x": part(1.0)})
    save_folder(tmp_path / "m", "thing.v1", {"x": part(2.0)})
    assert load_folder(tmp_path / "m", FOLDERS).parts["x"].params == {"alpha": 2.0}
    assert len(list((tmp_path / "m").iterdir())) == 2


@pytest.mark.parametrize("writes_before_crash", range(3))
def test_a_crash_leaves_the_old_model_and_the_next_save_cleans_up(tmp_path, monkeypatch, writes_before_crash):
    save_folder(tmp_path / "m", "thing.v1", {"x": part(1.0), "y": part(1.5)})
    real, calls = os.fsync, []

    def fsync(handle):
        calls.append(handle)
        if len(calls) > 2 * writes_before_crash:
            raise RuntimeError("crash")
        real(handle)

    monkeypatch.setattr(folder_module.os, "fsync", fsync)
    with pytest.raises(RuntimeError, match="crash"):
        save_folder(tmp_path / "m", "thing.v1", {"x": part(2.0), "y": part(2.5)})
    monkeypatch.setattr(folder_module.os, "fsync", real)
    assert load_folder(tmp_path / "m", FOLDERS).parts["x"].params == {"alpha": 1.0}
    save_folder(tmp_path / "m", "thing.v1", {"x": part(3.0)})
    assert sorted(p.suffix for p in (tmp_path / "m").iterdir()) == [".json", ".safetensors"]


def test_foreign_folders_are_not_touched(tmp_path):
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(ModelError, match=r"is not a model folder and holds other files \(thesis\.txt\)"):
        save_folder(tmp_path, "thing.v1", {"x": part()})
    with pytest.raises(ModelError, match="is a file"):
        check_target(tmp_path / "thesis.txt")
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_users_file_inside_a_model_folder_survives(tmp_path):
    save_folder(tmp_path / "m", "thing.v1", {"x": part(1.0)})
    (tmp_path / "m" / "notes.md").write_text("mine")
    save_folder(tmp_path / "m", "thing.v1", {"x": part(2.0)})
    assert (tmp_path / "m" / "notes.md").read_text() == "mine"


def test_two_writers_do_not_mix(tmp_path):
    fcntl = pytest.importorskip("fcntl")
    save_folder(tmp_path / "m", "thing.v1", {"x": part(1.0)})
    handle = os.open(tmp_path / "m", os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    with pytest.raises(ModelError, match="is being written by another process"):
        save_folder(tmp_path / "m", "thing.v1", {"x": part(2.0)})
    os.close(handle)
    save_folder(tmp_path / "m", "thing.v1", {"x": part(2.0)})


def test_a_damaged_header_is_refused_even_without_digests(tmp_path):
    save_folder(tmp_path / "m", "thing.v1", {"x": part()})
    file = next((tmp_path / "m").glob("*.safetensors"))
    raw = bytearray(file.read_bytes())
    for old, new in ((b"[2,3]", b"[9,9]"), (b'"F32"', b'"F99"')):
        file.write_bytes(bytes(raw).replace(old, new))
        with pytest.raises(ModelError, match="damaged entry for the array 'a'"):
            load_folder(tmp_path / "m", FOLDERS, verify=False)
    raw[0:8] = b"\xff" * 8
    file.write_bytes(raw)
    with pytest.raises(ModelError, match="not a readable safetensors file"):
        load_folder(tmp_path / "m", FOLDERS, verify=False)


def test_sparse_matrices_and_strings_round_trip_and_inconsistent_ones_are_refused():
    M = sp.csr_array(np.array([[0, 2, 0], [1, 0, 3]], np.float32))
    saved = Part("t", {}, {**pack_csr("M", M), **pack_strings("s", ["a", "", "žluť"])})
    assert np.array_equal(unpack_csr("M", saved).toarray(), M.toarray())
    assert unpack_strings("s", saved) == ["a", "", "žluť"]
    saved.arrays["M.indices"] = np.array([0, 1, 7], np.int32)
    with pytest.raises(ModelError, match="is inconsistent"):
        unpack_csr("M", saved)


def test_a_name_that_is_no_utf8_survives(tmp_path):
    odd = "caf\udce9.jsonl"  # as the system's names of files come to Python
    save_folder(tmp_path / "m", "thing.v1", {"x": part()}, facts={"data": {"name": odd}})
    assert load_folder(tmp_path / "m", FOLDERS).manifest["data"]["name"] == odd


@pytest.mark.parametrize("name", ["manifest.json", "x"])
def test_a_link_in_the_folder_does_not_lead_a_save_elsewhere(tmp_path, name):
    outside = tmp_path / "thesis.txt"
    outside.write_text("mine")
    save_folder(tmp_path / "other", "thing.v1", {"x": part()})
    (tmp_path / "m").mkdir()
    file = next((tmp_path / "other").glob(f"{name}*"))
    (tmp_path / "m" / f"{file.name}.tmp").symlink_to(outside)
    (tmp_path / "m" / file.name).symlink_to(outside)
    save_folder(tmp_path / "m", "thing.v1", {"x": part()})
    assert outside.read_text() == "mine"
    assert load_folder(tmp_path / "m", FOLDERS).parts["x"].params == {"alpha": 1.0}
    assert not any(p.is_symlink() for p in (tmp_path / "m").iterdir())


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="the system does not tell what is in memory")
def test_pages_that_were_only_checked_are_given_back(tmp_path):
    large = Part("thing.v1", {"alpha": 1.0}, {**part().arrays, "a": np.zeros((1 << 20, 3), np.float32)})
    save_folder(tmp_path / "m", "thing.v1", {"x": large})
    loaded = load_folder(tmp_path / "m", FOLDERS)
    lines = Path("/proc/self/smaps").read_text().split("\n")
    mapped = [at for at, line in enumerate(lines) if str(tmp_path) in line]
    resident = [int(line.split()[1]) for at in mapped for line in lines[at : at + 12] if line.startswith("Rss:")]
    assert mapped and sum(resident) < 1024  # of 12288 kB
    assert not loaded.parts["x"].array("a").any()
