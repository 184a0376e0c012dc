"""Ctrl-C and SIGTERM at any moment, imports included: an exit code, a sentence at most, no traceback."""

import os
import random
import signal
import subprocess
import sys
import time

import pytest

from longtail.cli import main
from longtail.cli.signals import Stop, Terminated, stopped_by_signals

ENDS = {signal.SIGINT: (130, "interrupted"), signal.SIGTERM: (143, "terminated")}
# tells when the program has begun, which the interpreter's own start is not part of
CHILD = """
import os, _signal
import longtail.cli

def handle(*args, real=_signal.signal):
    before = real(*args)
    _signal.signal = real
    os.write(1, b"@")
    return before

_signal.signal = handle
longtail.cli.main()
"""


@pytest.fixture(autouse=True)
def default_signals():
    """Signals as in a terminal: a shell starts what runs in its background with SIGINT ignored."""
    before = [signal.signal(number, signal.SIG_DFL) for number in ENDS]
    signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    for number, handler in zip(ENDS, before, strict=True):
        signal.signal(number, handler)


@pytest.mark.skipif(os.name != "posix", reason="sends signals")
@pytest.mark.parametrize("number", list(ENDS))
def test_a_signal_while_the_program_starts_ends_it_quietly(number, tmp_path):
    rng = random.Random(int(number))
    for turn in range(6):
        process = subprocess.Popen(
            [sys.executable, "-c", CHILD, "predict", str(tmp_path), str(tmp_path / "none.jsonl")],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )
        assert process.stdout.read(1) == b"@"
        time.sleep(rng.uniform(0, 0.2) * (turn > 1))
        process.send_signal(number)
        err = process.communicate()[1].decode()
        code, word = ENDS[number]
        quiet = process.returncode in (code, -number) and err.lstrip("\n") in (
            "",
            f"{word}; what was there before is unchanged.\n",
        )
        done = process.returncode == 4 and "is not a model folder" in err
        assert quiet or done, (process.returncode, err)


@pytest.mark.parametrize("number", list(ENDS))
def test_an_exception_that_a_finalizer_drops_is_raised_again(number):
    class Dropped:
        def __del__(self):
            signal.raise_signal(number)
            sum(range(1000))

    with pytest.raises((KeyboardInterrupt, Terminated)), stopped_by_signals(to_the_end=False) as stop:
        Dropped()
        for _ in range(200):
            time.sleep(0.01)
    assert stop.number == number


def test_a_second_signal_does_not_disturb_the_cleaning_up():
    stop = Stop()
    with pytest.raises(KeyboardInterrupt):
        stop.handle(signal.SIGINT, None)
    stop.handle(signal.SIGINT, None)
    stop.handle(signal.SIGTERM, None)
    assert stop.number == signal.SIGINT


def test_a_signal_after_the_work_changes_nothing(monkeypatch):
    monkeypatch.setattr("longtail.cli.signals.signal.getsignal", lambda number: signal.SIG_DFL)
    with stopped_by_signals(to_the_end=False) as stop:
        stop.done = True
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGINT)
    assert stop.number is None


def test_ignored_signals_stay_ignored_and_handlers_are_put_back(run):
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with stopped_by_signals(to_the_end=False) as stop:
            signal.raise_signal(signal.SIGINT)
            assert stop.number is None
        assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
    hook = sys.unraisablehook
    run("convert", "--list")
    assert signal.getsignal(signal.SIGINT) == before and sys.unraisablehook is hook


def test_an_import_that_breaks_because_of_a_signal_is_no_missing_package(monkeypatch, capfd):
    def interrupted(*args, **kwargs):
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        raise ImportError("half of a package")

    monkeypatch.setattr("longtail.cli.app.app.main", interrupted)
    with pytest.raises(SystemExit) as end:
        main(["convert", "--list"])
    assert end.value.code == 130 and capfd.readouterr().err == "interrupted; what was there before is unchanged.\n"
