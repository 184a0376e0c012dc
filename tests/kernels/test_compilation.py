"""The decorator of kernels: its cache on any machine, read-only arrays, and the checked mode."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from llvmlite.binding import get_host_cpu_features

import longtail as lt
from longtail.kernels import CHECKED, njit
from longtail.kernels.kernel_cache import PROCESSORS, _folders, _private_folder, _sources_of

HELPER = """
from longtail.kernels import njit

@njit(nogil=True, cache=True)
def at(array, i):
    return array[i] + {add}
"""
PROGRAM = """
import os
import sys
from pathlib import Path
from longtail.kernels import kernel_cache, njit, on_compilation
kernel_cache.BROUGHT = Path(os.environ.get("BROUGHT", "no such folder"))
from helper import at
import numpy as np

@njit(nogil=True, cache=True)
def second(array, i):
    return at(array, i)

on_compilation(lambda kept: print("compiling", "kept" if kept else "not kept"))
print(second(np.arange(3.0), int(sys.argv[1])))
"""


def usable_processors():
    """Return the processors that packages bring kernels for and that this one can stand in for, best first."""
    features = get_host_cpu_features()
    return [name for name, needs in PROCESSORS.items() if all(features.get(need) for need in needs)]


def program(folder, *args, cwd=None, **env):
    """Run a program with two kernels, one in a file of its own, and return its output and exit code."""
    here = str(Path(lt.__file__).parents[1])
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": f"{here}:{folder}", "PYTHONDONTWRITEBYTECODE": "1", **env}
    command = [sys.executable, str(folder / "program.py"), *map(str, args)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, cwd=cwd or folder)
    return done.stdout.split("\n")[:-1], done.returncode, done.stderr


@pytest.fixture
def folder(tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    (source / "helper.py").write_text(HELPER.format(add=10))
    (source / "program.py").write_text(PROGRAM)
    return source


def test_kernels_are_compiled_once_and_again_when_a_file_they_use_changes(folder, tmp_path):
    kept = {"NUMBA_CACHE_DIR": str(tmp_path / "kernels")}
    assert program(folder, 1, **kept)[0] == ["compiling kept", "11.0"]
    assert program(folder, 1, **kept)[0] == ["11.0"]
    (folder / "helper.py").write_text(HELPER.format(add=20))  # numba itself looks at the caller's own file only
    assert program(folder, 1, **kept)[0] == ["compiling kept", "21.0"]
    names = sorted(file.name.split("-")[0] for file in (tmp_path / "kernels").rglob("*.nbc"))
    assert names == ["helper.at", "program.second"]  # the code of the old source is gone


def test_checked_mode_has_its_own_cache_and_refuses_an_index_out_of_bounds(folder, tmp_path):
    kept = {"NUMBA_CACHE_DIR": str(tmp_path / "kernels")}
    assert program(folder, 2, **kept)[0] == ["compiling kept", "12.0"]
    out, code, err = program(folder, 3, LONGTAIL_CHECKED="1", **kept)
    assert out == ["compiling kept"] and code == 1 and "IndexError" in err
    assert program(folder, 2, LONGTAIL_CHECKED="1", **kept)[0] == ["12.0"]
    assert program(folder, 2, LONGTAIL_CHECKED="0", **kept)[0] == ["12.0"]  # the fast code is as it was


def test_damaged_files_are_compiled_anew(folder, tmp_path):
    kept = {"NUMBA_CACHE_DIR": str(tmp_path / "kernels")}
    program(folder, 1, **kept)
    for file in (tmp_path / "kernels").rglob("*.nb?"):
        file.write_bytes(file.read_bytes()[:40] if "at" in file.name else b"no pickle")
    assert program(folder, 1, **kept)[0] == ["compiling kept", "11.0"]
    assert program(folder, 1, **kept)[0] == ["11.0"]


@pytest.mark.skipif(not usable_processors(), reason="this processor runs none of those that packages bring kernels for")
def test_kernels_that_came_with_the_package_are_taken_while_there_are_no_own(folder, tmp_path):
    brought, fresh = tmp_path / "brought", {"NUMBA_CACHE_DIR": str(tmp_path / "kernels")}
    brought.mkdir()
    making = {"NUMBA_CPU_NAME": usable_processors()[-1], "NUMBA_CPU_FEATURES": "", "NUMBA_CACHE_DIR": str(tmp_path)}
    assert program(folder, 1, **making)[0] == ["compiling kept", "11.0"]
    for file in list(tmp_path.rglob("*.nb?")):
        file.rename(brought / file.name)
    assert program(folder, 1, BROUGHT=str(brought), **fresh)[0] == ["11.0"]
    assert not list((tmp_path / "kernels").rglob("*.nbc"))
    assert program(folder, 1, BROUGHT=str(brought), LONGTAIL_CHECKED="1", **fresh)[0] == ["compiling kept", "11.0"]
    (folder / "helper.py").write_text(HELPER.format(add=20))  # other sources than the package was made of
    assert program(folder, 1, BROUGHT=str(brought), **fresh)[0] == ["compiling kept", "21.0"]


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="needs POSIX permissions")
def test_without_home_and_package_folder_kernels_go_to_a_private_temporary_folder(folder, tmp_path):
    (folder / "__pycache__").write_text("a file: no folder of that name can be made")
    (tmp_path / "tmp").mkdir()
    env = {"HOME": str(tmp_path / "source" / "helper.py"), "TMPDIR": str(tmp_path / "tmp")}
    assert program(folder, 1, **env)[0] == ["compiling kept", "11.0"]
    assert program(folder, 1, **env)[0] == ["11.0"]
    (private,) = (tmp_path / "tmp").iterdir()
    assert private.name == f"longtail-kernels-{os.getuid()}" and stat.S_IMODE(private.stat().st_mode) == 0o700
    private.chmod(0o777)  # anyone may have put code there
    assert program(folder, 1, **env)[0] == ["compiling not kept", "11.0"]


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="needs POSIX permissions")
def test_a_private_folder_made_by_someone_else_is_not_used(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    private = tmp_path / f"longtail-kernels-{os.getuid()}"
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    private.symlink_to(tmp_path / "elsewhere")
    assert _private_folder() is None
    private.unlink()
    assert _private_folder() == private
    monkeypatch.setattr(os, "getuid", lambda: private.stat().st_uid + 1)
    (tmp_path / f"longtail-kernels-{os.getuid()}").mkdir(mode=0o700)
    assert _private_folder() is None


def test_no_kernel_is_looked_for_below_the_working_folder_where_there_is_no_home(tmp_path, monkeypatch):
    monkeypatch.setattr("os.path.expanduser", lambda path: path)  # as where the user has neither HOME nor an entry
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert all(folder.is_absolute() for folder in _folders(Path("/some/source")))
    assert not any(tmp_path in folder.parents for folder in _folders(Path("/some/source")))


def test_the_sources_of_a_kernel_are_those_of_all_it_calls():
    from longtail.tree import search_block

    assert {"beam.py", "lanes.py"} <= {Path(name).name for name in _sources_of(search_block.py_func)}


# read-only arrays


@pytest.mark.skipif(CHECKED, reason="compiles read-only arrays as they are, on purpose")
def test_read_only_arrays_need_no_compilation_of_their_own():
    @njit(nogil=True, cache=False)
    def total(a, b):
        return a.sum() + b[0]

    locked = np.arange(3.0)
    locked.flags.writeable = False
    assert [total(a, b) for a in (locked, np.arange(3.0)) for b in (locked, np.arange(3.0))] == [3.0] * 4
    assert len(total.signatures) == 1


@pytest.mark.skipif(not CHECKED, reason="found in checked mode only")
def test_checked_mode_refuses_a_kernel_that_writes_to_a_locked_array():
    @njit(nogil=True, cache=False)
    def change(a):
        a[0] = 1.0

    locked = np.arange(3.0)
    locked.flags.writeable = False
    with pytest.raises(Exception, match="readonly"):
        change(locked)


@pytest.mark.skipif(CHECKED, reason="compiles read-only arrays as they are, on purpose")
@pytest.mark.parametrize("make", [lt.OneVsAllClassifier, lt.LabelTreeClassifier])
def test_predicting_for_locked_rows_with_a_mapped_model_compiles_nothing(make, tmp_path):
    from longtail.kernels.kernel_cache import _listeners, on_compilation

    rng = np.random.default_rng(0)
    X = sp.random(60, 40, 0.2, format="csr", dtype=np.float32, random_state=rng)
    model = make(random_state=0).fit(X, sp.csr_array(np.eye(6, dtype=np.float32)[rng.integers(0, 6, 60)]))
    expected = [model.predict_topk(X, k=3), model.predict_topk(X[:1], k=3)]
    model.save(tmp_path / "m")
    mapped = lt.load(tmp_path / "m")
    locked = X.copy()
    for array in (locked.data, locked.indices, locked.indptr):
        array.flags.writeable = False
    compiled = []
    on_compilation(compiled.append)
    try:
        got = [mapped.predict_topk(locked, k=3), mapped.predict_topk(locked[:1], k=3)]
    finally:
        _listeners.clear()
    assert not compiled
    for one, other in zip(got, expected, strict=True):
        np.testing.assert_array_equal(one.ids, other.ids)
        np.testing.assert_array_equal(one.scores, other.scores)


def test_settings_of_the_working_folder_are_not_taken(tmp_path):
    pytest.importorskip("yaml", reason="without it numba reads no such file")
    (tmp_path / ".numba_config.yaml").write_text("cache_dir: theirs\nboundscheck: 1\ndisable_jit: 1\n")
    told = "import longtail.kernels.compilation as c; f = c.njit(cache=False)(lambda x: x + 1); "
    told += "print(repr(c.config.CACHE_DIR), c.config.DISABLE_JIT, f(1), len(f.signatures), c.config.BOUNDSCHECK)"
    env = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    env["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    done = subprocess.run([sys.executable, "-c", told], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.stdout == "'' 0 2 1 None\n", done.stderr
