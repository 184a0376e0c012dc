"""What all tests share: property tests draw the same examples every time, and a slow machine is no failure."""

import importlib.util

import pytest
from hypothesis import settings

from longtail.cli import main

settings.register_profile("longtail", deadline=None, derandomize=True)
settings.load_profile("longtail")

# the modules of `nn` are torch modules: without torch their examples cannot even be imported
collect_ignore_glob = [] if importlib.util.find_spec("torch") else ["src/longtail/nn/*.py"]


@pytest.fixture
def run(capfd):
    """Return a function that runs a command in this process, checks its exit code and returns what it printed."""

    def call(*args, code=0):
        capfd.readouterr()
        with pytest.raises(SystemExit) as end:
            main([str(a) for a in args])
        out, err = capfd.readouterr()
        assert end.value.code == code, (out, err)
        return out if code == 0 else err

    return call
