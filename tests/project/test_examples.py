"""Every example in a docstring runs with nothing but longtail installed, or is marked with the extra it needs."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_examples_that_need_an_extra_are_marked():
    command = [sys.executable, "-m", "pytest", "src/longtail", "-q", "--tb=short", "-p", "no:cacheprovider"]
    environment = os.environ | {"LONGTAIL_TEST_WITHOUT": "torch onnx io audit ann"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:] + "\nmark it with `# doctest: +NEEDS_TORCH` (or _IO, _AUDIT, _ANN)"
