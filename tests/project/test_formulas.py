"""Formulas of the pages become MathML that browsers can draw."""

import importlib
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [page for page in (ROOT / "docs").rglob("*.md") if "```math" in page.read_text("utf-8")]


@pytest.fixture
def formulas(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "scripts" / "docs_site"))
    return importlib.import_module("formulas")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_formula_of_a_page_is_known(formulas, page):
    text = page.read_text("utf-8")
    shown = formulas.with_formulas(text)
    assert "```math" not in shown and "$`" not in shown
    found = re.findall(r"<math.*?</math>", shown)
    assert len(found) == text.count("```math\n") + len(re.findall(r"\$`[^`\n]+`\$", text))
    for formula in found:
        assert ElementTree.fromstring(formula.replace("&#8289;", "")).tag == "math"


def test_limits_stand_below_a_sum_in_a_block_and_beside_it_in_a_line(formulas):
    assert "<munder><mo>∑</mo><mi>i</mi></munder>" in formulas.block(r"\sum_i x_i")
    assert "<msub><mo>∑</mo><mi>i</mi></msub>" in formulas.inline(r"\sum_i x_i")


def test_spaces_of_words_stay_and_those_of_letters_go(formulas):
    assert formulas.inline(r"\text{for each } x") == "<math><mrow><mtext>for each </mtext><mi>x</mi></mrow></math>"


def test_what_is_not_known_is_refused(formulas):
    with pytest.raises(ValueError, match=r"may not use .oint"):
        formulas.inline(r"\oint x")
