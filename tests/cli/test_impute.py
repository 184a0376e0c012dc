"""`longtail impute` and `longtail train --groups`, as a user meets them."""

import csv
import json
import signal
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

from longtail.data import Dataset, group_randomly, make_topics, read, write
from longtail.pipeline import load


def lines(path, records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def table(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def page_records(Y_groups, names, counted=True):
    for page in range(Y_groups.shape[0]):
        row = Y_groups[[page]]
        labels = [names[i] for i, n in zip(row.indices, row.data, strict=True) for _ in range(int(n) if counted else 1)]
        yield {"group": f"page {page}", "labels": labels}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("impute")
    data = make_topics(460, 10, random_state=1)[0]
    train, test = data.take(slice(0, 400)), data.take(slice(400, None))
    groups, Y_groups = group_randomly(train.Y, 3, random_state=0)
    groups = sp.csr_array(groups * (np.arange(400) < 395)[:, None])  # five rows have lost their pages
    groups.eliminate_zeros()
    ids = [f"r{row}" for row in range(400)]
    rows = Dataset(
        Y=sp.csr_array((400, 0), dtype=np.float32),
        texts=train.texts,
        ids=ids,
        groups=groups,
        group_names=[f"page {i}" for i in range(groups.shape[1])],
    )
    write(rows, folder / "rows.jsonl")
    write(rows, folder / "rows.csv")
    write(train, folder / "true.jsonl")
    write(test, folder / "test.jsonl")
    lines(folder / "pages.jsonl", page_records(Y_groups, data.label_names))
    lines(folder / "once.jsonl", page_records(Y_groups, data.label_names, counted=False))
    return folder


def right(files, path):
    truth, found = read(files / "true.jsonl"), read(path)
    Y = found.align(truth.label_names)[0].Y
    return (Y.multiply(truth.Y) > 0).sum() / Y.nnz


# --- impute -----------------------------------------------------------------------------------------------------------


def test_impute_writes_labels_and_says_what_it_did(files, run, tmp_path):
    out = run("impute", files / "rows.jsonl", "--groups", files / "pages.jsonl", "-o", tmp_path / "out.jsonl")
    assert "400 rows in 134 groups of 1 to 3 rows, 2.9 on average, with 10 labels." in out
    assert "Rows of a group are " in out and "auto: some groups have a label more than once" in out
    assert "5 rows got no label: 5 in no group." in out and str(tmp_path / "out.jsonl") in out
    assert right(files, tmp_path / "out.jsonl") > 0.85
    first = json.loads((tmp_path / "out.jsonl").read_text().splitlines()[0])
    assert list(first) == ["id", "text", "labels", "group"] and first["id"] == "r0"


def test_impute_prints_facts_as_json(files, run, tmp_path):
    out = run("impute", files / "rows.csv", "--groups", files / "once.jsonl", "-o", tmp_path / "o.csv", "--json")
    facts = json.loads(out)
    assert facts["rows"] == 400 and facts["format"] == "csv" and facts["counts_known"] is False
    assert facts["rows_without_labels"] == sum(not row["labels"] for row in table(tmp_path / "o.csv"))


@pytest.mark.parametrize("suffix", ["jsonl", "csv", "tsv.gz", "parquet"])
def test_confidence_stands_beside_the_labels(files, run, tmp_path, suffix):
    if suffix == "parquet":
        pytest.importorskip("pyarrow")
    target = tmp_path / f"out.{suffix}"
    run("impute", files / "rows.jsonl", "--groups", files / "pages.jsonl", "-o", target, "--confidence")
    assert read(target).n_rows == 400
    if suffix == "jsonl":
        for line in target.read_text().splitlines():
            row = json.loads(line)
            assert len(row["labels"]) == len(row["confidence"]) and all(0 < c <= 1 for c in row["confidence"])


@pytest.mark.parametrize("assign", ["auto", "argmax", "top", "soft", "propagate"])
def test_every_way_to_assign(files, run, tmp_path, assign):
    target = tmp_path / "out.jsonl"
    out = run("impute", files / "rows.jsonl", "--groups", files / "pages.jsonl", "-o", target, "--assign", assign)
    assert f"{assign}: " in out
    found = right(files, target)
    assert found < 0.6 if assign == "propagate" else found > 0.5


def test_settings_reach_the_method(files, run, tmp_path):
    common = ("impute", files / "rows.jsonl", "--groups", files / "pages.jsonl", "--json", "-o")
    plain = json.loads(run(*common, tmp_path / "a.jsonl", "--n-iter", 0, "--assign", "argmax", "--jobs", 1))
    assert plain["n_iter"] == 0
    asked = json.loads(run(*common, tmp_path / "b.jsonl", "--rounds", 1, "--seed", 3))
    assert asked["rounds"] == 1 and right(files, tmp_path / "b.jsonl") > 0.85


def test_columns_can_be_named_and_texts_joined(run, tmp_path):
    (tmp_path / "rows.csv").write_text("title,body,page\napple,red,1\ncar,old,1\napple,green,2\ncar,new,3\n")
    (tmp_path / "pages.csv").write_text("page,tags\n1,fruit|vehicle\n2,fruit\n3,vehicle\n")
    run(
        "impute",
        tmp_path / "rows.csv",
        "--groups",
        tmp_path / "pages.csv",
        "-o",
        tmp_path / "out.csv",
        "--text-column",
        "title",
        "--text-column",
        "body",
        "--group-column",
        "page",
        "--labels-column",
        "tags",
        "--label-separator",
        "|",
    )
    assert [row["labels"] for row in table(tmp_path / "out.csv")] == ["fruit", "vehicle", "fruit", "vehicle"]


def test_what_was_left_is_counted(run, tmp_path):
    rows = [
        {"text": "red apple", "group": "1"},
        {"text": "old car", "group": "1"},
        {"text": "green apple", "group": ["2", "4"]},
        {"text": "", "group": "1"},
        {"text": "a tree"},
        {"text": "a bush", "group": "5"},
    ]
    pages = [
        {"group": "1", "labels": ["fruit", "vehicle"]},
        {"group": "2", "labels": ["fruit", "fruit"]},
        {"group": "3", "labels": ["boat"]},
        {"group": "4", "labels": ["fruit"]},
        {"group": "5", "labels": []},
    ]
    lines(tmp_path / "rows.jsonl", rows), lines(tmp_path / "pages.jsonl", pages)
    out = run("impute", tmp_path / "rows.jsonl", "--groups", tmp_path / "pages.jsonl", "-o", tmp_path / "o.jsonl")
    assert "3 rows got no label: 1 without a known word, 1 in groups without labels, 1 in no group." in out
    assert "1 group has no rows, so its labels went nowhere." in out
    assert "1 label is in no group that has rows." in out
    assert "1 time a group has a label more often than it has rows; all its rows got it." in out
    found = [json.loads(line)["labels"] for line in (tmp_path / "o.jsonl").read_text().splitlines()]
    assert found == [["fruit"], ["vehicle"], ["fruit"], [], [], []]


# --- the toy example of the paper's Figure 1 --------------------------------------------------------------------------


@pytest.fixture
def toy(tmp_path):
    """Three groups of x and -x, each with both labels."""
    x = np.array([0.6, 0.8], dtype=np.float32)
    np.savez(tmp_path / "toy.npz", X=np.array([x, -x] * 3), groups=np.repeat(np.eye(3), 2, axis=0))
    np.savez(tmp_path / "both.npz", Y=np.ones((3, 2)))
    return tmp_path


def scores(run, model, data):
    tags = [json.loads(line)["labels"] for line in run("predict", model, data, "-k", 2).splitlines()]
    return [{tag["label"]: tag["score"] for tag in row} for row in tags]


def test_features_with_groups_are_separated(toy, run):
    run("impute", toy / "toy.npz", "--groups", toy / "both.npz", "-o", toy / "out.npz")
    Y = read(toy / "out.npz").Y.toarray()
    assert (Y.sum(axis=1) == 1).all() and (Y[::2] == Y[0]).all() and (Y[1::2] == Y[1]).all() and (Y[0] != Y[1]).any()


def test_a_model_learns_the_toy_example_and_nothing_from_propagation(toy, run):
    train = ("train", toy / "toy.npz", "--groups", toy / "both.npz", "--method", "ova")
    run(*train, "-o", toy / "model")
    found = scores(run, toy / "model", toy / "toy.npz")
    best = [max(row, key=row.get) for row in found]
    assert best[0] != best[1] and best == best[:2] * 3
    run(*train, "-o", toy / "blind", "--assign", "propagate")
    for row in scores(run, toy / "blind", toy / "toy.npz"):
        assert abs(row["0"] - row["1"]) < 1e-4


# --- train ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["tree", "ova"])
def test_train_on_groups_evaluate_on_rows(files, run, tmp_path, method):
    train = ("train", files / "rows.jsonl", "--groups", files / "pages.jsonl", "--method", method)
    out = run(*train, "-o", tmp_path / "model")
    assert load(tmp_path / "model").data_["imputed"]["rows_without_labels"] == 5
    assert "400 rows in 134 groups" in out and "5 rows got no label: 5 in no group." in out
    assert f"Trained {method} on 395 texts with 10 labels" in out
    assert "before they were added, against the labels found for them: P@1" in out
    facts = json.loads(run("evaluate", tmp_path / "model", files / "test.jsonl", "--json", "--resamples", 20))
    assert facts["evaluation"]["metrics"]["p@1"]["value"] > 0.85


def test_asking_a_model_where_all_labels_go_to_all_rows_is_refused(files, run, tmp_path):
    args = (
        files / "rows.jsonl",
        "--groups",
        files / "pages.jsonl",
        "--assign",
        "propagate",
        "-o",
        tmp_path / "out.jsonl",
    )
    for command, option in (("impute", "--rounds"), ("impute", "--n-iter"), ("train", "--impute-rounds")):
        err = run(command, *args, option, 1, code=2)
        assert err.endswith(f"error: {option} has no effect with --assign propagate, which learns nothing.\n")
        assert not (tmp_path / "out.jsonl").exists()


def test_train_asks_its_own_model_and_reports_it(files, run, tmp_path):
    train = ("train", files / "rows.jsonl", "--groups", files / "pages.jsonl", "--json", "--calibrate", 0)
    facts = json.loads(run(*train, "-o", tmp_path / "model", "--impute-rounds", 1))
    assert facts["trained_on"]["imputed"]["rounds"] == 1
    assert "rows" in run("inspect", tmp_path / "model")


# --- errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["-o", "o.jsonl"], 2, "impute needs --groups, the file with the labels of groups."),
        (["--groups", "nothing.csv", "-o", "o.jsonl"], 3, "nothing.csv does not exist."),
        (["--groups", "pages.jsonl", "-o", "o.what"], 3, "its name does not tell the format to write; use --to"),
        (["--groups", "pages.jsonl", "-o", "none/o.csv"], 3, "the folder none does not exist."),
        (["--groups", "pages.jsonl", "-o", ""], 2, "--output must be the name of a file; got an empty one."),
        (["--groups", "pages.jsonl", "-o", "o.csv", "--text-column", ""], 2, "--text-column must be a name or a list"),
        (["--groups", "pages.jsonl", "-o", "o.csv", "--group-column", ""], 2, "--group-column must be the name of a"),
        (["--groups", "pages.jsonl", "-o", "o", "--to", "xmc"], 3, "rows.jsonl has texts and no features; write it as"),
        (
            ["--groups", "pages.jsonl", "-o", "o", "--to", "libsvm"],
            3,
            "fasttext, store, annif or annif-folder (--to), not as",
        ),
        (["--groups", "pages.jsonl", "-o", "."], 3, "its name does not tell the format to write"),
        (["--groups", "pages.jsonl", "-o", "rows.jsonl"], 2, "--output is the file that is read (rows.jsonl); give an"),
        (["--groups", "pages.jsonl", "-o", "o.xmc", "--confidence"], 2, "--confidence needs one of ['jsonl', 'csv'"),
        (["--groups", "pages.jsonl", "-o", "o.csv", "--assign", "atuo"], 2, "--assign must be one of"),
        (["--groups", "pages.jsonl", "-o", "o.csv", "--n-iter", "-1"], 2, "--n-iter must be an integer >= 0; got -1."),
        (["--groups", "pages.jsonl", "-o", "o.csv", "--rounds", "-1"], 2, "--rounds must be an integer >= 0; got -1."),
        (["--groups", "pages.jsonl", "-o", "o.csv", "--jobs", "0"], 2, "--jobs must be"),
        (["--groups", "few.jsonl", "-o", "o.csv"], 3, "rows.jsonl line 2: the group 'page "),
        (["--groups", "twice.jsonl", "-o", "o.csv"], 3, "line 3: the group 'page 0' stands in line 1 already"),
        (["--groups", "pages.jsonl", "-o", "o.csv", "--group-column", "page"], 3, "has no names of groups"),
    ],
)
def test_errors_are_one_sentence_and_write_nothing(files, run, tmp_path, monkeypatch, arguments, code, sentence):
    pages = (files / "pages.jsonl").read_text().splitlines()
    (tmp_path / "rows.jsonl").write_bytes((files / "rows.jsonl").read_bytes())
    (tmp_path / "pages.jsonl").write_text("\n".join(pages) + "\n")
    first = json.loads((files / "rows.jsonl").read_text().splitlines()[0])["group"]
    (tmp_path / "few.jsonl").write_text(json.dumps({"group": first, "labels": ["a"]}) + "\n")
    (tmp_path / "twice.jsonl").write_text("\n".join([pages[0], pages[1], pages[0]]) + "\n")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    monkeypatch.chdir(tmp_path)
    told = run("impute", "rows.jsonl", *arguments, code=code)
    assert sentence in told and told.startswith("error: ") and told.count("\n") == 1
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_rows_without_a_group_field_are_refused(files, run, tmp_path):
    told = run("impute", files / "test.jsonl", "--groups", files / "pages.jsonl", "-o", tmp_path / "o.csv", code=3)
    assert "test.jsonl has no groups: no row has 'group'." in told
    told = run("impute", "bundled:debtags", "--groups", files / "pages.jsonl", "-o", tmp_path / "o.csv", code=3)
    assert "bundled:debtags has no groups" in told
    told = run("train", files / "test.jsonl", "--groups", files / "pages.jsonl", "-o", tmp_path / "m", code=3)
    assert "test.jsonl has no groups: no row has 'group'." in told and not (tmp_path / "m").exists()


def test_an_empty_text_column_is_refused_by_train_too(files, run, tmp_path):
    told = run("train", files / "true.jsonl", "-o", tmp_path / "m", "--text-column", "", code=2)
    assert told == "error: --text-column must be a name or a list of names; got ''.\n"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc, where not even root may write")
def test_an_output_that_cannot_be_written_is_refused_before_the_work(files, run):
    told = run("impute", "nothing.jsonl", "--groups", files / "pages.jsonl", "-o", "/proc/x.jsonl", code=3)
    assert told.startswith("error: /proc/x.jsonl cannot be written: ") and ".tmp" not in told


def test_texts_without_words_are_named_by_their_file(run, tmp_path):
    rows = lines(tmp_path / "rows.jsonl", [{"text": "", "group": "1"}, {"text": " ", "group": "1"}])
    pages = lines(tmp_path / "pages.jsonl", [{"group": "1", "labels": ["a"]}])
    for command, output in (("impute", "o.jsonl"), ("train", "model")):
        told = run(command, rows, "--groups", pages, "-o", tmp_path / output, code=3)
        assert f"the texts of {rows} have no words to learn from" in told


def test_the_summary_counts_one_and_many(run, tmp_path):
    rows = lines(tmp_path / "rows.jsonl", [{"text": "red apple", "group": "1"}])
    pages = lines(tmp_path / "pages.jsonl", [{"group": "1", "labels": ["a"]}])
    out = run("impute", rows, "--groups", pages, "-o", tmp_path / "o.jsonl")
    assert "1 row in 1 group of 1 row, with 1 label." in out and "1 row got 1 label, with" in out
    lines(rows, [{"text": f"{word} apple", "group": n} for n in ("1", "2") for word in ("red", "green", "old")])
    lines(pages, [{"group": n, "labels": ["a", "b"]} for n in ("1", "2", "3")])
    out = run("impute", rows, "--groups", pages, "-o", tmp_path / "o.jsonl")
    assert "6 rows in 3 groups of 3 rows each, with 2 labels." in out
    assert "1 group has no rows, so its labels went nowhere." in out


def test_options_of_groups_need_groups(files, run, tmp_path):
    for option, value in (("--assign", "auto"), ("--impute-rounds", 1)):
        told = run("train", files / "true.jsonl", "-o", tmp_path / "m", option, value, code=2)
        assert told == f"error: {option} needs --groups, the file with the labels of groups.\n"
    train = ("train", files / "rows.jsonl", "--groups", files / "pages.jsonl", "-o", tmp_path / "m")
    assert "--impute-rounds must be an integer >= 0; got -1." in run(*train, "--impute-rounds", -1, code=2)


def test_features_are_not_written_as_texts(toy, run):
    told = run("impute", toy / "toy.npz", "--groups", toy / "both.npz", "-o", toy / "out.jsonl", code=3)
    assert "has features and no texts; write it as npz, xmc, libsvm or store (--to), not as jsonl." in told
    assert not (toy / "out.jsonl").exists()


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_what_was_there_survives_a_kill(files, tmp_path, wait_until_at_work):
    target = tmp_path / "out.jsonl"
    target.write_text("the old result\n")
    options = ["--groups", str(files / "pages.jsonl"), "-o", str(target), "--rounds", "1000"]
    command = [sys.executable, "-m", "longtail", "impute", str(files / "rows.jsonl"), *options]
    for number in (signal.SIGKILL, signal.SIGTERM):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until_at_work(process)
        process.send_signal(number)
        process.communicate()
        assert process.returncode != 0 and target.read_text() == "the old result\n"
    assert [path.name for path in tmp_path.iterdir()] == ["out.jsonl"]
