"""Only the command line speaks of its options: sentences of the library name parameters, which it translates."""

import ast
import re
from pathlib import Path

import longtail

ROOT = Path(longtail.__file__).parent
STYLE = r"(?![a-z-]*\s*:)"  # not `--ink: #fff`, and not `var(--ink)`
OPTION = re.compile(rf"(?:^|\s|(?<!var)\()--[a-z][a-z-]*{STYLE}|the command line needs")


def test_no_option_is_named_outside_the_command_line():
    found = []
    for file in sorted(ROOT.rglob("*.py")):
        if file.is_relative_to(ROOT / "cli"):
            continue
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found += [f"{file.relative_to(ROOT)}:{node.lineno}: {hit}" for hit in OPTION.findall(node.value)]
    assert not found


def test_the_pattern_tells_options_from_styles():
    for sentence in ("use --force to try", "--classes takes no DATA", "say which (--format)."):
        assert OPTION.search(sentence)
    assert not OPTION.search(":root { --ink: #1b1f27 } var(--ink) a -- b")
