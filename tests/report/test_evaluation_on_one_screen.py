"""The report of an evaluation for people: contents, effective settings, every label, names, and one screen."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

import longtail as lt
from longtail.pipeline import evaluate_tagger, model_facts, page_tree
from longtail.report import evaluation_page, show_evaluation, show_evaluation_summary
from longtail.report.model_rows import model_line, model_settings
from longtail.tree import LabelTreeClassifier
from longtail.vocabulary import Concept

BASE = "http://example.org/concept/"


@pytest.fixture(scope="module")
def tagger():
    data = lt.data.load_bundled("debtags").take(slice(None, None, 24))
    concepts = [Concept(BASE + name, {"en": f"Name of {name}"}) for name in data.names()]
    named = lt.data.Dataset(Y=data.Y, texts=data.texts, label_names=[BASE + name for name in data.names()])
    model = LabelTreeClassifier(max_leaf=40, branching=4, overlap="auto")
    return lt.Tagger(model=model, random_state=0).fit_dataset(named, vocabulary=lt.Vocabulary(concepts))


@pytest.fixture(scope="module")
def facts(tagger):
    data = lt.data.load_bundled("debtags", "test").take(slice(None, None, 24))
    names = [BASE + name for name in data.names()]
    groups = [["de", "en", "fi", "sv", "nn"][row % 5 if row % 7 else 4] for row in range(data.n_rows)]
    rows = lt.data.Dataset.from_lists(
        data.texts, [[BASE + label for label in data.labels_of(r)] for r in range(data.n_rows)]
    )
    grouped = lt.data.GroupedDataset.from_lists(data.texts, groups, {name: [names[0]] for name in set(groups)})
    judged = lt.data.Dataset(
        Y=rows.Y,
        texts=rows.texts,
        label_names=rows.label_names,
        name="test",
        groups=grouped.rows.groups,
        group_names=grouped.rows.group_names,
    )
    out = evaluate_tagger(tagger, judged, n_bootstrap=50, by="language")
    out["tree"] = page_tree(tagger)
    return out


def printed(show, facts, width, **options):
    console = Console(file=io.StringIO(), width=width)
    show(console, facts, **options)
    return console.file.getvalue()


def test_the_contents_lead_to_every_section(facts):
    page = evaluation_page(facts)
    links = re.findall(r'<a href="#([^"]+)">([^<]+)</a>', page)
    sections = re.findall(r'<section id="([^"]+)">\s*<h2>(.*?)</h2>', page, re.DOTALL)
    assert [id for id, _ in links] == [id for id, _ in sections] and page.count("<section") == len(sections)
    assert {"model", "suggestions", "parts", "worst", "labels", "clusters"} <= {id for id, _ in links}
    assert "By language" in [name for _, name in links]


def test_settings_are_those_that_were_in_effect(tagger, facts):
    settings = model_facts(tagger)["settings"]
    assert settings["C"] == tagger.model_.C_ and settings["beam"] == tagger.model_.beam_width
    assert settings["overlap"] in (1, 2) and settings["path_weight"] in (0.3, 0.5)
    shown = {setting.name: setting for setting in model_settings(facts["model"])}
    assert "auto" not in [setting.value for setting in shown.values()] and "none" not in shown["beam"].value
    assert shown["C"].chosen and not shown["branching"].chosen
    page = evaluation_page(facts)
    assert f"<dt>C</dt><dd>{tagger.model_.C_:.4g} (auto)</dd>" in page and "<dt>branching</dt><dd>4</dd>" in page
    assert f"C {tagger.model_.C_:.4g}" in model_line(facts["model"])
    assert f"C {tagger.model_.C_:.4g} (auto)" in printed(show_evaluation, facts, 400)


def test_what_was_left_open_is_read_from_the_trees():
    data = lt.data.load_bundled("debtags").take(slice(None, None, 48))
    plain = lt.Tagger("tree", calibrate=0, random_state=3).fit_dataset(data).model_.effective_params()
    assert None not in plain.values() and plain["overlap"] == 1 and "merge" not in plain
    assert plain["random_state"] == 3 and plain["branching"] >= 2
    given = LabelTreeClassifier(C=0.5, beam=3, path_weight=0.1, branching=7, overlap=2)
    used = lt.Tagger(model=given, calibrate=0).fit_dataset(data).model_.effective_params()
    assert (used["C"], used["beam"], used["path_weight"], used["branching"], used["overlap"]) == (0.5, 3, 0.1, 7, 2)
    assert used["rounds"] == 1 and used["merge"] == "max"


def test_every_label_is_in_the_table_or_told(tagger, facts, monkeypatch):
    everything = {row["label"] for row in facts["labels"]}
    assert everything >= set(tagger.labels_) and facts["labels_left_out"] == 0
    page = evaluation_page(facts)
    assert f"All {len(everything)} labels." in page
    assert all(
        f">Name of {label.removeprefix(BASE)}<" in page for label in list(everything)[:50] if label in tagger.labels_
    )
    few = {**facts, "labels": facts["labels"][:7], "labels_left_out": len(everything) - 7}
    page = evaluation_page(few, labels_table="the file")
    assert f"The 7 labels with most test rows, of {len(everything)}; the file gives all of them." in page


def test_the_labels_found_least_have_an_interval(facts):
    row = facts["worst_labels"][0]
    assert 0 <= row["recall_low"] <= row["recall"] <= row["recall_high"] <= 1
    page = evaluation_page(facts)
    part = page[page.index('<section id="worst">') : page.index('<section id="labels">')]
    assert row["name"] in part and f"{100 * row['recall_high']:.0f}" in part


def test_people_read_names_in_every_cell_of_the_tree_map(facts):
    page = evaluation_page(facts)
    drawing = page[page.index('<svg xmlns="http://www.w3.org/2000/svg" class="lt map desk"') :]
    drawing = drawing[: drawing.index("</figure>")]
    assert BASE not in drawing and "Name of" in drawing
    cells = re.findall(r'<path d="[^"]+" class="s\d"><title>([^<]+)</title></path>', drawing)
    inside = sum(len(cluster.get("inside") or []) for cluster in facts["tree"]["clusters"])
    assert len(cells) == inside > 0 and all("labels, used" in cell for cell in cells)


def test_an_evaluation_fits_one_screen(facts):
    out = printed(show_evaluation_summary, {**facts, "title": "model on test"}, 100, more="--details shows the rest.")
    assert out.count("\n") <= 30 and out.rstrip().endswith("--details shows the rest.")
    assert BASE not in out and "Found least: Name of " in out and "By language" in out and "tail" in out
    assert printed(show_evaluation, facts, 100).count("\n") > 60
    for width in (20, 40):
        lines = printed(show_evaluation_summary, facts, width).splitlines()
        assert max(map(len, lines)) <= width
    assert printed(show_evaluation_summary, {}, 80) == ""
