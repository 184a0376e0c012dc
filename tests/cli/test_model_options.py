"""Options of `train` and `plan` are the constructors' own parameters, with their defaults; the help is in sections."""

import inspect
import json
import subprocess
import sys

import click
import pytest

from longtail.cli.model_options import METHODS, SECTIONS, WITHOUT_OPTION, make_tagger, offered
from longtail.cli.option_help import HELP, MEANING_OF_NONE
from longtail.cli.plan import plan
from longtail.cli.signatures import constructor_parameters
from longtail.cli.train import train
from longtail.errors import ParameterError
from longtail.pipeline import METHODS as ESTIMATORS
from longtail.pipeline import Tagger
from longtail.text import BeginningFeatures, TfidfFeatures

CLASSES = {"tagger": Tagger, **ESTIMATORS, "texts": TfidfFeatures, "beginning": BeginningFeatures}
OF_TEXTS = {"texts": ("text", "TfidfFeatures"), "beginning": ("text", "BeginningFeatures")}
FOLDERS = {"tagger": ("pipeline", "Tagger"), **METHODS, **OF_TEXTS}


def options_of(*args, command=train):
    """Return the values of all options for a command line."""
    given = ["rows.jsonl", *(["-o", "model"] if command is train else []), *map(str, args)]
    with command.make_context(command.name, given) as context:
        return context.params


def test_the_methods_are_those_of_the_library():
    assert {name: kind.__name__ for name, kind in ESTIMATORS.items()} == {m: name for m, (_, name) in METHODS.items()}


@pytest.mark.parametrize("section", CLASSES)
def test_what_is_read_from_the_source_is_the_signature(section):
    real = list(inspect.signature(CLASSES[section]).parameters.values())
    read = constructor_parameters(*FOLDERS[section])
    assert [(p.name, p.default) for p in read] == [(p.name, p.default) for p in real]


@pytest.mark.parametrize("section", CLASSES)
def test_every_parameter_has_an_option_or_is_set_elsewhere(section):
    has = {item.parameter.name for item in offered() if item.section == section}
    assert has | set(WITHOUT_OPTION[section]) == {p.name for p in constructor_parameters(*FOLDERS[section])}


def test_every_option_has_a_help_text_and_every_help_text_an_option():
    keys = {f"{item.section}.{item.parameter.name}": item.parameter for item in offered()}
    names = {parameter.name for parameter in keys.values()}
    assert not [key for key, p in keys.items() if key not in HELP and p.name not in HELP]
    assert not [key for key in (*HELP, *MEANING_OF_NONE) if key not in keys and key not in names]
    unsaid = {
        key
        for key, p in keys.items()
        if p.default is None and key not in MEANING_OF_NONE and p.name not in MEANING_OF_NONE
    }
    checkpoints = {"dft.checkpoint", "prime.checkpoint", "hybrid.checkpoint"}
    assert unsaid == {*checkpoints, "texts.stop_words"}  # none of these if not given


def test_the_help_states_the_defaults_of_the_signatures(run):
    out = " ".join(run("train", "--help").split())
    assert "[default: 1, less where there are many short rows]" in out and "Drop smaller weights. [default: 0.1]" in out
    assert "Drop smaller weights. [default: 0.01]" in out and "at most. [default: 50]" in out


@pytest.mark.parametrize("command", ["train", "plan"])
def test_the_help_is_in_sections_and_on_one_method_if_asked(run, command):
    def headings(*args):
        lines = run(command, *args).splitlines()
        return [line.removesuffix(":") for line in lines if line.endswith(":") and not line.startswith(" ")]

    assert headings("--help") == list(SECTIONS.values())
    shown = ["Data", "Output", "Tagger", SECTIONS["prime"]]
    assert headings("--method", "prime", "--help") == headings("--help", "--method=prime") == shown
    assert headings("-h", "--method", "ova") == [*shown[:3], SECTIONS["ova"], SECTIONS["texts"]]
    assert headings("--method", "nothing", "--help") == list(SECTIONS.values())
    assert "--encoder" not in run(command, "--method", "tree", "--help")


def test_the_help_of_train_loads_nothing_heavy():
    code = "from longtail.cli import main\ntry: main(['train', '--help'])\nexcept SystemExit: pass"
    program = f"import sys\n{code}\nprint(*sys.modules)"
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    loaded = {name.split(".")[0] for name in out.split("\n")[-2].split()}
    assert not {"torch", "numba", "scipy", "sklearn", "numpy", "rich"} & loaded


def test_nothing_given_is_the_tagger_with_its_defaults():
    for method, kind in ESTIMATORS.items():
        made = make_tagger(options_of("--method", method, command=plan))
        assert made.model.get_params() == kind().get_params() and made.calibrate == Tagger().calibrate
        assert made.random_state == 0 and made.n_jobs is None


@pytest.mark.parametrize(
    ("method", "args", "expected"),
    [
        ("tree", "--trees 3 -C 0.5 --beam 4 --overlap auto", {"n_trees": 3, "C": 0.5, "beam": 4, "overlap": "auto"}),
        ("tree", "--overlap 2 --overlap-rounds 0 --no-normalize", {"overlap": 2, "rounds": 0, "normalize": False}),
        (
            "tree",
            "--negatives tfn --balanced --link sigmoid",
            {"negatives": "tfn", "balanced": True, "link": "sigmoid"},
        ),
        ("tree", "--overlap 3 --balance none", {"overlap": 3, "balance": None}),
        ("tree", "--overlap 3 --balance 1.5", {"overlap": 3, "balance": 1.5}),
        ("ova", "--C 2 --tol 0.01 --normalize", {"C": 2.0, "tol": 0.01, "normalize": True}),
        ("dft", "--k 5 --hidden 512,256 --order none", {"k": 5, "hidden": (512, 256), "order": None}),
        ("dft", "--network linear --hidden 64 --valid 0", {"encoder": "linear", "hidden": 64, "valid": 0.0}),
        ("prime", "--encoder none --margin 0.1,0.3 --lr 0.1", {"encoder": None, "margin": (0.1, 0.3), "lr": 0.1}),
        ("prime", "--margin 0.3 --no-centroids --tree", {"margin": 0.3, "centroids": False, "tree": True}),
        ("prime", "--loss-weights 1,1,0 --no-warm-start", {"loss_weights": (1.0, 1.0, 0.0), "warm_start": False}),
    ],
)
def test_what_is_given_reaches_the_model(method, args, expected):
    model = make_tagger(options_of("--method", method, *args.split())).model
    assert {name: getattr(model, name) for name in expected} == expected
    others = {name: value for name, value in model.get_params().items() if name not in expected}
    assert others == {name: value for name, value in type(model)().get_params().items() if name not in expected}


def test_the_published_method_is_an_option():
    published = ESTIMATORS["tree"].published
    made = [make_tagger(options_of("--published", *args)).model for args in ((), ("--overlap", 3, "--beam", 4))]
    assert made[0].get_params() == published().get_params()
    assert made[1].get_params() == published(overlap=3, beam=4).get_params()


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        ("--published --fast", "--fast and --published are settings of different trees; give one of them."),
        ("--published --method ova", "--published is not an option of the method 'ova'."),
        ("--fast --method ova", "--fast is not an option of the method 'ova'."),
        ("--balance wide --overlap 2", "--balance must be a number >= 1 or none; got 'wide'."),
        ("--balance 0.5 --overlap 2", "--balance must be a number >= 1; got 0.5."),
    ],
)
def test_presets_and_balance_that_cannot_be_meant_are_refused(args, sentence, run, tmp_path):
    (tmp_path / "rows.jsonl").write_text('{"text": "red apple", "labels": ["c"]}\n')
    err = run("train", tmp_path / "rows.jsonl", "-o", tmp_path / "model", *args.split(), code=2)
    assert err == f"error: {sentence}\n"
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        ("--split-positives", "--split-positives has no effect without --overlap."),
        ("--balance none --keep-leaf", "--keep-leaf has no effect without --overlap."),
        ("--method dft --head bottleneck --spacing learned", "--spacing has no effect with --head bottleneck."),
        ("--method dft --head bottleneck --order none", "--order has no effect with --head bottleneck."),
        ("--method dft --head bottleneck --k 3", "--k has no effect with --head bottleneck."),
        ("--method dft --network linear --dropout 0.1", "--dropout has no effect with --network linear."),
        ("--method dft --valid 0 --patience 3", "--patience has no effect with --valid 0."),
        ("--method prime --fusion 0.5", "--fusion has no effect without --classifier."),
        ("--method prime --preset ngame --momentum 0.5", "--momentum has no effect without --centroids."),
        ("--method prime --patience 3", "--patience has no effect without --validation."),
        ("--method prime --n-free 0 --n-private 9", "--n-private has no effect with --n-free 0."),
    ],
)
def test_an_option_without_effect_is_refused(args, sentence, run, tmp_path):
    (tmp_path / "rows.jsonl").write_text('{"text": "red apple", "labels": ["c"]}\n')
    assert run("plan", tmp_path / "rows.jsonl", *args.split(), code=2) == f"error: {sentence}\n"


def test_moving_labels_without_overlap_has_its_options(run):
    model = make_tagger(options_of("--overlap-rounds", 1, "--balance", "none", "--slot-rows", 2)).model
    assert (model.overlap, model.rounds, model.balance, model.slot_rows) == (1, 1, None, 2)
    assert make_tagger(options_of("--overlap", "auto", "--merge", "mean")).model.merge == "mean"


@pytest.mark.parametrize("command", ["train", "plan"])
def test_options_about_words_are_refused_for_data_without_texts(command, run, tmp_path):
    (tmp_path / "rows.txt").write_text("2 3 2\n0 0:1 2:1\n1 1:1\n")
    to = ["-o", tmp_path / "model"] if command == "train" else []
    err = run(command, tmp_path / "rows.txt", *to, "--min-df", 2, "--ngrams", 2, code=2)
    assert err == f"error: --ngrams has no effect: {tmp_path}/rows.txt has features and no texts.\n"


def test_what_is_given_reaches_the_features_and_the_tagger():
    args = "--ngrams 2 --min-df 0.1 --max-df 30 --stop-words the,a --no-lowercase --calibrate 0 --seed 7 --jobs 2"
    tagger = make_tagger(options_of(*args.split()))
    features = tagger.features
    assert (features.ngrams, features.min_df, features.max_df) == ((1, 2), 0.1, 30)
    assert features.stop_words == ("the", "a") and features.lowercase is False
    assert (tagger.calibrate, tagger.random_state, tagger.n_jobs) == (0.0, 7, 2)
    assert make_tagger(options_of("--analyzer", "char_wb", "--ngrams", "3,5")).features.ngrams == (3, 5)
    german = make_tagger(options_of("--analyzer", "snowball:german", "--stop-words", "german")).features
    assert (german.analyzer, german.stop_words) == ("snowball:german", "german")
    assert make_tagger(options_of("--stop-words", "german,old")).features.stop_words == ("german", "old")
    assert make_tagger(options_of("--stop-words", "old")).features.stop_words == ("old",)


@pytest.mark.parametrize("method", ["tree", "ova", "dft"])
def test_words_at_the_beginning_of_texts_are_counted_as_the_options_about_words_say(method):
    def features(*args):
        return make_tagger(options_of("--method", method, *args)).features

    assert isinstance(features(), TfidfFeatures) and isinstance(features("--beginning", 0), TfidfFeatures)
    made = features("--beginning", "auto", "--min-df", 2)
    assert (made.beginning, made.tfidf.ngrams, made.of_beginning.ngrams) == ("auto", (1, 1), (1, 2))
    assert (made.tfidf.min_df, made.of_beginning.min_df, made.of_beginning.ngram_weight) == (2, 2, 0.7)
    assert features("--beginning", 20, "--ngram-weight", 0.5).of_beginning.ngram_weight == 0.5
    assert features("--beginning", 20, "--ngrams", 3).of_beginning.ngrams == (1, 3)
    letters = features("--beginning", 20, "--analyzer", "char_wb", "--ngrams", "3,5")
    assert letters.beginning == 20 and letters.of_beginning.get_params() == letters.tfidf.get_params()


@pytest.mark.parametrize("option", ["--ngram-weight", "--ngram-min-df"])
def test_options_of_longer_runs_of_words_are_refused_where_there_are_none(option):
    with pytest.raises(ParameterError, match=f"{option} has no effect on words alone; --ngrams 2 takes pairs"):
        make_tagger(options_of(option, 1))
    for more in (["--ngrams", 2], ["--beginning", "auto"]):
        make_tagger(options_of(option, 1, *more))


def test_the_hybrid_has_beginnings_of_its_own():
    made = make_tagger(options_of("--method", "hybrid", "--beginning", 0))
    assert made.features is None and made.model.beginning == 0


def test_the_help_says_where_beginnings_count(run):
    shown = {method: " ".join(run("train", "--method", method, "--help").split()) for method in METHODS}
    for method in ("tree", "ova", "dft"):
        assert "--beginning N|auto Count so many words" in shown[method] and "or auto. [default: 0]" in shown[method]
    assert "0 for none. [default: auto]" in shown["hybrid"] and "--beginning" not in shown["prime"]


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        ("--beginning some", "--beginning must be a whole number >= 0 or 'auto'; got 'some'."),
        ("--beginning -1", "--beginning must be a whole number >= 0 or 'auto'; got '-1'."),
        ("--method prime --beginning 5", "--beginning is not an option of the method 'prime'."),
        (
            "--method auto --beginning 5",
            "--beginning is an option of some methods; with --method auto give none of them.",
        ),
        ("--method hybrid --experts names --beginning 5", "--beginning has no effect without --experts tree."),
    ],
)
def test_beginnings_are_refused_where_they_cannot_be_meant(args, sentence, run, tmp_path):
    (tmp_path / "rows.jsonl").write_text('{"text": "red apple", "labels": ["c"]}\n')
    assert run("plan", tmp_path / "rows.jsonl", *args.split(), code=2) == f"error: {sentence}\n"


def test_beginnings_are_refused_for_data_without_texts(run, tmp_path):
    (tmp_path / "rows.txt").write_text("2 3 2\n0 0:1 2:1\n1 1:1\n")
    err = run("train", tmp_path / "rows.txt", "-o", tmp_path / "model", "--beginning", "auto", code=2)
    assert err == f"error: --beginning has no effect: {tmp_path}/rows.txt has features and no texts.\n"


def test_a_tree_on_beginnings_is_trained_and_explains_itself(run, tmp_path):
    texts = ["red apple pie, and so on", "old car wheel, and so on"] * 30
    rows = [json.dumps({"text": text, "labels": [text.split()[1]]}) for text in texts]
    (tmp_path / "rows.jsonl").write_text("\n".join(rows))
    run("train", tmp_path / "rows.jsonl", "-o", tmp_path / "model", "--beginning", 2)
    out = run("explain", tmp_path / "model", "--text", "red apple")
    assert "beginning: red" in out
    assert "beginning-features.v1" in run("inspect", tmp_path / "model", "--details")


@pytest.mark.parametrize("item", offered(), ids=lambda item: f"{item.section}.{item.parameter.name}")
def test_an_option_of_another_method_is_refused_by_name(item, run, tmp_path):
    own = {other.section for other in offered() if other.option is item.option}
    of_texts = bool(own & {"texts", "beginning"})
    method = next((m for m in METHODS if m not in own and not of_texts), "prime")
    if item.section == "tagger" or own >= set(METHODS):
        return
    kind = item.option.type
    value = kind.choices[0] if isinstance(kind, click.Choice) else "1"
    option = max(item.option.opts, key=len)
    (tmp_path / "rows.jsonl").write_text('{"text": "a b", "labels": ["c"]}\n')
    args = [option] if item.option.is_flag else [option, value]
    err = run("plan", tmp_path / "rows.jsonl", "--method", method, *args, code=2)
    assert err == f"error: {option} is not an option of the method {method!r}.\n"


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        ("--overlap-rounds -1 --overlap 2", "--overlap-rounds must be an integer >= 0; got -1."),
        ("--cost-sensitive --loss logistic", "--cost-sensitive needs --loss squared_hinge; got 'logistic'."),
        (
            "--analyzer snowball:klingon",
            "--analyzer must be 'word', 'char_wb' or 'snowball:LANGUAGE' (of danish, dutch, english, finnish, french, "
            "german, hungarian, italian, norwegian, portuguese, romanian, russian, spanish, swedish, turkish); got "
            "'snowball:klingon'.",
        ),
        ("--stop-words a --analyzer char_wb", "--stop-words can only be used with --analyzer word."),
        ("--max-df 2 --min-df 3", "--max-df must allow at least as many rows as --min-df; got 2 and 3 for 20 rows."),
        ("--min-df 15 --max-df 19", "no term is in at least 15 and at most 19 rows; lower --min-df or raise --max-df."),
        ("--branching 1", "--branching must be an integer >= 2; got 1."),
    ],
)
def test_errors_name_the_new_options_too(args, sentence, run, tmp_path):
    rows = "".join(f'{{"text": "word{i} both", "labels": ["c{i % 3}"]}}\n' for i in range(20))
    (tmp_path / "rows.jsonl").write_text(rows)
    code = 3 if sentence.startswith("no term") else 2
    err = run("train", tmp_path / "rows.jsonl", "-o", tmp_path / "model", "--calibrate", 0, *args.split(), code=code)
    assert err == f"error: {sentence}\n"
