"""What strangers wrote cannot command a terminal: every command in a pseudo-terminal, on names made of escapes."""

import io
import json
import os
import select
import subprocess
import sys

import numpy as np
import pytest

from longtail.report import InertStream, inert

pty = pytest.importorskip("pty")

EVIL = "\x1b[2J\x1b]0owned\x07\x9b31m\u202ezyx\u2066\u200f\x85\r\x08\x7f"
IN_A_FILE_NAME = EVIL.replace("/", "")
FORBIDDEN = [
    c.encode() for c in ("\x1b[2J", "\x1b]", "\x07", "\x9b", "\u202e", "\u2066", "\u200f", "\x85", "\x08", "\x7f")
]

CHILD = """
import json, sys
from longtail.cli import main
for args in json.loads(sys.argv[1]):
    print("@@@", flush=True)
    try:
        main(args)
    except SystemExit as end:
        print("@ended", end.code, flush=True)
"""


def in_a_terminal(commands, folder):
    """Run commands in one process whose stdout and stderr are a terminal; returns what each printed, and its code."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-c", CHILD, json.dumps([[str(a) for a in args] for args in commands])]
    env = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "200"}
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, cwd=folder, env=env)
    os.close(theirs)
    raw = b""
    while True:
        if not select.select([ours], [], [], 120)[0]:
            process.kill()
            break
        try:
            chunk = os.read(ours, 1 << 16)
        except OSError:  # the other side is closed
            break
        if not chunk:
            break
        raw += chunk
    os.close(ours)
    assert process.wait() == 0, raw.decode("utf-8", "replace")
    out = []
    for part in raw.split(b"@@@\r\n")[1:]:
        shown, _, code = part.partition(b"@ended ")
        out.append((shown, int(code.split()[0])))
    assert len(out) == len(commands)
    return out


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Data whose labels, texts, ids, columns and file names are made of escapes."""
    folder = tmp_path_factory.mktemp("terminal")
    labels = [f"{EVIL}{name}" for name in "abc"]
    rows = [
        {"id": f"{EVIL}{i}", "text": f"word{i % 3} {EVIL} more{i % 3}", "labels": [labels[i % 3]]} for i in range(30)
    ]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "key.jsonl").write_text(json.dumps({EVIL: "a", "labels": ["b"]}) + "\n")
    (folder / "value.jsonl").write_text(json.dumps({"text": [EVIL], "labels": ["b"]}) + "\n")
    (folder / "head.csv").write_text(f"{EVIL},labels\na,b\n".replace("\r", ""))
    (folder / "more.jsonl").write_text(json.dumps({"name": f"{EVIL}new", "text": "word1 new"}) + "\n")
    (folder / f"{IN_A_FILE_NAME}.jsonl").write_text((folder / "rows.jsonl").read_text())
    np.savez(folder / "layer.npz", **{EVIL: np.eye(3), "x": np.eye(4)})
    return folder


def test_nothing_that_a_stranger_wrote_commands_a_terminal(place):
    evil = f"{IN_A_FILE_NAME}.jsonl"
    commands = [
        ["train", evil, "-o", "model"],
        ["predict", "model", evil],
        ["predict", "model", "rows.jsonl", "--to", "csv"],
        ["predict", "model", "rows.jsonl", "--to", "tsv"],
        ["predict", "model", "rows.jsonl", "-o", f"{IN_A_FILE_NAME}.csv"],
        ["evaluate", "model", evil, "--resamples", "0"],
        ["evaluate", "model", evil, "--resamples", "0", "--json"],
        ["explain", "model", "--text", f"word1 {EVIL}"],
        ["explain", "model", "--text", "word1", "--json"],
        ["explain", "model", "--text", "word1", "--label", f"{EVIL}a"],
        ["inspect", "model"],
        ["inspect", "model", "--tree"],
        ["inspect", "model", "--label", f"{EVIL}a", "--data", evil],
        ["plan", evil],
        ["train", evil, "-o", "ova", "--method", "ova", "--calibrate", "0"],
        ["audit", "ova", evil],
        ["convert", evil, f"{IN_A_FILE_NAME}.csv"],
        ["convert", evil, f"{IN_A_FILE_NAME}.csv", "--json"],
        ["verify", "model"],
    ]
    wrong = [
        ["train", "key.jsonl", "-o", "m"],
        ["train", "value.jsonl", "-o", "m"],
        ["train", "head.csv", "-o", "m"],
        ["train", f"{IN_A_FILE_NAME}missing", "-o", "m"],
        ["train", "rows.jsonl", "-o", "m", "--text-column", EVIL],
        ["train", "rows.jsonl", "-o", "m", "--method", EVIL],
        ["explain", "model", "--text", "word1", "--label", f"{EVIL}unknown"],
        ["inspect", "model", "--label", f"{EVIL}unknown"],
        ["predict", f"no{EVIL}", "rows.jsonl"],
        ["audit", "--weights", "layer.npz", "rows.jsonl"],
        ["add-labels", "model", "more.jsonl", "-o", f"model{IN_A_FILE_NAME}"],
        [EVIL],
        ["train", f"--{EVIL}"],
    ]
    ended = in_a_terminal(commands + wrong, place)
    for args, (shown, code) in zip(commands + wrong, ended, strict=True):
        assert (code == 0) == (args in commands), (args, shown)
        assert shown and not [found for found in FORBIDDEN if found in shown], (args, shown)
        assert b"\r" not in shown.replace(b"\r\n", b"") or b"\x1b[2K" in shown, (args, shown)  # but for progress bars
    told = ended[1][0].decode().splitlines()
    assert json.loads(next(line for line in told if line.startswith("{")))["id"] == f"{EVIL}0"  # JSON stays JSON


def test_files_and_pipes_get_the_data_as_it_is(place, run):
    if not (place / "model").exists():
        run("train", place / "rows.jsonl", "-o", place / "model")
    out = run("predict", place / "model", place / "rows.jsonl", "-k", 1, "--to", "tsv")
    assert f"{EVIL.split(chr(13))[0]}" in out and "\\u" not in out
    run("predict", place / "model", place / "rows.jsonl", "-k", 1, "-o", place / "tags.jsonl")
    assert json.loads((place / "tags.jsonl").read_text().split("\n")[0])["id"] == f"{EVIL}0"


def test_parameter_and_array_names_of_a_model_are_inert(place, run):
    run("train", place / "rows.jsonl", "-o", place / "other", "--calibrate", 0)
    manifest = json.loads((place / "other" / "manifest.json").read_text())
    manifest["parts"]["model"]["params"][EVIL] = EVIL
    manifest["libraries"] = {EVIL: EVIL}
    (place / "other" / "manifest.json").write_text(json.dumps(manifest))
    commands = [
        ["inspect", "other"],
        ["inspect", "other", "--json"],
        ["verify", "other"],
        ["explain", "other", "--text", "a"],
    ]
    for shown, _ in in_a_terminal(commands, place):
        assert not [found for found in FORBIDDEN if found in shown], shown


def test_errors_in_a_pipe_are_inert_too(place, run):
    err = run("train", place / "key.jsonl", "-o", place / "m", code=3)
    assert "\\u001b[2J" in err and not any(found.decode() in err for found in FORBIDDEN)


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_a_stream_writes_what_its_encoding_has_not_as_escapes(encoding):
    raw = io.BytesIO()
    stream = InertStream(io.TextIOWrapper(raw, encoding=encoding, newline="\n"), shown=False)
    print("é – \ud800 x", file=stream, flush=True)
    assert raw.getvalue().decode(encoding).endswith("\\ud800 x\n")
    with pytest.raises(TypeError):
        stream.write(b"bytes")


def test_inert_text_keeps_lines_tabs_and_all_languages():
    kept = "α\tβ\nעברית العربية 日本語 é 👍🏽 x"
    assert inert(kept) == kept
    assert json.loads(inert(json.dumps(EVIL, ensure_ascii=False))) == EVIL


def test_the_programs_own_colours_still_reach_the_terminal(place, run):
    run("train", place / "rows.jsonl", "-o", place / "model")
    ((shown, _),) = in_a_terminal([["inspect", "model"]], place)
    assert b"\x1b[1m" in shown


def test_a_stream_that_was_closed_is_no_terminal():
    closed = io.StringIO()
    stream = InertStream(closed, shown=True)
    closed.close()
    assert stream.isatty() is False  # libraries ask once more when Python ends
