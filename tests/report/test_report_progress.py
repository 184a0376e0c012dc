"""Progress: silent in a pipe, a bar on a terminal, right whatever the threads."""

from __future__ import annotations

import io
import subprocess
import sys
import threading

import pytest

from longtail.report.terminal.progress import Progress, as_callback, progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_pipe_stays_silent(capsys):
    with progress(100, "Working") as advance:
        advance(60)
        advance(40)
    assert advance.done == 100
    assert capsys.readouterr() == ("", "")


def test_a_terminal_sees_a_bar(monkeypatch):
    stream = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", stream)
    with progress(10, "Work [1]", unit="rows") as advance:
        advance(10)
        with progress(5, "Inner") as inner:  # only one bar holds the terminal
            inner(5)
    assert "Work [1]" in stream.getvalue() and "100%" in stream.getvalue()
    assert "Inner" not in stream.getvalue() and inner.done == 5


def test_quiet_and_dumb_terminals_see_nothing(monkeypatch):
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    with progress(10, "Work", quiet=True) as advance:
        advance(10)
    monkeypatch.setenv("TERM", "dumb")
    with progress(10, "Work") as advance:
        advance(10)
    assert stream.getvalue() == ""


def test_a_failure_inside_frees_the_terminal(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    for _ in range(2):
        stream = Terminal()
        monkeypatch.setattr(sys, "stderr", stream)
        with pytest.raises(RuntimeError), progress(10, "Work"):
            raise RuntimeError
        assert "Work" in stream.getvalue()


def test_threads_are_all_counted():
    count = Progress(total=8000)
    threads = [threading.Thread(target=lambda: [count(1) for _ in range(1000)]) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert count.done == 8000


def test_the_callback_takes_done_and_total_in_any_order():
    shown: list[tuple[int, int | None]] = []
    callback = as_callback(Progress(None, lambda done, total: shown.append((done, total))))
    for done, total in ((2, 10), (5, 10), (3, 10), (1, 4)):
        callback(done, total)
    assert shown == [(2, 10), (5, 10), (5, 10), (1, 4)]


def test_pages_and_quiet_progress_do_not_import_rich():
    code = (
        "import sys; from longtail.report import evaluation_page, progress\n"
        "with progress(1, 'x') as a: a(1)\n"
        "evaluation_page({}); print('rich' in sys.modules)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (out.stdout.strip(), out.stderr) == ("False", "")
