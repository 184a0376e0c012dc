"""`longtail audit`, as a user meets it: sets by name, files, exit codes, and one sentence for what is wrong."""

import json

import numpy as np
import pytest
import scipy.sparse as sp
from safetensors.numpy import save_file

from longtail import audit
from longtail.bottleneck.dft import dft_matrix
from longtail.cli import main
from longtail.data import write
from longtail.data.synthetic.generate import make_topics

W = np.array([[1.0, 0], [0, 1], [-1, -1], [-1, 1]])
SETS = '{"labels": ["a", "b"]}\n{"labels": ["a", "b", "c"]}\n{"labels": []}\n{"labels": ["a"]}\n'


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("audit")
    data = make_topics(150, 6, random_state=1)[0]
    write(data.take(slice(0, 120)), folder / "train.jsonl")
    write(data.take(slice(120, 150)), folder / "test.csv")
    for method, name in (("ova", "ova"), ("tree", "tree")):
        with pytest.raises(SystemExit) as end:
            options = ["--method", method, "--calibrate", "0"]
            main(["train", str(folder / "train.jsonl"), "-o", str(folder / name), *options])
        assert end.value.code == 0
    (folder / "sets.jsonl").write_text(SETS)
    (folder / "good.jsonl").write_text('{"labels": ["a", "b"]}\n')
    np.savez(folder / "w.npz", weight=W, labels=np.array(list("abcd")))
    np.savez(folder / "bare.npz", weight=W)
    (folder / "names.txt").write_text("a\nb\nc\nd\n")
    (folder / "names.json").write_text('["a", "b",\n"c", "d"]')
    return folder


def test_a_model_on_data(files, run):
    out = run("audit", files / "ova", files / "test.csv", "--details")
    assert "ova on test" in out and "combinations of labels" in out and "OneVsAllClassifier: 6 labels" in out
    facts = json.loads(run("audit", files / "ova", files / "test.csv", "--json"))
    assert facts["audit"]["n_rows"] == 30 and facts["layer"]["n_labels"] == 6


def test_a_layer_in_a_file(files, run):
    short = run("audit", "--weights", files / "w.npz", files / "sets.jsonl")
    assert "What to do about it" in short and not any(word in short for word in ("argmaxable", "radius", "dimension"))
    out = run("audit", "--weights", files / "w.npz", files / "sets.jsonl", "--details")
    for words in (
        "2 of 4 combinations of labels (50.0%) can never be assigned",
        "a, b, c",
        "(no label)",
        "What can never be assigned",
        "a, b and c are never assigned together",
        "More numbers make more combinations possible",
        "Possible, but hardest",
        "radius",
        "By number of labels",
        "At most 8 of the 16 sets of 4 labels",
    ):
        assert words in out, (words, out)
    first = run("audit", "--weights", files / "w.npz", files / "sets.jsonl", "--limit", 1)
    assert "1 more; --limit lists them." in first
    named = run("audit", "--weights", files / "bare.npz", files / "sets.jsonl", "--labels-file", files / "names.txt")
    assert "a, b, c" in named
    save_file({"x.weight": W, "y.weight": W}, files / "two.safetensors")
    assert run("audit", "--weights", files / "two.safetensors", "--array", "x.weight")
    sp.save_npz(files / "Ymatrix.npz", sp.csr_array(np.eye(4, dtype=np.float32)))
    out = run("audit", "--weights", files / "bare.npz", files / "Ymatrix.npz")
    assert "bare.npz on Ymatrix" in out and "2 of 4 combinations" in out


def test_what_is_taken_for_granted_is_said(files, run):
    np.savez(files / "three.npz", weight=W[:3], bias=np.zeros(3))
    np.savez(files / "named.npz", weight=W[:3], labels=np.array(list("abc")))
    in_order, no_bias = (
        "in order, from 'a' to 'c': if that is not their order, the verdicts are wrong; --labels-file",
        "No bias was found",
    )
    for weights, said in (("three.npz", (True, False)), ("named.npz", (False, True))):
        args = ("audit", "--weights", files / weights, files / "sets.jsonl")
        out = " ".join(run(*args, "--report", files / "assumed.html").split())
        assumed = " ".join(json.loads(run(*args, "--json")).get("assumed", []))
        page = (files / "assumed.html").read_text("utf-8").replace("&#39;", "'")
        for text in (out, assumed, page):
            assert (in_order in text, no_bias in text) == said, text
        assert "a, b and c are never assigned together" in out  # by name, where the rows of weights have none


def test_label_sets_without_texts_in_a_table(files, run):
    (files / "sets.csv").write_text("labels\na;b\na;b;c\n\na\n")
    (files / "sets.tsv").write_text("tags\tnote\na|b\tx\na|b|c\ty\n\tz\na\t\n")
    plain = run("audit", "--weights", files / "w.npz", files / "sets.csv")
    assert "1 of 3 combinations" in plain and "a, b and c are never assigned together" in plain
    options = ("--labels-column", "tags", "--label-separator", "|")
    assert "2 of 4 combinations" in run("audit", "--weights", files / "w.npz", files / "sets.tsv", *options)
    assert "no row has 'labels'" in run("audit", "--weights", files / "w.npz", files / "sets.tsv", code=3)


def test_a_proof_of_many_labels_names_them(files, run):
    rng = np.random.default_rng(0)
    names = [f"label{i:02d}" for i in range(40)]
    np.savez(files / "wide.npz", weight=rng.standard_normal((40, 9)), labels=np.array(names))
    (files / "many.jsonl").write_text(json.dumps({"labels": names[:6]}) + "\n")
    args = ("audit", "--weights", files / "wide.npz", files / "many.jsonl", "--report", files / "many.html")
    out = " ".join(run(*args).split())
    conflict = json.loads(run(*args[:4], "--json"))["audit"]["impossible"][0]["conflict"]
    n = len(conflict["on"]) + len(conflict["off"])
    assert n > 6 and f"the scores of {n} labels contradict each other: on {conflict['on'][0]}" in out
    page = (files / "many.html").read_text("utf-8")
    assert f"off {', '.join(conflict['off'])}" in page


def test_without_data(files, run):
    out = run("audit", "--weights", files / "w.npz")
    assert "At most 8 of the 16 sets of 4 labels can come out of 2 dimensions" in out
    assert "All sets of 6 labels" in run("audit", files / "ova")
    np.savez(files / "dft.npz", dft_matrix(31, 3))
    assert "Every set of at most 3 of its labels can come out" in run(
        "audit", "--weights", files / "dft.npz", "--details"
    )


def test_rankings(files, run):
    vectors = np.array([[0.0, 3], [3, 0], [-3, -3], [0.1, 0.1]])
    np.savez(files / "classes.npz", weight=vectors, labels=np.array(list("abcd")))
    out = run("audit", "--weights", files / "classes.npz", "--classes")
    assert "1 of 4 labels (25.0%) can never be the first suggestion" in out
    out = run("audit", "--weights", files / "classes.npz", files / "sets.jsonl", "--top-k", 2, "--details")
    assert (
        "The combination of labels can be the first 2 suggestions." in out
        and "3 rows have more or fewer than 2 labels" in out
    )


def test_certificates_and_the_report(files, run):
    out = run(
        "audit",
        "--weights",
        files / "w.npz",
        files / "sets.jsonl",
        "--certificates",
        files / "c.npz",
        "--report",
        files / "r.html",
    )
    assert out
    kept = audit.load_certificates(files / "c.npz")
    assert [p.reachable for p in kept.check()] == [v != "not argmaxable" for v in kept.verdicts]
    page = (files / "r.html").read_text("utf-8")
    for words in ("What can never be assigned", "<svg", "a, b, c", "longtail audit --weights", "eps-argmaxable"):
        assert words in page


def test_the_exit_code_for_scripts(files, run):
    assert "Not every combination of labels is proved to be possible" in run(
        "audit", "--weights", files / "w.npz", files / "sets.jsonl", "--fail-if-any", code=7
    )
    run("audit", "--weights", files / "w.npz", files / "good.jsonl", "--fail-if-any")
    (files / "unknown.jsonl").write_text('{"labels": ["a", "z"]}\n{"labels": ["a"]}\n')
    run("audit", "--weights", files / "w.npz", files / "unknown.jsonl", "--fail-if-any", code=7)
    out = run("audit", "--weights", files / "w.npz", files / "unknown.jsonl")
    assert "1 label of the data is never given by the model (z): 1 row has it, in 1 more combination" in " ".join(
        out.split()
    )
    assert "could not be decided" in run("audit", "--weights", files / "w.npz", files / "good.jsonl", "--seconds", 0)
    run("audit", "--weights", files / "w.npz", files / "good.jsonl", "--seconds", 0, "--fail-if-any", code=7)


def test_weights_that_cannot_be_used(files, run):
    nan = np.where(W == 1, np.nan, W)
    np.savez(files / "nan.npz", weight=nan)
    np.savez(files / "inf.npz", weight=W, bias=np.array([0, np.inf, 0, 0]))
    np.savez(files / "zero.npz", weight=W * [[1], [0], [1], [1]], labels=np.array(list("abcd")))
    np.savez(files / "flat.npz", weight=np.ones(3))
    np.savez(files / "several.npz", a=W, b=W)
    np.savez(files / "objects.npz", weight=np.array([[None]], dtype=object))
    np.savez(files / "short.npz", weight=W, bias=np.ones(3))
    np.savez(files / "names.npz", weight=W, labels=np.array(list("abc")))
    np.savez(files / "text.npz", weight=np.array([["a"]]))
    whole = (files / "w.npz").read_bytes()
    (files / "cut.npz").write_bytes(whole[: len(whole) // 2])
    (files / "cut.safetensors").write_bytes(b"\x10\x00")
    (files / "w.bin").write_bytes(b"1")
    for name, sentence in [
        ("nan.npz", "W must be finite; got nan in row 0, column 0."),
        ("inf.npz", "bias must be finite; got inf in row 1."),
        ("zero.npz", "row 1 is one, so this label scores 0 whatever the input."),
        ("flat.npz", "must hold one array of weights with 2 dimensions, named 'weight'; it has none."),
        ("several.npz", "named 'weight'; it has ['a', 'b']."),
        ("objects.npz", "holds pickled objects, which are not loaded: they can run code."),
        ("short.npz", "bias must have one number per label, 4; got 3."),
        ("names.npz", "names 3 labels; the weights have 4 rows."),
        ("text.npz", "W must hold numbers"),
        ("cut.npz", "is not a readable .npz file."),
        ("cut.safetensors", "is not a readable safetensors file."),
        ("w.bin", "Save it from torch with safetensors.torch.save_file(model.state_dict(), 'w.safetensors')."),
        ("none.npz", "none.npz does not exist."),
    ]:
        err = run("audit", "--weights", files / name, files / "sets.jsonl", code=3)
        assert err.count("\n") == 1 and err.startswith("error: ") and sentence in err, (name, err)


@pytest.mark.parametrize(
    ("args", "code", "sentence"),
    [
        ([], 2, "give a MODEL, or a file with --weights."),
        (["ova", "test.csv", "more"], 2, "audit takes MODEL and DATA; got"),
        (["--weights", "w.npz", "sets.jsonl", "more"], 2, "audit takes --weights and at most DATA"),
        (["tree", "test.csv"], 4, "a label tree has no single output layer"),
        (["nothing", "test.csv"], 4, "nothing"),
        (["w.npz", "sets.jsonl"], 2, "w.npz is no folder of a model; a file of weights is given with --weights w.npz."),
        (
            ["--weights", "bare.npz", "sets.jsonl", "--labels-file", "names.json"],
            3,
            "names.json is a JSON list; a list",
        ),
        (["--weights", "bare.npz", "sets.jsonl"], 3, "the data has 3 labels and the weights have 4 rows; name"),
        (["--weights", "w.npz", "none.jsonl"], 3, "none.jsonl does not exist."),
        (["--weights", "w.npz", "--fail-if-any"], 2, "--fail-if-any can only be used with DATA or --classes."),
        (["ova", "--array", "x"], 2, "--array can only be used with --weights."),
        (["--weights", "w.npz", "--rows", "5"], 2, "--rows can only be used with DATA."),
        (["--weights", "w.npz", "sets.jsonl", "--rows", "0"], 2, "--rows must be an integer >= 1; got 0."),
        (["--weights", "w.npz", "sets.jsonl", "--box", "-1"], 2, "--box must be a number above 0 and at most 1e+100"),
        (["--weights", "w.npz", "sets.jsonl", "--eps", "-1"], 2, "--eps must be a number > 0; got -1.0."),
        (["--weights", "w.npz", "sets.jsonl", "--limit", "-1"], 2, "--limit must be an integer >= 0; got -1."),
        (["--weights", "w.npz", "sets.jsonl", "--jobs", "0"], 2, "--jobs must be"),
        (["--weights", "w.npz", "sets.jsonl", "--top-k", "4"], 2, "--top-k must be"),
        (["--weights", "w.npz", "sets.jsonl", "--classes"], 2, "--classes takes no DATA"),
        (["--weights", "w.npz", "sets.jsonl", "--certificates", "c.txt"], 2, "must be written to an .npz file"),
        (["--weights", "w.npz", "sets.jsonl", "--radius", "big"], 2, "'big' is not one of 'exact', 'bound'"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(files, run, monkeypatch, args, code, sentence):
    monkeypatch.chdir(files)
    err = run("audit", *args, code=code)
    assert err.count("\n") == 1 and sentence in err, err


def test_layers_of_lower_rank(files, run):
    np.savez(files / "rank.npz", weight=np.column_stack([W, W[:, :1] + W[:, 1:]]), labels=np.array(list("abcd")))
    assert "2 of 4 combinations" in run("audit", "--weights", files / "rank.npz", files / "sets.jsonl")
    out = " ".join(run("audit", "--weights", files / "rank.npz").split())
    assert "Here it is less: some rows of the weights depend on each other" in out


def test_an_audit_shows_the_names_of_a_vocabulary(files, run):
    lines = [
        f'{{"id": "http://ex.org/{i}", "label": {{"en": "name {i}", "de": "Wort {i}"}}, "notation": "topic{i}"}}'
        for i in range(6)
    ]
    (files / "topics.voc.jsonl").write_text("\n".join(lines))
    (files / "strange.jsonl").write_text('{"labels": ["topic0", "topic1", "z"]}\n{"labels": ["topic0"]}\n')
    vocabulary = ("--vocabulary", files / "topics.voc.jsonl")
    facts = json.loads(run("audit", files / "ova", files / "test.csv", *vocabulary, "--json"))
    assert facts["audit"]["hardest"][0]["label_names"][0].startswith("name ") and "unknown" in facts
    assert facts["unknown"] is None  # notations in model and data are the concepts of the vocabulary
    assert "Wort " in run("audit", files / "ova", files / "test.csv", *vocabulary, "--lang", "de", "--details")
    run("train", files / "train.jsonl", "-o", files / "named", "--method", "ova", "--calibrate", 0, *vocabulary)
    assert "name " in run("audit", files / "named", files / "test.csv", "--details")
    letters = "".join(f'{{"id": "l{n}", "label": {{"en": "letter {n}"}}, "notation": "{n}"}}\n' for n in "abcd")
    (files / "letters.jsonl").write_text(letters)
    out = run("audit", "--weights", files / "w.npz", files / "sets.jsonl", "--vocabulary", files / "letters.jsonl")
    assert "letter a, letter b and letter c are never assigned together" in " ".join(out.split())
    assert "--lang" in run("audit", files / "ova", files / "test.csv", "--lang", "de", code=2)
