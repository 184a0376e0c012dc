"""Run one longtail command and report which of the package's modules it imports and in which it runs a function.

    python benchmarks/project/traced_command.py FACTS.json predict MODEL DATA

A process of its own for `house.py`, which sets PYTHONPATH to the code that is measured; so it imports nothing else.
A compiled function counts as run where Python calls it; one that only compiled functions call is not seen.
"""

from __future__ import annotations

import inspect
import json
import sys
import threading
from pathlib import Path
from types import FrameType
from typing import Any


def main() -> None:
    """Run the command and write the facts."""
    import longtail

    root = str(Path(longtail.__file__).parent)
    files: set[str] = set()

    def note(frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        is_function = code.co_flags & inspect.CO_OPTIMIZED and not code.co_name.startswith("<")
        if event == "call" and is_function and code.co_filename.startswith(root):
            files.add(code.co_filename)

    from longtail.cli import main as command

    facts_file, words = Path(sys.argv[1]), sys.argv[2:]
    sys.argv = ["longtail", *words]
    threading.setprofile(note)
    sys.setprofile(note)
    status: object = 0
    try:
        command()
    except SystemExit as end:
        status = end.code
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    files |= compiled_files(root)
    loaded = sorted(name for name in sys.modules if name == "longtail" or name.startswith("longtail."))
    ran = sorted(str(Path(file).relative_to(root)) for file in files)
    facts_file.write_text(json.dumps({"status": status or 0, "imported": loaded, "run": ran}))


def compiled_files(root: str) -> set[str]:
    """Return the files of compiled functions that Python has called."""
    files = set()
    for name, module in list(sys.modules.items()):
        if name.startswith("longtail"):
            for value in vars(module).values():
                function = getattr(value, "py_func", None)
                if function is not None and getattr(value, "overloads", None):
                    files.add(function.__code__.co_filename)
    return {file for file in files if file.startswith(root)}


if __name__ == "__main__":
    main()
