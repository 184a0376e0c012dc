"""`longtail plan`, and `longtail train` where memory is too little."""

import json
import resource

import pytest

from longtail.cli import main
from longtail.data import write
from longtail.data.synthetic.generate import make_topics


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    file = tmp_path_factory.mktemp("plan") / "rows.jsonl"
    write(make_topics(300, 10, random_state=1)[0], file)
    return file


def too_little(monkeypatch):
    monkeypatch.setattr("longtail.pipeline.plan.available_memory", lambda: 1)
    monkeypatch.setattr("longtail.pipeline.plan.used_memory", lambda: 10_000_000)


def test_plan_says_what_training_will_take(rows, run):
    out = run("plan", rows, "--jobs", 1)
    assert "300 rows, about 130 features" in out and "10 labels with rows" in out
    assert "Label tree: about 1 leaves" not in out and "1 leaf" in out
    assert "with 1 thread, of which nearly half to calibrate on 30 rows" in out
    assert "it fits" in out and "Model: about" in out and "µs" in out
    assert "calibrate" not in run("plan", rows, "--calibrate", 0)


def test_columns_without_entries_take_no_memory(run, tmp_path):
    file = tmp_path / "hashed.svm"
    file.write_text("".join(f"{i % 4} {1 + i % 4}:1 199999999:0.5\n" for i in range(40)))
    facts = json.loads(run("plan", file, "--json"))
    memory = facts["memory"]
    assert facts["features"] >= 199_999_999 and memory["peak_bytes"] - memory["used_now_bytes"] < 200_000_000
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert json.loads(run("plan", file, "--json", "--method", "ova"))["features"] >= 199_999_999
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300_000  # KiB


def test_plan_prints_json_and_takes_the_options_of_train(rows, run):
    facts = json.loads(run("plan", rows, "--json", "--method", "ova", "--max-features", 20, "--calibrate", 0))
    assert facts["method"] == "ova" and facts["features"] == 20 and facts["calibration_rows"] == 0
    assert facts["train_seconds"] > 0 and facts["model_bytes"] > 0 and facts["tree"] is None
    facts = json.loads(run("plan", rows, "--json", "--trees", 3, "--fast"))
    assert facts["tree"]["trees"] == 3


def test_plan_writes_nothing_and_says_when_memory_is_too_little(rows, run, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    too_little(monkeypatch)
    out = run("plan", rows)
    assert "That is too little" in out and "it fits" not in out
    assert not any(tmp_path.iterdir())


def test_train_stops_where_memory_is_clearly_too_little(rows, run, monkeypatch, tmp_path):
    too_little(monkeypatch)
    err = run("train", rows, "-o", tmp_path / "model", code=1)
    assert "error: training needs about 0.1 GB of memory, and 0.0 GB are available" in err and "--force" in err
    assert not (tmp_path / "model").exists()
    assert "Trained tree" in run("train", rows, "-o", tmp_path / "model", "--force")


def test_train_goes_on_where_it_may_be_enough(rows, run, monkeypatch, tmp_path, capfd):
    monkeypatch.setattr("longtail.pipeline.plan.CLEARLY", 1e9)
    too_little(monkeypatch)
    with pytest.raises(SystemExit) as end:
        main(["train", str(rows), "-o", str(tmp_path / "model")])
    assert end.value.code == 0 and "it may fail" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("args", "code", "sentence"),
    [
        (["none.jsonl"], 3, "none.jsonl does not exist"),
        (["{}", "--method", "tre"], 2, "method must be one of"),
        (["{}", "--method", "ova", "--beam", "3"], 2, "--beam is not an option of the method 'ova'."),
        (["{}", "--calibrate", "0.9"], 2, "calibrate must be"),
    ],
)
def test_errors_are_those_of_train(rows, run, args, code, sentence):
    assert sentence in run("plan", *(a.format(rows) for a in args), code=code)
