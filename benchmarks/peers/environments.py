"""A virtual environment for each peer, made once and kept in the work folder."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

INSTALL_SECONDS = 900


@dataclass(frozen=True)
class Packages:
    """The packages that pip installs for a peer; `alone` without their dependencies."""

    alone: tuple[str, ...]
    with_dependencies: tuple[str, ...]


# libpecos asks for torch and transformers, gigabytes that only its transformer models use: left out.
PACKAGES: dict[str, Packages] = {
    "libpecos": Packages(("libpecos==1.2.8",), ("numpy>=1.19.5,<2", "scipy>=1.4.1,<1.14", "scikit-learn>=0.24.1")),
    "omikuji": Packages((), ("omikuji==0.5.2", "numpy", "scipy")),
    "napkinxc": Packages((), ("napkinxc==0.7.2",)),
}
NAMES = (  # whose versions are recorded
    *("libpecos", "omikuji", "napkinxc", "annif", "tensorflow-cpu", "setfit", "sentence-transformers"),
    *("torch", "transformers", "numpy", "scipy", "scikit-learn"),
)


class InstallError(Exception):
    """A peer cannot be installed here."""


def environment(library: str, work: Path) -> Path:
    """Return the interpreter of a library's environment, making the environment if it is not there yet."""
    if library == "longtail":
        return Path(sys.executable)
    packages = PACKAGES[library]
    wanted = json.dumps([sys.version, packages.alone, packages.with_dependencies])
    folder = work / "environments" / library
    python, ready = folder / "bin" / "python", folder / "ready.json"
    if ready.exists() and ready.read_text() == wanted:
        return python
    print(f"installing {library} …", flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    _run([sys.executable, "-m", "venv", str(folder)])
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    _run([*pip, *packages.with_dependencies])
    if packages.alone:
        _run([*pip, "--no-deps", *packages.alone])
    ready.write_text(wanted)
    return python


def peer_versions(python: Path) -> dict[str, str]:
    """Return the versions of the packages in a peer's environment."""
    program = (
        "import json, sys; from importlib.metadata import distributions as d; w = sys.argv[1:];"
        "print(json.dumps({x.name: x.version for x in d() if x.name in w}))"
    )
    done = subprocess.run([str(python), "-c", program, *NAMES], capture_output=True, text=True, check=True)
    return dict(sorted(json.loads(done.stdout).items()))


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_SECONDS)
    except subprocess.TimeoutExpired:
        raise InstallError(f"pip took longer than {INSTALL_SECONDS} s") from None
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or ["pip failed"]
        raise InstallError(lines[-1])
