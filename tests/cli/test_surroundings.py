"""Commands on machines that lack something: network, home, a locale, a folder to write to, memory."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from longtail.cli import main
from longtail.data import write
from longtail.data.synthetic.generate import make_topics

SOURCE = str(Path(main.__code__.co_filename).parents[2])

# Runs commands one after the other; any look at the network is an error and is remembered.
CHILD = """
import json, sys
tried = []
def refuse(event, args):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto", "socket.bind"):
        tried.append(f"{event} {args[1:]!r}")
        raise ConnectionRefusedError(f"no network: {event}")
sys.addaudithook(refuse)
from longtail.cli import main
for args in json.loads(sys.argv[1]):
    try:
        main(args)
    except SystemExit as end:
        if end.code:
            sys.exit(f"{args} ended with {end.code}")
sys.exit(f"tried {tried}" if tried else 0)
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("surroundings")
    data = make_topics(60, 5, random_state=1)[0]
    write(data, folder / "rows.jsonl")
    rows = [{"id": str(i), "text": data.texts[i], "group": f"g{i // 3}"} for i in range(60)]
    names = data.names()
    groups = [
        {"group": f"g{i}", "labels": [names[j] for row in range(3 * i, 3 * i + 3) for j in data.Y[[row]].indices]}
        for i in range(20)
    ]
    for name, records in (("grouped.jsonl", rows), ("groups.jsonl", groups)):
        (folder / name).write_text("".join(json.dumps(record) + "\n" for record in records))
    return folder


def child(commands, folder, code=0, **env):
    """Run commands in one process without network; returns what it printed."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "TRANSFORMERS_"))}
    command = [sys.executable, "-c", CHILD, json.dumps([[str(a) for a in args] for args in commands])]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, env={**clean, "PYTHONPATH": SOURCE, **env}, stdin=subprocess.DEVNULL
    )
    out, err = (stream.decode("utf-8", "replace") for stream in (done.stdout, done.stderr))
    assert done.returncode == code and "Traceback" not in err, (done.returncode, err)
    return out, err


def test_no_command_needs_a_network(place):
    child(
        [
            ["train", "rows.jsonl", "-o", "tree"],
            ["train", "rows.jsonl", "-o", "ova", "--method", "ova"],
            ["train", "grouped.jsonl", "--groups", "groups.jsonl", "-o", "grouped", "--calibrate", 0],
            ["plan", "rows.jsonl"],
            ["predict", "tree", "rows.jsonl"],
            ["evaluate", "tree", "rows.jsonl", "--report", "page.html", "--resamples", 0],
            ["compare", "tree", "ova", "rows.jsonl", "--report", "compared.html", "--resamples", 0],
            ["explain", "tree", "--text", "some words"],
            ["audit", "ova", "rows.jsonl", "--report", "audit.html"],
            ["impute", "grouped.jsonl", "--groups", "groups.jsonl", "-o", "imputed.jsonl"],
            ["inspect", "tree", "--tree"],
            ["inspect", "ova"],
            ["verify", "tree"],
            ["convert", "rows.jsonl", "rows.csv"],
        ],
        place,
    )


@pytest.mark.torch
def test_no_command_that_needs_torch_needs_a_network(place):
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    small = ["--device", "cpu", "--epochs", 1]
    (place / "labels.jsonl").write_text('{"id": "new", "text": "some words"}\n')
    child(
        [
            ["train", "rows.jsonl", "-o", "dft", "--method", "dft", *small],
            ["train", "rows.jsonl", "-o", "prime", "--method", "prime", "--encoder", "none", *small],
            ["predict", "prime", "rows.jsonl"],
            ["explain", "prime", "--text", "some words"],
            ["add-labels", "prime", "labels.jsonl", "-o", "more"],
            ["verify", "more"],
            ["audit", "dft", "rows.jsonl", "--rows", 3],
        ],
        place,
    )


def test_without_home_and_with_a_locale_that_knows_ascii_only(place):
    rows = [{"text": f"wörd{i % 2} – ünd", "labels": [f"läbel{i % 2} – \U0001f44d"]} for i in range(20)]
    (place / "plain.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    env = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "HOME": "/nowhere", "TMPDIR": "/nowhere"}
    out, _ = child(
        [
            ["train", "plain.jsonl", "-o", "plain", "--calibrate", 0],
            ["evaluate", "plain", "plain.jsonl", "--resamples", 0],
            ["inspect", "plain", "--json"],
            ["predict", "plain", "plain.jsonl"],
            ["explain", "plain", "--text", "w\udcc3\udcb6rd1"],
        ],
        place,
        **env,
    )
    assert "läbel1 – \U0001f44d" in out  # predictions are UTF-8 in any locale


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder where nobody can write")
@pytest.mark.parametrize(
    ("args", "code"),
    [
        (["train", "rows.jsonl", "-o", "/proc/self/model"], 4),
        (["predict", "tree", "rows.jsonl", "-o", "/proc/self/tags.jsonl"], 3),
        (["convert", "rows.jsonl", "/proc/self/rows.csv"], 3),
        (["evaluate", "tree", "rows.jsonl", "--report", "/proc/self/page.html"], 2),
        (["impute", "grouped.jsonl", "--groups", "groups.jsonl", "-o", "/proc/self/rows.jsonl"], 3),
    ],
)
def test_a_target_that_cannot_be_written_is_told_in_one_sentence(place, run, monkeypatch, args, code):
    monkeypatch.chdir(place)
    if not Path("tree").exists():
        run("train", "rows.jsonl", "-o", "tree")
    err = run(*args, code=code)
    told = [line for line in err.splitlines() if line.startswith("error: ")]
    assert len(told) == 1 and "/proc/self" in told[0] and "Traceback" not in err


def test_a_clock_that_jumps_changes_nothing(place, run, monkeypatch):
    run("train", place / "rows.jsonl", "-o", place / "before")
    jumps = iter(range(10**9, 0, -1000))
    monkeypatch.setattr(time, "time", lambda: float(next(jumps)))
    run("train", place / "rows.jsonl", "-o", place / "after")
    expected = {file.name: file.read_bytes() for file in (place / "before").iterdir()}
    assert {file.name: file.read_bytes() for file in (place / "after").iterdir()} == expected


@pytest.mark.skipif(sys.platform != "linux", reason="needs limits on addresses")
def test_too_little_memory_is_told_before_a_library_spins(place):
    command = f"ulimit -v 400000; exec {sys.executable} -m longtail predict model rows.jsonl"
    env = {**os.environ, "PYTHONPATH": SOURCE}
    done = subprocess.run(["bash", "-c", command], cwd=place, env=env, capture_output=True, text=True, timeout=60)
    sentence = "error: out of memory: it needs 800 MB at least, and this process is limited to 410 MB (ulimit -v).\n"
    assert (done.returncode, done.stderr) == (1, sentence)


@pytest.mark.skipif(sys.platform != "linux", reason="needs limits on addresses")
@pytest.mark.parametrize(
    ("body", "code", "told"),
    [
        ("import os; os.abort()", 1, "error: out of memory: SIGABRT in a library, where memory is limited to 8000 MB"),
        ("raise ImportError('x.so: failed to map segment')", 1, "error: out of memory: this process is limited to"),
        ("raise MemoryError", 1, "error: out of memory: this process is limited to 8000 MB (ulimit -v).\n"),
        ("import sys; sys.exit(7)", 7, ""),
    ],
)
def test_what_a_limit_on_memory_does_to_a_library_is_told(body, code, told):
    program = (
        "import resource, sys\n"
        "resource.setrlimit(resource.RLIMIT_AS, (8000 * 10**6, resource.RLIM_INFINITY))\n"
        "import longtail.cli, longtail.cli.app\n"
        f"def fail(*args, **kwargs):\n    {body}\n"
        "longtail.cli.app.app.main = fail\n"
        "longtail.cli.main()\n"
    )
    env = {**os.environ, "PYTHONPATH": SOURCE}
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == code and done.stderr.startswith(told), (done.returncode, done.stderr)


def test_an_index_out_of_bounds_in_checked_mode_is_told(monkeypatch, run):
    def fail(*args, **kwargs):
        return [][3]

    monkeypatch.setattr("longtail.cli.app.CHECKED", True)
    monkeypatch.setattr("longtail.cli.app.app.main", fail)
    err = run("convert", "--list", code=1)
    assert "error: LONGTAIL_CHECKED found an index out of bounds (test_surroundings.py line" in err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no /dev/full")
def test_a_full_stdout_is_named():
    with open("/dev/full", "w") as full:  # noqa: PTH123
        done = subprocess.run(
            [sys.executable, "-m", "longtail", "--help"],
            stdout=full,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": SOURCE},
            check=False,
        )
    assert done.returncode == 1 and done.stderr == b"error: No space left on device: standard output.\n"


def test_a_working_folder_that_is_gone_is_told_of(tmp_path):
    child = "import os, sys; os.mkdir('w'); os.chdir('w'); os.rmdir('../w'); from longtail.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", child, "train", "bundled:debtags", "-o", "model"],
        cwd=tmp_path,
        capture_output=True,
        env={**os.environ, "PYTHONPATH": SOURCE},
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr == b"error: the working folder does not exist any more; change to another.\n"
