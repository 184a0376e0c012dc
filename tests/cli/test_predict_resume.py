"""`predict --resume`: a run that was killed goes on, to the same bytes as without a break."""

import gzip
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from longtail.cli import main
from longtail.data import write
from longtail.data.formats import partial_file
from longtail.data.synthetic.generate import make_topics

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")

FULL = Path("/dev/full")

# Runs a command that kills itself at the n-th call of a function of PartialFile, before or after it.
CHILD = """
import os, signal, sys
from longtail.cli import main
from longtail.data.formats import partial_file

name, count, when = sys.argv[1], int(sys.argv[2]), sys.argv[3]
partial_file.SECONDS = partial_file.SHARE = 0
partial_file.PACKED_TOGETHER = 3000
kept, calls = getattr(partial_file.PartialFile, name), [0]

def dying(self, *args, **more):
    calls[0] += 1
    if calls[0] == count and when == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    out = kept(self, *args, **more)
    if calls[0] == count:
        os.kill(os.getpid(), signal.SIGKILL)
    return out

setattr(partial_file.PartialFile, name, dying)
main(sys.argv[4:])
"""


@pytest.fixture(scope="module")
def topics():
    return make_topics(600, 8, random_state=1)[0]


@pytest.fixture(scope="module")
def files(topics, tmp_path_factory):
    """Return a folder with a model and rows in every format."""
    folder = tmp_path_factory.mktemp("resume")
    write(topics, folder / "rows.jsonl")
    for name in ("rows.csv", "rows.jsonl.gz", "rows.ft"):
        write(topics, folder / name)
    write(topics, folder / "annif.tsv", "annif")
    (folder / "rows.txt").write_text("\n".join(topics.texts) + "\n")
    with pytest.raises(SystemExit):
        main(["train", str(folder / "rows.jsonl"), "-o", str(folder / "m"), "--calibrate", "0"])
    return folder


@pytest.fixture
def often(monkeypatch):
    """Record every batch, and pack little together."""
    monkeypatch.setattr(partial_file, "SECONDS", 0)
    monkeypatch.setattr(partial_file, "SHARE", 0)
    monkeypatch.setattr(partial_file, "PACKED_TOGETHER", 3000)


def killed(name, count, when, *args):
    """Run a command that kills itself in a process of its own."""
    child = subprocess.run([sys.executable, "-c", CHILD, name, str(count), when, *map(str, args)], capture_output=True)
    assert child.returncode == -signal.SIGKILL, child.stderr.decode()


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


class Stopped(Exception):
    """Ends a run as no error of ours does."""


@pytest.fixture
def broken_off(monkeypatch):
    """Return a function that breaks a command off in this process after so many batches."""

    def run(batches, *args):
        kept, calls = partial_file.PartialFile.end_batch, [0]

        def stopping(self, *more):
            kept(self, *more)
            calls[0] += 1
            if calls[0] == batches:
                raise Stopped

        with monkeypatch.context() as patch, pytest.raises(Stopped):
            patch.setattr(partial_file.PartialFile, "end_batch", stopping)
            main([str(arg) for arg in args])

    return run


@pytest.mark.parametrize(
    ("name", "count", "when"),
    [
        ("end_batch", 1, "before"),  # nothing is kept
        ("_write_record", 4, "before"),  # written, and not recorded
        ("_write_out", 7, "after"),
        ("_finish", 1, "before"),  # all but the last step
    ],
)
def test_a_killed_run_goes_on_to_the_same_bytes(files, tmp_path, run, often, name, count, when):
    command = ["predict", files / "m", files / "rows.jsonl", "--batch", 50, "-k", 3]
    run(*command, "-o", tmp_path / "whole.csv")
    target = tmp_path / "tags.csv"
    killed(name, count, when, *command, "-o", target)
    assert not target.exists() and (tmp_path / "tags.csv.partial").exists()
    run(*command, "-o", target, "--resume")
    assert target.read_bytes() == (tmp_path / "whole.csv").read_bytes()
    assert names_in(tmp_path) == ["tags.csv", "whole.csv"]


def test_a_run_is_killed_again_and_again(files, tmp_path, run, often):
    command = ["predict", files / "m", files / "rows.jsonl", "--batch", 40]
    run(*command, "-o", tmp_path / "whole.jsonl")
    for _ in range(2):
        killed("end_batch", 3, "after", *command, "-o", tmp_path / "tags.jsonl", "--resume")
    done = json.loads((tmp_path / "tags.jsonl.partial.json").read_text())["done"]
    assert done["rows"] > 150  # every one of them went on
    run(*command, "-o", tmp_path / "tags.jsonl", "--resume")
    assert (tmp_path / "tags.jsonl").read_bytes() == (tmp_path / "whole.jsonl").read_bytes()


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("rows.csv", "tags.jsonl"),
        ("rows.jsonl.gz", "tags.tsv.gz"),
        ("rows.ft", "tags.jsonl.xz"),
        ("annif.tsv", "tags.csv"),
        ("rows.txt", "tags.jsonl.bz2"),
    ],
)
def test_every_format_of_text_goes_on(files, tmp_path, run, often, broken_off, source, name):
    command = ["predict", files / "m", files / source, "--batch", 60, "-k", 2]
    run(*command, "-o", tmp_path / f"whole-{name}")
    broken_off(6, *command, "-o", tmp_path / name)
    run(*command, "-o", tmp_path / name, "--resume")
    assert (tmp_path / name).read_bytes() == (tmp_path / f"whole-{name}").read_bytes()
    assert names_in(tmp_path) == sorted([name, f"whole-{name}"])


def test_one_line_per_row_goes_on(files, tmp_path, run, often, broken_off):
    command = ["predict", files / "m", files / "rows.jsonl", "--batch", 60, "-k", 2, "--to", "spreadsheet-rows"]
    run(*command, "-o", tmp_path / "whole.csv")
    broken_off(6, *command, "-o", tmp_path / "tags.csv")
    run(*command, "-o", tmp_path / "tags.csv", "--resume")
    assert (tmp_path / "tags.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()
    assert (tmp_path / "tags.csv").read_text("utf-8-sig").count("\n") == 601


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".bz2"])
def test_compressed_predictions_are_read_as_one_file(files, tmp_path, run, often, suffix):
    command = ["predict", files / "m", files / "rows.jsonl", "-k", 2]
    run(*command, "-o", tmp_path / "a.jsonl")
    run(*command, "-o", tmp_path / f"a.jsonl{suffix}")
    from longtail.data import open_bytes

    with open_bytes(tmp_path / f"a.jsonl{suffix}") as file:
        assert file.read() == (tmp_path / "a.jsonl").read_bytes()


def test_parquet_goes_on(files, tmp_path, run, often, broken_off, monkeypatch):
    parquet = pytest.importorskip("pyarrow.parquet")
    monkeypatch.setattr("longtail.data.formats.parquet.TABLE_ROWS", 500)
    command = ["predict", files / "m", files / "rows.jsonl", "--batch", 60, "-k", 2]
    run(*command, "-o", tmp_path / "whole.parquet")
    broken_off(6, *command, "-o", tmp_path / "tags.parquet")
    assert not (tmp_path / "tags.parquet").exists()
    run(*command, "-o", tmp_path / "tags.parquet", "--resume")
    assert (tmp_path / "tags.parquet").read_bytes() == (tmp_path / "whole.parquet").read_bytes()
    file = parquet.ParquetFile(tmp_path / "tags.parquet")
    assert file.metadata.num_rows == 1200 and file.metadata.num_row_groups == 3


def test_features_and_files_read_as_a_whole_go_on(files, topics, tmp_path, run, often, broken_off):
    from longtail.data import make_linear

    data = make_linear(300, 30, 5, random_state=0)[0]
    for name in ("rows.xmc", "rows.npz"):
        write(data, tmp_path / name)
    run("train", tmp_path / "rows.npz", "-o", tmp_path / "m", "--calibrate", 0)
    for name in ("rows.xmc", "rows.npz"):
        command = ["predict", tmp_path / "m", tmp_path / name, "--batch", 40]
        run(*command, "-o", tmp_path / "whole.jsonl")
        broken_off(4, *command, "-o", tmp_path / "tags.jsonl")
        run(*command, "-o", tmp_path / "tags.jsonl", "--resume")
        assert (tmp_path / "tags.jsonl").read_bytes() == (tmp_path / "whole.jsonl").read_bytes()


def test_ctrl_c_keeps_what_was_written_and_says_so(files, tmp_path, run, often, monkeypatch, capfd):
    kept, calls = partial_file.PartialFile.end_batch, [0]

    def interrupted(self, *more):
        kept(self, *more)
        calls[0] += 1
        if calls[0] == 3:
            os.kill(os.getpid(), signal.SIGINT)

    command = ["predict", files / "m", files / "rows.txt", "--batch", 50, "-o", tmp_path / "tags.jsonl"]
    with monkeypatch.context() as patch:
        patch.setattr(partial_file.PartialFile, "end_batch", interrupted)
        before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
        try:
            with pytest.raises(SystemExit) as end:
                main([str(arg) for arg in command])
        finally:
            signal.signal(signal.SIGINT, before)
    assert end.value.code == 130
    assert "tags.jsonl.partial keeps 150 rows; the same command with --resume goes on." in capfd.readouterr().err
    err = run(*command, code=3)
    assert "holds 150 rows of the same command, which did not end; use --resume to go on, or delete it" in err
    run(*command, "--resume")
    assert len((tmp_path / "tags.jsonl").read_text().splitlines()) == 600


@pytest.mark.skipif(not FULL.exists(), reason="needs /dev/full")
def test_a_full_disk_keeps_what_was_recorded(files, tmp_path, run, often, monkeypatch):
    command = ["predict", files / "m", files / "rows.txt", "--batch", 50, "-o", tmp_path / "tags.jsonl"]
    run(*command[:-1], tmp_path / "whole.jsonl")
    kept, calls = partial_file.PartialFile._write_out, [0]

    def full(self):
        calls[0] += 1
        if calls[0] == 4:
            with self._failing(), FULL.open("wb", buffering=0) as disk:
                self.file.write(b"half a li")
                disk.write(b"x")
        kept(self)

    with monkeypatch.context() as patch:
        patch.setattr(partial_file.PartialFile, "_write_out", full)
        err = run(*command, code=3)
    assert "keeps 150 rows" in err and "tags.jsonl cannot be written: No space left on device." in err
    run(*command, "--resume")
    assert (tmp_path / "tags.jsonl").read_bytes() == (tmp_path / "whole.jsonl").read_bytes()


def test_what_does_not_fit_is_named(files, topics, tmp_path, run, often, broken_off, capfd):
    rows = tmp_path / "rows.jsonl"
    write(topics, rows)
    command = ["predict", files / "m", rows, "--batch", 50, "-o", tmp_path / "tags.jsonl"]
    broken_off(5, *command)
    again = [*command, "--resume"]
    for options, words in (
        (["-k", 3], "-k was not given and is 3."),
        (["--assign"], "--assign was not given and is given."),
        (["--deny", "topic1"], "--deny was not given and is given."),
        (["--to", "csv"], "--to was jsonl and is csv."),
    ):
        err = run(*again, *options, code=2)
        assert words in err and "--resume does not fit" in err and "which holds 250 rows" in err
        assert err.count("\n") == 1
    other_size = [7 if word == 50 else word for word in again]
    assert "--batch was 50 and is 7." in run(*other_size, code=2)
    run("train", rows, "-o", tmp_path / "other", "--calibrate", 0, "--C", 0.1)
    assert "MODEL is another one." in run("predict", tmp_path / "other", *again[2:], code=2)
    before = rows.read_bytes()
    rows.write_bytes(before + before[:200])
    err = run(*again, code=2)
    assert "rows.jsonl is another file than the one it was made from, or was changed since" in err
    assert f"({len(before) + 200:,} bytes; it had {len(before):,})." in err
    rows.write_bytes(before)
    assert "rows.jsonl is another file than the one it was made from, or was changed since." in run(*again, code=2)
    assert "tags.jsonl.partial holds 250 rows of another command" in run(*command, code=3)  # a later time
    for name in ("tags.jsonl.partial", "tags.jsonl.partial.json"):
        (tmp_path / name).unlink()
    run(*command)
    assert names_in(tmp_path) == ["other", "rows.jsonl", "tags.jsonl"]


def test_a_left_over_of_another_command_is_not_lost(files, tmp_path, run, often, broken_off, capfd):
    command = ["predict", files / "m", files / "rows.jsonl", "--batch", 50, "-o", tmp_path / "tags.jsonl"]
    run(*command[:-1], tmp_path / "whole.jsonl")
    broken_off(5, *command)
    err = run(*command, "-k", 1, code=3)
    assert (
        "tags.jsonl.partial holds 250 rows of another command, which did not end (-k was not given and is 1); "
        "use --resume with all that it was given to go on, or delete it to begin anew." in err
    )
    run(*command, "--resume")
    assert (tmp_path / "tags.jsonl").read_bytes() == (tmp_path / "whole.jsonl").read_bytes()


def test_partial_files_that_are_damaged_or_not_ours(files, tmp_path, run, often, broken_off):
    command = ["predict", files / "m", files / "rows.jsonl", "--batch", 50, "-o", tmp_path / "tags.jsonl"]
    broken_off(5, *command)
    partial, record = tmp_path / "tags.jsonl.partial", tmp_path / "tags.jsonl.partial.json"
    kept = partial.read_bytes()
    middle = len(kept) // 2
    for damaged in (kept[:-200], kept[:-20] + b"x" * 20, kept[:middle] + b"XXXX" + kept[middle + 4 :], b""):
        partial.write_bytes(damaged)
        err = run(*command, "--resume", code=3)
        assert "Resuming" not in err
        assert "tags.jsonl.partial is not what its record tells; delete it to begin anew." in err
        assert partial.read_bytes() == damaged
    partial.write_bytes(kept)
    told = record.read_text()
    for text in ("", "[]", "{}", '{"facts": {}, "done": {"rows": -1}}', told.replace('"rows": 250', '"rows": "x"')):
        record.write_text(text)
        for options in ([], ["--resume"]):
            assert "has no record beside it that says what it belongs to" in run(*command, *options, code=3)
    record.write_text(told)
    run(*command, "--resume")


def test_resume_where_nothing_can_be_continued(files, tmp_path, run, capfd):
    command = ["predict", files / "m", files / "rows.jsonl"]
    assert "--resume needs --output with the name of a file; got stdout." in run(*command, "--resume", code=2)
    assert "got /dev/null." in run(*command, "-o", "/dev/null", "--resume", code=2)
    target = ["-o", tmp_path / "tags.jsonl", "--resume"]
    assert "--resume needs DATA that can be read again, such as a file; got stdin." in run(
        "predict", files / "m", "-", *target, code=2
    )
    assert "cannot be used with --optimise" in run(*command, "--optimise", "coverage@3", *target, code=2)
    with pytest.raises(SystemExit):
        main([str(arg) for arg in [*command, *target]])
    assert "There is nothing to resume for" in capfd.readouterr().err
    assert len((tmp_path / "tags.jsonl").read_text().splitlines()) == 600


def test_bad_rows_leave_nothing_behind(files, topics, tmp_path, run, often):
    write(topics, tmp_path / "rows.jsonl")
    with (tmp_path / "rows.jsonl").open("a") as file:
        file.write("{bad\n")
    command = ["predict", files / "m", tmp_path / "rows.jsonl", "--batch", 50, "-o", tmp_path / "tags.jsonl"]
    (tmp_path / "tags.jsonl").write_text("before\n")
    assert "rows.jsonl line 601 is not JSON" in run(*command, code=3)
    assert names_in(tmp_path) == ["rows.jsonl", "tags.jsonl"]
    assert (tmp_path / "tags.jsonl").read_text() == "before\n"


def test_two_runs_do_not_write_the_same_file(files, tmp_path, run):
    pytest.importorskip("fcntl")
    with partial_file.PartialFile(tmp_path / "tags.jsonl", {}):
        command = ["predict", files / "m", files / "rows.jsonl", "-o", tmp_path / "tags.jsonl"]
        assert "tags.jsonl is being written by another process." in run(*command, code=3)


def test_many_small_streams_are_as_large_as_one(files, tmp_path, run):
    run("predict", files / "m", files / "rows.jsonl", "-o", tmp_path / "a.jsonl.gz")
    text = gzip.decompress((tmp_path / "a.jsonl.gz").read_bytes())
    assert (tmp_path / "a.jsonl.gz").read_bytes() == gzip.compress(text, mtime=0)
