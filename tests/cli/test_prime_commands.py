"""`--method prime` on the command line, from `plan` and `train` to `add-labels`; interrupted, resumed, refused."""

from __future__ import annotations

import json
import sys
from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("default")]

from longtail.cli import main
from longtail.pipeline import load_tagger
from longtail.prime import fit as prime_fit
from longtail.storage import Part

WORDS = ["apple", "pear", "train", "wheel", "chess", "poker", "river", "ocean", "piano", "violin", "bread", "cheese"]
PRIME = ("--method", "prime", "--encoder", "none", "--device", "cpu", "--jobs", "1", "--max-length", "16")


def write_rows(file, n_rows=80, seed=0):
    rng = np.random.default_rng(seed)
    with file.open("w") as out:
        for _ in range(n_rows):
            first, second = rng.choice(6, size=2, replace=False)
            text = " ".join(WORDS[2 * i + int(rng.integers(2))] for i in (first, second, first))
            out.write(json.dumps({"text": text, "labels": [f"c{first}", f"c{second}"]}) + "\n")
    return file


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("prime")
    write_rows(folder / "rows.jsonl")
    write_rows(folder / "test.jsonl", 20, seed=1)
    records = [json.dumps({"id": f"c{i}", "text": f"{WORDS[2 * i]} {WORDS[2 * i + 1]}"}) for i in range(6)]
    (folder / "labels.jsonl").write_text("\n".join(records) + "\n")
    (folder / "new.jsonl").write_text('{"id": "n1", "text": "glacier"}\n{"id": "n2", "text": "apple wheel"}\n')
    args = ["train", folder / "rows.jsonl", "-o", folder / "model", *PRIME, "--epochs", "4", "--validation", "0.1"]
    with pytest.raises(SystemExit) as end:
        main([str(a) for a in (*args, "--labels-file", folder / "labels.jsonl")])
    assert end.value.code == 0
    return folder


def test_train_says_what_it_did(files, run, tmp_path, capfd):
    args = ("train", files / "rows.jsonl", "-o", tmp_path / "model", *PRIME, "--preset", "prime-lite", "--epochs", 2)
    with pytest.raises(SystemExit) as end:
        main([str(a) for a in (*args, "--validation", 0.2, "--classifier", "--precision", "int8")])
    out, err = capfd.readouterr()
    assert end.value.code == 0, err
    assert "Trained prime (prime-lite) on 72 texts with 6 labels for 2 epochs, with a new encoder of 128" in out
    assert "% of a score." in out
    assert "On 8 held-out texts, which it was not trained on: P@1" in out
    assert f"Model: {tmp_path / 'model'}" in out
    assert err.startswith("Epoch 1: loss ") and "P@1" in err and "on validation rows (best so far).\n" in err
    facts = json.loads(run(*args, "--calibrate", 0, "--json"))
    assert facts["trained_rows"] == 80 and facts["features"] == 128 and not facts["calibrated"]
    assert [record["epoch"] for record in facts["epochs"]] == [1, 2] and facts["fusion"] is None


def test_minutes_decide_the_epochs(files, run, tmp_path):
    args = ("train", files / "rows.jsonl", "-o", tmp_path / "model", *PRIME, "--epochs", 3, "--calibrate", 0)
    out = run(*args, "--minutes", 0.0001)
    assert "for 1 epoch, with a new encoder" in out
    assert "One epoch, the least there is, took " in out and " minutes, not 0.0001; with " in out
    assert " more minutes it would train all 3.\n" in out
    assert "epochs 1 of 3, which took longer than 0.0001 minutes" in " ".join(
        run("inspect", tmp_path / "model", "--details").split()
    )
    assert "All 3 epochs fitted into 1000 minutes (" in run(*args, "--minutes", 1000)
    assert "with 6 labels, the encoder as it was, with a new" in run(*args[:-3], 0, "--calibrate", 0)
    assert "--minutes must be a number > 0; got 0" in run(*args, "--minutes", 0, code=2)
    assert "--minutes has no effect with --epochs 0." in run(*args[:-3], 0, "--minutes", 5, code=2)


def test_predict_evaluate_compare_explain(files, run, tmp_path):
    model, test = files / "model", files / "test.jsonl"
    run("predict", model, test, "-o", tmp_path / "tags.csv", "-k", 2)
    lines = (tmp_path / "tags.csv").read_text().splitlines()
    assert len(lines) == 41 and lines[0] == "id,place,label,score,probability"
    out = run("evaluate", model, test, "--report", tmp_path / "report.html", "--resamples", 0)
    assert "model on test" in out and (tmp_path / "report.html").stat().st_size > 1000
    assert "model" in run("compare", model, model, test, "--resamples", 0)
    facts = json.loads(run("explain", model, "--text", "chess and bread", "-k", 1, "--json"))
    assert {word["word"] for word in facts["predicted"][0]["words"]} == {"chess", "and", "bread"}
    assert "c2" in run("explain", model, "--text", "chess", "--label", "c2")


def test_a_label_tree_beside_the_encoder(files, run, tmp_path):
    rows, test, model = files / "rows.jsonl", files / "test.jsonl", tmp_path / "model"
    names = ("--labels-file", files / "labels.jsonl")
    args = (rows, *PRIME, "--epochs", 2, "--tree", *names)
    plan = json.loads(run("plan", *args, "--json"))
    alone = json.loads(run("plan", rows, *PRIME, "--epochs", 2, *names, "--json"))
    assert plan["tree"]["leaves"] >= 1 and plan["model_bytes"] > alone["model_bytes"]
    assert "A label tree on words comes after the encoder." in run("plan", *args)
    assert "A label tree on words ranks with it." in run("train", *args, "-o", model)
    assert json.loads(run("evaluate", model, test, "--resamples", 0, "--json"))["model"]["tree"] is True
    shown = " ".join(run("inspect", model).split())
    assert "tree on words; 6 x the encoder's score is added" in shown
    assert "is intact" in run("verify", model)
    assert "chess" in run("inspect", model, "--label", "c2") and "6 labels" in run("inspect", model, "--tree")
    facts = json.loads(run("explain", model, "--text", "chess poker bread", "-k", 2, "--json"))
    assert {word["word"] for word in facts["predicted"][0]["words"]} == {"chess", "poker", "bread"}
    lines = [json.loads(line) for line in run("predict", model, test, "-k", 2).splitlines()]
    assert len(lines) == 20
    assert "come from a label tree too" in run("audit", model, test, code=4)
    run("add-labels", model, files / "new.jsonl", "-o", tmp_path / "larger")
    said = run("inspect", tmp_path / "larger", "--label", "n1", code=2)
    assert "label 'n1' was added by its text, and the tree does not know it." in said
    assert "n1" in {tag.label for tag in load_tagger(tmp_path / "larger").tag(["glacier"], k=8)[0]}


def test_audit_asks_for_the_top_of_the_ranking(files, run):
    out = " ".join(run("audit", files / "model", files / "test.jsonl", "--jobs", 1, "--details").split())
    assert "combinations of labels can be the first suggestions, each for some input." in out
    assert "Prime: 6 labels in 128 dimensions; its scores only rank" in out
    assert "can be the first 2 suggestions" in run(
        "audit", files / "model", files / "test.jsonl", "--top-k", 2, "--jobs", 1
    )
    assert "a label is on when" not in run("audit", files / "model")


def test_inspect_shows_the_encoder_and_its_epochs(files, run):
    out = run("inspect", files / "model", "--details")
    for line in ("encoder a new one", "preset prime", "epochs 4", "labels 6", "index exact", "precision float32"):
        assert line in " ".join(out.split())
    assert "fusion prototypes alone" in " ".join(out.split()) and "encoder weights" in out
    facts = json.loads(run("inspect", files / "model", "--json"))
    assert len(facts["epochs"]) == 4 and facts["encoder_model"]["dimensions"] == 128
    assert "is intact" in run("verify", files / "model")


def test_add_labels_by_their_texts(files, run, tmp_path):
    out = run("add-labels", files / "model", files / "new.jsonl", "-o", tmp_path / "more")
    assert "Added 2 labels to 6 in" in out and "nothing was trained" in out
    facts = json.loads(run("explain", tmp_path / "more", "--text", "glacier", "--label", "n1", "--json"))
    assert facts["predicted"][0]["label"] == "n1"
    (tmp_path / "names.txt").write_text("sunrise\n")  # into the folder it comes from
    facts = json.loads(run("add-labels", tmp_path / "more", tmp_path / "names.txt", "-o", tmp_path / "more", "--json"))
    assert facts["labels"] == 9 and facts["labels_added"] == 1
    assert "is intact" in run("verify", tmp_path / "more")
    assert "labels added" in run("inspect", tmp_path / "more")


def test_labels_that_cannot_be_added(files, run, tmp_path):
    new = tmp_path / "new.jsonl"
    for text, sentence in [
        ('{"id": "c1", "text": "x"}\n', "got 'c1': the model has it already."),
        ('{"id": "a", "text": "x"}\n{"id": "a", "text": "y"}\n', "line 2: the label 'a' stands in line 1 already."),
        ('{"id": "a", "text": "x"}\n{"id": "b", "text": " "}\n', "every new label needs a text; label 'b' has none."),
        ('{"id": "a"}\n{"id": "b", "text": ""}\n', "every new label needs a text; label 'a' has none."),
        ('{"id": "b", "text": null}\n', "every new label needs a text; label 'b' has none."),
        ("", "new.jsonl is empty."),
    ]:
        new.write_text(text)
        err = run("add-labels", files / "model", new, "-o", tmp_path / "m", code=3)
        assert sentence in err and err.count("\n") == 1
    assert not (tmp_path / "m").exists()
    run("train", files / "rows.jsonl", "-o", tmp_path / "tree", "--calibrate", 0)
    err = run("add-labels", tmp_path / "tree", files / "new.jsonl", "-o", tmp_path / "m", code=4)
    assert "the model is a LabelTreeClassifier" in err and "of the method 'prime'" in err


def test_new_labels_without_any_text_are_read_by_name(files, run, tmp_path):
    (tmp_path / "new.jsonl").write_text('{"id": "glacier"}\n{"id": "sunrise"}\n')
    facts = run("add-labels", files / "model", tmp_path / "new.jsonl", "-o", tmp_path / "more", "--json")
    assert json.loads(facts)["labels_added"] == 2


def test_verify_builds_the_encoder(files, run, tmp_path, monkeypatch):
    tagger = load_tagger(files / "model")
    part = tagger.model_.to_part()
    lost = {n: a for n, a in part.arrays.items() if "word_embeddings" not in n}
    monkeypatch.setattr(type(tagger.model_), "to_part", lambda self: Part(part.kind, part.params, lost))
    tagger.save(tmp_path / "model")
    assert "'text-encoder.v1' is damaged" in run("verify", tmp_path / "model", code=4)
    assert json.loads(run("verify", files / "model", "--json"))["unchecked"] is None
    for package in ("torch", "onnxruntime"):
        monkeypatch.setitem(sys.modules, package, None)
    out = run("verify", files / "model")
    assert "is intact; its encoder was not built" in out and "needs the package 'onnxruntime'" in out


def test_one_text_and_one_label_are_no_plural(run, tmp_path):
    (tmp_path / "rows.jsonl").write_text('{"text": "red apple", "labels": ["apple"]}\n')
    kept = ("--checkpoint", tmp_path / "kept", "--checkpoint-minutes", 1)
    out = run("train", tmp_path / "rows.jsonl", "-o", tmp_path / "model", *PRIME, "--epochs", 1, *kept)
    assert "on 1 text with 1 label for 1 epoch" in out
    assert "a batch of 1 row " in run("plan", tmp_path / "rows.jsonl", *PRIME, "--batch-size", 10**8)


def test_plan_tells_memory_by_part(files, run):
    out = run("plan", files / "rows.jsonl", *PRIME)
    assert "80 rows, 6 labels, 6 of them with rows; vectors of 128 dimensions." in out
    assert "on the CPU, less if it stops early; once, without 8 rows held out to calibrate." in out
    assert "weights" in out and "optimiser" in out and "vectors of labels" in out and "it fits." in out


def test_too_little_memory_names_what_would_help(files, run, tmp_path, monkeypatch):
    monkeypatch.setattr("longtail.pipeline.plan.available_memory", lambda: 1)
    monkeypatch.setattr("longtail.pipeline.plan.used_memory", lambda: 10_000_000)
    err = run("train", files / "rows.jsonl", "-o", tmp_path / "model", *PRIME, code=1)
    assert "use a smaller --batch-size, --max-length or --encoder, or use --force" in err
    assert "That is too little: use a smaller --batch-size" in run("plan", files / "rows.jsonl", *PRIME)


def test_groups_first(files, run, tmp_path):
    rows = [json.loads(line) for line in (files / "rows.jsonl").read_text().splitlines()]
    with (tmp_path / "rows.jsonl").open("w") as items, (tmp_path / "groups.jsonl").open("w") as groups:
        for i in range(0, 80, 2):
            labels = sorted({*rows[i]["labels"], *rows[i + 1]["labels"]})
            groups.write(json.dumps({"group": str(i), "labels": labels}) + "\n")
            for row in rows[i : i + 2]:
                items.write(json.dumps({"text": row["text"], "group": str(i)}) + "\n")
    args = ("--groups", tmp_path / "groups.jsonl", "-o", tmp_path / "model", *PRIME, "--epochs", 1)
    out = run("train", tmp_path / "rows.jsonl", *args, "--impute-rounds", 1)
    assert "80 rows in 40 groups" in out and "Trained prime (prime) on " in out
    assert "which it was not trained on, against the labels found for them" in out


def test_an_interrupted_training_writes_nothing_and_goes_on(files, run, tmp_path, monkeypatch):
    args = ("train", files / "rows.jsonl", *PRIME, "--epochs", 2, "--batch-size", 24)
    run(*args, "-o", tmp_path / "whole")
    settings = prime_fit.loop_settings
    monkeypatch.setattr(prime_fit, "loop_settings", lambda *given: replace(settings(*given), checkpoint_minutes=0.0))

    def stop(*given):
        raise KeyboardInterrupt

    kept = ("-o", tmp_path / "model", "--checkpoint", tmp_path / "kept")
    with monkeypatch.context() as patch:
        patch.setattr("longtail.training.loop._validate", stop)
        assert run(*args, *kept, code=130).strip() == "interrupted; what was there before is unchanged."
    assert not (tmp_path / "model").exists() and list((tmp_path / "kept").iterdir())
    err = run(*args[:-1], 32, *kept, code=4)
    assert "holds the checkpoint of a training on other data or with other settings" in err and err.count("\n") == 1
    run(*args, *kept)
    weights = [{p.name for p in (tmp_path / name).glob("model.*")} for name in ("model", "whole")]
    assert weights[0] == weights[1]  # named by their content
    assert not (tmp_path / "kept").exists()  # nothing is left of it


@pytest.mark.parametrize(
    "where",
    [
        "longtail.prime.estimator.Prime.judge",
        "longtail.prime.estimator.fit_tree_stage",
        "longtail.pipeline.tagger.save_folder",
    ],
)
def test_an_interrupt_after_the_training_costs_no_training(files, run, tmp_path, monkeypatch, where):
    args = ("train", files / "rows.jsonl", *PRIME, "--epochs", 1, "--tree", "-o", tmp_path / "model")
    args = (*args, "--checkpoint", tmp_path / "kept")

    def stop(*given, **more):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(where, stop)
        run(*args, code=130)
    assert not (tmp_path / "model").exists() and list((tmp_path / "kept").iterdir())
    with monkeypatch.context() as patch:
        patch.setattr("longtail.prime.train.batch_loss", stop)  # not one step is made again
        assert "for 1 epoch" in run(*args)
    assert not (tmp_path / "kept").exists()


@pytest.mark.parametrize(
    ("args", "code", "sentence"),
    [
        (["--encoder", "owner/not-here"], 2, "--encoder 'owner/not-here' is not on this machine"),
        (["--encoder", "{}"], 3, "cannot be read as a sentence-transformers model"),
        (["--encoder", __file__], 2, "--encoder must be the folder or the name of a sentence-transformers model; got "),
        (["--encoder", "None"], 2, "--encoder must be a name, a folder or none; got 'None'. Did you mean 'none'?"),
        (["--encoder", ""], 2, "--encoder must be the folder or the name of a sentence-transformers model; got ''."),
        (["--encoder", "none", "--max-length", "100000000"], 2, "--max-length must be at most 8192 for a new encoder"),
        (["--checkpoint-minutes", "5"], 2, "--checkpoint-minutes needs --checkpoint, the folder to write to."),
        (["--checkpoint", "{}", "--checkpoint-minutes", "-1"], 2, "--checkpoint-minutes must be a number >= 0"),
        (["--method", "tree", "--checkpoint-minutes", "5"], 2, "is not an option of the method 'tree'."),
        (["--preset", "primo"], 2, "--preset must be one of ['prime', 'prime-lite', 'dexa', 'ngame']; got 'primo'."),
        (["--device", "abc"], 2, "--device must be the name of a torch device such as 'cpu'; got 'abc'."),
        (["--index", "flat"], 2, "--index must be one of ['exact', 'hnsw', 'ivf']; got 'flat'."),
        (["--batch-size", "1"], 2, "--batch-size must be an integer >= 2; got 1."),
        (["--validation", "0.9"], 2, "--validation must be a number between 0 and 0.5; got 0.9."),
        (["--ngrams", "2"], 2, "--ngrams is not an option of the method 'prime'."),
        (["--width", "2"], 2, "--width is not an option of the method 'prime'."),
        (["--method", "tree", "--max-length", "5"], 2, "--max-length is not an option of the method 'tree'."),
        (["--method", "dft", "--encoder", "none"], 2, "--encoder is not an option of the method 'dft'."),
        (["--method", "ova", "--tree"], 2, "--tree is not an option of the method 'ova'."),
        (["--method", "ova", "--classifier"], 2, "--classifier is not an option of the method 'ova'."),
    ],
)
def test_options_that_cannot_be(files, run, tmp_path, args, code, sentence):
    method = () if "--method" in args else ("--method", "prime")
    given = (*method, *(a.format(tmp_path) for a in args))
    err = run("train", files / "rows.jsonl", "-o", tmp_path / "model", *given, code=code)
    assert err.startswith("error: ") and sentence in err and err.count("\n") == 1
    assert not (tmp_path / "model").exists()


def test_data_that_cannot_be_used(files, run, tmp_path):
    rows = tmp_path / "rows.jsonl"
    target = ("-o", tmp_path / "model", *PRIME)
    rows.write_text('{"text": "a b", "labels": ["c0"]}\n{"text": "", "labels": ["c1"]}\n')
    err = run("train", rows, *target, code=3)
    assert f"error: the texts of {rows} must not be empty; the one of row 1 is.\n" == err
    labels = tmp_path / "labels.jsonl"
    labels.write_text('{"id": "c0", "text": "apple"}\n{"id": "c1"}\n')
    rows.write_text('{"text": "a b", "labels": ["c0"]}\n{"text": "c d", "labels": ["c1"]}\n')
    wanted = f"error: Prime needs a text for every label; in {labels} label 'c1' has none.\n"
    assert run("train", rows, *target, "--labels-file", labels, code=3) == wanted
    assert run("plan", rows, *PRIME, "--labels-file", labels, code=3) == wanted
    for empty in ('""', "null"):
        labels.write_text(f'{{"id": "c0"}}\n{{"id": "c1", "text": {empty}}}\n')
        err = run("train", rows, *target, "--labels-file", labels, code=3)
        assert err == f"error: Prime needs a text for every label; in {labels} label 'c0' has none.\n"
    rows.write_text('{"text": "a b", "labels": ["c0"]}\n{"text": "\\ud800 x", "labels": ["c1"]}\n')
    err = run("train", rows, *target, code=3)
    assert err == f"error: the texts of {rows} must be Unicode text; the one of row 1 is not.\n"
    assert run("predict", files / "model", rows, "--batch", 1, code=3) == err
    assert run("evaluate", files / "model", rows, code=3) == err
    rows.write_text('{"text": "a b", "labels": []}\n')
    err = run("train", rows, *target, code=3)
    assert f"error: the rows of {rows} must have at least one label; every row is empty; a table has them" in err
    features = tmp_path / "rows.txt"
    features.write_text("2 3 2\n0 0:1 1:1\n1 2:1\n")
    err = run("train", features, *target, "--format", "xmc", code=3)
    assert err == f"error: Prime is trained on texts, and {features} has only rows of features.\n"


def test_without_torch(files, run, tmp_path, monkeypatch):
    for package in ("torch", "onnxruntime"):
        monkeypatch.setitem(sys.modules, package, None)
    for package, extra, args in (
        ("torch", "torch", ("train", files / "rows.jsonl", "-o", tmp_path / "model", *PRIME)),
        ("torch", "torch", ("plan", files / "rows.jsonl", *PRIME)),
        ("onnxruntime", "onnx", ("predict", files / "model", files / "test.jsonl")),
        ("onnxruntime", "onnx", ("add-labels", files / "model", files / "new.jsonl", "-o", tmp_path / "model")),
    ):
        err = run(*args, code=5)
        assert f"needs the package '{package}'" in err and f"pip install 'longtail[{extra}]'" in err
        assert err.count("\n") == 1
