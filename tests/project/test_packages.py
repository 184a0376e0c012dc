"""What is given to others is complete: files, extras, types."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import pytest

import longtail as lt

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "longtail"
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
EXTRAS = SETTINGS["project"]["optional-dependencies"]


# --- files ------------------------------------------------------------------------------------------------------------


def test_every_file_of_the_package_is_in_the_wheel():
    """A template, a style or a page that setuptools is not told of would be missing where the wheel is installed."""
    named = SETTINGS["tool"]["setuptools"]["package-data"]["longtail"]
    files = [path.relative_to(SOURCE) for path in SOURCE.rglob("*") if path.is_file()]
    others = [path for path in files if path.suffix not in (".py", ".pyi", ".pyc", ".nbi", ".nbc")]
    assert others
    # `*` is part of one name there
    left_out = [
        str(path) for path in others if not any(path.match(n) and len(path.parts) == n.count("/") + 1 for n in named)
    ]
    assert left_out == []


def test_the_source_archive_holds_what_git_knows():
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("not a clone")
    lines = [line.split() for line in (ROOT / "MANIFEST.in").read_text("utf-8").splitlines() if line[:1] not in "#"]
    folders = {words[1] for words in lines if words[0] == "graft"}
    names = [pattern for words in lines if words[0] == "include" for pattern in words[1:]]
    always = ["pyproject.toml", "README.md"]
    listed = subprocess.check_output(["git", "ls-files"], cwd=ROOT, text=True).splitlines()
    left_out = [
        file
        for file in listed
        if file.split("/")[0] not in folders and not any(fnmatch(file, name) for name in [*names, *always])
    ]
    assert left_out == []


# --- extras -----------------------------------------------------------------------------------------------------------


def rows_of_extras(page: Path) -> dict[str, list[str]]:
    """Return the cells of the rows that begin with an extra, below a heading `| extra |`."""
    table = re.search(r"^\| extra \|.*\n\|[-| ]+\|\n((?:\|.*\n)+)", page.read_text("utf-8"), re.M)
    assert table is not None
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table[1].splitlines()]
    return {cells[0].strip("`"): cells[1:] for cells in rows}


def test_the_readme_leads_to_the_list_of_extras():
    assert "(docs/installing.md#extras)" in (ROOT / "README.md").read_text("utf-8")


def test_the_page_about_installing_lists_every_extra_and_its_packages():
    listed = {extra: cells[-1].split(", ") for extra, cells in rows_of_extras(ROOT / "docs" / "installing.md").items()}
    assert listed == {extra: [re.split(r"[\[<>=!~; ]", p)[0] for p in packages] for extra, packages in EXTRAS.items()}


def test_a_missing_extra_is_one_that_exists():
    """`pip install 'longtail[NAME]'` in a message names an extra of pyproject.toml."""
    text = "\n".join(path.read_text("utf-8") for path in [*SOURCE.rglob("*.py"), *(ROOT / "docs").rglob("*.md")])
    said = re.findall(r"longtail\[([a-z,]+)\]", text) + re.findall(r'MissingExtraError\([^)]*"([a-z]+)"\)', text)
    assert {extra for names in said for extra in names.split(",")} <= set(EXTRAS)
    assert said


# --- types ------------------------------------------------------------------------------------------------------------

# not what a user of longtail checks, and much to read
SKIPPED = (
    "torch numba scipy sklearn transformers sentence_transformers tokenizers onnxruntime faiss highspy ray pyarrow"
)


def test_a_program_of_a_user_passes_mypy_strict(tmp_path):
    """Everything it takes from longtail has a type: with --strict, Any from there would be an error or hide one."""
    pytest.importorskip("mypy")
    sections = "".join(
        f"[mypy-{name}.*]\nfollow_imports = skip\nignore_missing_imports = True\n" for name in SKIPPED.split()
    )
    (tmp_path / "mypy.ini").write_text(f"[mypy]\nstrict = True\n{sections}", "utf-8")
    shutil.copy(Path(__file__).with_name("user_program.py"), tmp_path / "program.py")
    mistakes = ("lt.Tagger(random_state=0).tag([], k='five')", "lt.LabelTreeClassifier(max_leaf='ten')")
    wrong = "\n".join(["import longtail as lt", "", *mistakes, ""])
    (tmp_path / "wrong.py").write_text(wrong, "utf-8")
    words = ["--config-file", "mypy.ini", "--cache-dir", str(ROOT / ".mypy_cache" / "user"), "program.py", "wrong.py"]
    done = subprocess.run([sys.executable, "-m", "mypy", *words], cwd=tmp_path, capture_output=True, text=True)
    errors = [line for line in done.stdout.splitlines() if ": error: " in line]
    assert [line.split(":")[:2] for line in errors] == [["wrong.py", "3"], ["wrong.py", "4"]], done.stdout + done.stderr


def test_the_program_of_a_user_runs(tmp_path):
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("user_program.py"))], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "'vehicle'" in done.stdout


def test_pyright_knows_the_types_of_what_is_public(tmp_path):
    """At least 95 % of all names have types that every checker understands alike."""
    pyright = os.environ.get("PYRIGHT") or shutil.which("pyright")
    if pyright is None:
        pytest.skip("needs pyright")
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])  # the Python it asks for packages
    words = [pyright, "--verifytypes", "longtail", "--ignoreexternal", "--outputjson"]
    done = subprocess.run(words, cwd=tmp_path, env={**os.environ, "PATH": path}, capture_output=True, text=True)
    assert json.loads(done.stdout)["typeCompleteness"]["completenessScore"] >= 0.95


def test_types_are_said_to_be_there():
    assert (Path(lt.__file__).parent / "py.typed").exists()
    assert "Typing :: Typed" in SETTINGS["project"]["classifiers"]
