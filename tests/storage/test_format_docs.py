"""The page about model folders says what the schemas say."""

import importlib.util
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_page_is_up_to_date():
    file = ROOT / "scripts" / "make_format_docs.py"
    spec = importlib.util.spec_from_file_location("make_format_docs", file)
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    text = program.PAGE.read_text("utf-8")
    assert program.page_with(text, program.section()) == text, "run python scripts/make_format_docs.py"
    for schema in program.schemas():
        assert all(param.about for param in schema.params) and all(array.about for array in schema.arrays), schema.kind
