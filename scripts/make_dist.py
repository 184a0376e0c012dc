"""Build what is given to others, from the last commit, and check it: `make dist`.

    python scripts/make_dist.py [--pythons python3.12 python3.13] [--output dist]

Three kinds of files lie in the output folder then:

- the source archive, from which the others are made: what git knows, the tests included;
- the wheel for every Python and machine, which has no compiled kernels;
- for each Python named (the one at hand if none is), a wheel for that Python on x86-64 Linux, which brings kernels
  along that are compiled for the newest numba (`compile_kernels.py`). pip takes it where it fits, else the other.

Tools and dependencies come from a package index into temporary folders.
"""

from __future__ import annotations

import argparse
import io
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TOOLS = ("build>=1.2", "twine>=6", "check-wheel-contents>=0.6", "wheel>=0.45")
# a machine whose libc is older cannot install numba
PLATFORM = "manylinux_2_28_x86_64"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pythons", nargs="*", default=[sys.executable], help="what wheels with kernels are made for")
    parser.add_argument("--output", type=Path, default=ROOT / "dist")
    args = parser.parse_args()
    if git("status", "--porcelain"):
        print("Changes that are not committed are left out.", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        env = {**os.environ, "SOURCE_DATE_EPOCH": git("log", "-1", "--format=%ct").decode().strip()}
        tools = make_environment(work / "tools", sys.executable, TOOLS)
        source = work / "source"
        with tarfile.open(fileobj=io.BytesIO(git("archive", "HEAD"))) as archive:
            archive.extractall(source, filter="data")
        made = work / "made"
        run([tools, "-m", "build", "--outdir", made, source], env)  # the archive, and the wheel from the archive
        plain = next(made.glob("*.whl"))
        for number, interpreter in enumerate(args.pythons):
            add_kernels(plain, interpreter, tools, source, work / str(number), env)
        run([tools, "-m", "twine", "check", "--strict", *sorted(made.iterdir())], env)
        check: list[str | Path] = [tools.parent / "check-wheel-contents", "--toplevel", "longtail"]
        run([*check, plain], env)
        if with_kernels := sorted(set(made.glob("*.whl")) - {plain}):
            # W002, equal files: some kernels are compiled to the same code for both kinds of processors
            run([*check, "--ignore", "W002", *with_kernels], env)
        shutil.rmtree(args.output, ignore_errors=True)
        args.output.mkdir(parents=True)
        for file in sorted(made.iterdir()):
            shutil.copy(file, args.output)
            print(f"{args.output / file.name}  {file.stat().st_size / 1e6:.1f} MB")


def add_kernels(plain: Path, interpreter: str, tools: Path, source: Path, work: Path, env: Mapping[str, str]) -> None:
    """Write a wheel with kernels compiled by one Python beside the wheel without; none where they cannot be made."""
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        print("No wheel with compiled kernels: they are made on x86-64 Linux only.")
        return
    python = make_environment(work / "env", interpreter, [str(plain)])
    run([tools, "-m", "wheel", "unpack", "--dest", work, plain], env)
    unpacked = next(work.glob("longtail-*"))
    run([python, source / "scripts" / "compile_kernels.py", "--output", unpacked / "longtail/kernels/compiled"], env)
    (work / "packed").mkdir()
    run([tools, "-m", "wheel", "pack", "--dest-dir", work / "packed", unpacked], env)
    tag = subprocess.check_output(
        [python, "-c", "import sys; print('cp%d%d' % sys.version_info[:2])"], text=True
    ).strip()
    words = ["--remove", "--python-tag", tag, "--abi-tag", "none", "--platform-tag", PLATFORM]
    run([tools, "-m", "wheel", "tags", *words, work / "packed" / plain.name], env)
    for file in (work / "packed").iterdir():
        shutil.copy(file, plain.parent)


def make_environment(folder: Path, interpreter: str, packages: Sequence[str]) -> Path:
    """Make an environment with packages; return its Python."""
    run([shutil.which(Path(interpreter).absolute()) or interpreter, "-m", "venv", folder], os.environ)
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages], os.environ)
    return python


def git(*words: str) -> bytes:
    """Return what a git command prints."""
    return subprocess.check_output(["git", *words], cwd=ROOT)


def run(command: Sequence[str | Path], env: Mapping[str, str]) -> None:
    """Run a command in an empty folder, so that nothing is imported from here; stop where it fails."""
    print("$", *command, flush=True)
    with tempfile.TemporaryDirectory() as nowhere:
        done = subprocess.run([str(word) for word in command], env=dict(env), cwd=nowhere)
    if done.returncode:
        raise SystemExit(done.returncode)


if __name__ == "__main__":
    main()
