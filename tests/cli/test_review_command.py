"""`longtail review` from rows to a new model, and what it refuses."""

import json

import pytest

import longtail as lt
from longtail.cli import main
from longtail.review import ReviewStore

KINDS = {"apple": "fruit", "pear": "fruit", "car": "vehicle", "train": "vehicle"}
TEXTS = [f"{colour} {thing} {i}" for i in range(15) for thing in KINDS for colour in ("red", "old")]


def run(capfd, *args):
    with pytest.raises(SystemExit) as ended:
        main([str(arg) for arg in args])
    out, err = capfd.readouterr()
    return ended.value.code, out, err


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model") / "model"
    return lt.Tagger(random_state=0).fit(TEXTS, [[KINDS[text.split()[1]]] for text in TEXTS]).save(folder)


@pytest.fixture
def work(tmp_path, trained, monkeypatch):
    from longtail.storage import copy_folder

    monkeypatch.chdir(tmp_path)
    copy_folder(trained, tmp_path / "model")
    rows = [{"id": f"{i}", "text": f"tall {'oak' if i % 2 else 'fir'} tree {i}", "labels": []} for i in range(60)]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return tmp_path


def finish_all(label="plant"):
    with ReviewStore("reviews.db") as store:
        for i in range(60):
            for tag in store.item(str(i)).suggestions:
                if tag.assigned:
                    store.decide(str(i), tag.label, "reject", "ada")
            store.decide(str(i), label, "add", "ada")
            store.finish(str(i), "ada")


def test_notes_name_options(work, capfd):
    (work / "rows.csv").write_bytes('text,labels\nein grüner Baum,"a,b"\nroter Apfel,"c,b"\n'.encode("cp1252"))
    code, _, err = run(capfd, "review", "import", "reviews.db", "rows.csv")
    assert code == 0 and "use --label-separator ," in err and "use --encoding" in err and "pass " not in err


def test_from_rows_to_a_new_model_and_back(work, capfd):
    code, out, _ = run(capfd, "review", "import", "reviews.db", "rows.jsonl", "--model", "model", "--control", "0.3")
    assert code == 0 and out.startswith("reviews.db: 60 new rows.")
    code, out, _ = run(capfd, "review", "import", "reviews.db", "rows.jsonl", "--json")
    assert json.loads(out)["known"] == 60
    finish_all()
    code, out, _ = run(capfd, "review", "status", "reviews.db")
    assert "60 of 60 rows finished" in out and "ada: 60 rows;" in out and "0.0% of the labels" in out
    code, out, _ = run(capfd, "review", "export", "reviews.db", "-o", "out.jsonl")
    assert code == 0 and set(lt.data.read("out.jsonl").names()) == {"plant"}
    code, out, err = run(capfd, "update", "model", "--reviews", "reviews.db")
    assert code == 0 and "50 are needed to compare" in out
    code, out, err = run(capfd, "review", "update", "reviews.db", "model", "--fewest", 5, "--dry-run")
    assert code == 0 and "nothing was swapped, as asked" in out
    code, out, err = run(capfd, "review", "update", "reviews.db", "model", "--fewest", 5, "--json")
    assert code == 0 and json.loads(out)["swapped"]
    assert lt.load("model").predict(["an oak tree"])[0][0] == "plant"
    code, _, err = run(capfd, "review", "put-back", "model")
    assert code == 0 and "which is kept in model.previous" in err
    assert "plant" not in lt.load("model").labels_


def test_guidelines_are_shown_and_set(work, capfd):
    run(capfd, "review", "import", "reviews.db", "rows.jsonl")
    assert run(capfd, "review", "guidelines", "reviews.db", "plant", "--text", "Trees too.")[1] == "plant: Trees too.\n"
    assert run(capfd, "review", "guidelines", "reviews.db")[1] == "plant: Trees too.\n"
    assert run(capfd, "review", "guidelines", "reviews.db", "other")[1] == ""


@pytest.mark.parametrize(
    ("args", "code", "sentence"),
    [
        (["review", "status", "none.db"], 3, "none.db does not exist"),
        (["review", "status", "rows.jsonl"], 3, "rows.jsonl is not a review file"),
        (["review", "import", "new.db", "rows.jsonl", "--control", "2"], 2, "--control must be"),
        (
            ["review", "import", "reviews.db", "rows.jsonl", "--control", "0.5"],
            2,
            "--control can only be chosen for a new",
        ),
        (["review", "export", "reviews.db", "-o", "x.jsonl", "--part", "some"], 2, "--part must be one of"),
        (["review", "update", "reviews.db", "model", "--margin", "-1"], 2, "--margin must be"),
        (["review", "put-back", "model"], 4, "no earlier model to put back"),
        (["review", "guidelines", "reviews.db", "--text", "x"], 2, "--text needs a LABEL"),
        (["update", "model"], 2, "give DATA and -o, or a file of reviews by --reviews"),
        (["update", "model", "rows.jsonl", "--reviews", "reviews.db"], 2, "--reviews takes neither DATA nor -o"),
    ],
)
def test_refusals_are_one_sentence(work, capfd, args, code, sentence):
    ReviewStore("reviews.db", create=True).close()
    got, _, err = run(capfd, *args)
    assert got == code and sentence in err and err.count("\n") == 1
    assert not (work / "new.db").exists() and not (work / "x.jsonl").exists()
