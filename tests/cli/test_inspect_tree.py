"""`longtail inspect --tree`, and where else the command line shows the label tree."""

import json

import pytest

import longtail as lt
from longtail.data import write
from longtail.data.synthetic.generate import make_topics
from longtail.pipeline import tree_facts
from longtail.tree import LabelTreeClassifier


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trees")
    data = make_topics(300, 40, random_state=3)[0]
    write(data.take(slice(0, 40)), folder / "test.jsonl")
    model = LabelTreeClassifier(max_leaf=6, branching=4)
    lt.Tagger(model=model, calibrate=0, random_state=0).fit_dataset(data).save(folder / "model")
    lt.Tagger("ova", calibrate=0, random_state=0).fit_dataset(data).save(folder / "flat")
    (folder / "text.txt").write_text(data.texts[0])
    return folder


def test_the_tree_is_printed_plain_and_within_80_columns(files, run):
    out = run("inspect", files / "model", "--tree")
    facts = tree_facts(lt.load(files / "model"))
    assert "\x1b" not in out and out.isascii() and max(len(line) for line in out.splitlines()) <= 80
    assert f"its 40 labels into {facts['levels'][0]['clusters']} clusters" in " ".join(out.split())
    for found in facts["clusters"]:
        assert found["typical"][0]["label"] in out and f"{100 * found['share']:.1f}%" in out
    assert "words: " in out and "|- " in out


def test_json_holds_the_same_facts(files, run):
    assert json.loads(run("inspect", files / "model", "--tree", "--json")) == tree_facts(lt.load(files / "model"))
    some = json.loads(run("inspect", files / "model", "--tree", "--json", "--depth", 1, "--clusters", 2, "--labels", 1))
    assert len(some["clusters"]) == 2 and {found["level"] for found in some["clusters"]} == {0}
    assert all(len(found["typical"]) == 1 for found in some["clusters"]) and some["rest"]["clusters"] >= 1
    assert f"... and {some['rest']['clusters']} more" in run("inspect", files / "model", "--tree", "--clusters", 2)


@pytest.mark.parametrize(
    ("args", "code", "sentence"),
    [
        (["{}/flat", "--tree"], 4, "error: the model is a OneVsAllClassifier and has no label tree; train with"),
        (["{}/none", "--tree"], 4, "none does not exist."),
        (["{}/model", "--depth", "1"], 2, "--depth can only be used with --tree."),
        (["{}/model", "--tree", "--depth", "0"], 2, "depth must be an integer >= 1; got 0."),
        (["{}/model", "--tree", "--clusters", "0"], 2, "clusters must be an integer >= 1; got 0."),
        (["{}/model", "--tree", "--labels", "-1"], 2, "labels must be an integer >= 1; got -1."),
    ],
)
def test_what_cannot_be_shown_is_told_in_one_sentence(files, run, args, code, sentence):
    err = run("inspect", *(a.format(files) for a in args), code=code)
    assert sentence in err and "Traceback" not in err and len(err.strip().splitlines()) == 1


def test_the_report_draws_the_tree(files, run):
    for model, drawn in (("model", True), ("flat", False)):
        page = files / f"{model}.html"
        run("evaluate", files / model, files / "test.jsonl", "--report", page, "--resamples", 0)
        assert ("How the labels are grouped" in page.read_text("utf-8")) is drawn
        assert ('class="path"' in page.read_text("utf-8")) is drawn
    facts = json.loads(run("evaluate", files / "model", files / "test.jsonl", "--json", "--resamples", 0))
    assert facts["tree"]["labels"] == 40
    assert json.loads(run("evaluate", files / "flat", files / "test.jsonl", "--json", "--resamples", 0))["tree"] is None


def test_explain_shows_the_way_to_each_label(files, run):
    facts = json.loads(run("explain", files / "model", "--file", files / "text.txt", "-k", 1, "--json"))
    path = facts["predicted"][0]["path"]
    assert [step["level"] for step in path] == list(range(len(path))) and len(path) > 1
    out = run("explain", files / "model", "--file", files / "text.txt", "-k", 1)
    for step in path:
        assert f"{step['margin']:+.2f}  {step['typical'][0]}" in out
    assert "  in " not in run("explain", files / "flat", "--file", files / "text.txt", "-k", 1)
