"""Models are the same bytes on every engine, and after a training that was broken off and begun again."""

import json

import numpy as np
import pytest
import scipy.sparse as sp
from other_process import OtherProcess

from longtail import Dataset, Eagle, LabelTreeClassifier, OneVsAllClassifier, Tagger, TfidfFeatures
from longtail.audit import argmaxable, winnable
from longtail.cli import main
from longtail.data.synthetic.generate import make_extreme, make_topics
from longtail.engine import Checkpoint, LocalEngine, running_on
from longtail.errors import DataError
from longtail.pipeline import Scoring, evaluate_tagger, on_engine
from longtail.tree import train, train_level

DATA = make_extreme(1500, 300, 900)
SETTINGS = [
    {"max_leaf": 10, "branching": 4},
    {"max_leaf": 300},
    {"n_trees": 2, "max_leaf": 40, "negatives": "man"},
    {"overlap": 2, "split_positives": True, "max_leaf": 20},
    {"cost_sensitive": True, "max_leaf": 20, "negatives": "tfn"},
    {"loss": "logistic", "max_leaf": 40, "balanced": True, "branching": 2},
]


def arrays_of(model):
    return {name: array.tobytes() for name, array in model.to_part().arrays.items()}


@pytest.fixture
def small_tasks(monkeypatch):
    """Make tasks so small that every kind occurs: several chunks, one, and some children of one."""
    monkeypatch.setattr(train_level, "LEAST_COST", 5e3)
    monkeypatch.setattr(train, "ROWS_OF_A_SEARCH", 400)


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda s: "-".join(map(str, s)))
def test_a_label_tree_is_the_same_on_every_engine(settings, small_tasks):
    models = [
        LabelTreeClassifier(random_state=3, n_jobs=1, **settings).fit(DATA.X, DATA.Y, engine=engine)
        for engine in (None, LocalEngine(3), OtherProcess())
    ]
    first, *others = map(arrays_of, models)
    assert all(first == other for other in others)


def test_the_size_of_tasks_changes_nothing(small_tasks, monkeypatch):
    small = LabelTreeClassifier(max_leaf=20).fit(DATA.X, DATA.Y)
    monkeypatch.undo()
    assert arrays_of(small) == arrays_of(LabelTreeClassifier(max_leaf=20).fit(DATA.X, DATA.Y))


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
def test_one_vs_all_is_the_same_on_every_engine(loss):
    models = [
        OneVsAllClassifier(loss=loss, n_jobs=1).fit(DATA.X, DATA.Y, engine=engine)
        for engine in (None, LocalEngine(2), OtherProcess())
    ]
    first, *others = map(arrays_of, models)
    assert all(first == other for other in others)


@pytest.mark.parametrize("model", [LabelTreeClassifier(max_leaf=20, n_trees=2), OneVsAllClassifier()])
def test_a_training_that_was_broken_off_goes_on_to_the_same_bytes(model, tmp_path, small_tasks):
    whole = OtherProcess()
    expected = arrays_of(model.fit(DATA.X, DATA.Y, engine=whole))
    for part in (0.3, 0.5):
        broken = OtherProcess(Checkpoint(tmp_path / "kept"), fails_after=int(part * whole.done))
        with pytest.raises(KeyboardInterrupt):
            model.fit(DATA.X, DATA.Y, engine=broken)
    again = OtherProcess(Checkpoint(tmp_path / "kept"))
    assert arrays_of(model.fit(DATA.X, DATA.Y, engine=again)) == expected
    assert again.done < 0.3 * whole.done
    threads = LocalEngine(2, checkpoint=Checkpoint(tmp_path / "kept"))  # another engine takes up the same results
    assert arrays_of(model.fit(DATA.X, DATA.Y, engine=threads)) == expected
    assert threads.checkpoint.taken > 0.5 * whole.done


def test_progress_counts_what_another_engine_finishes(small_tasks):
    seen = []
    model = LabelTreeClassifier(max_leaf=20)
    model.fit(DATA.X, DATA.Y, engine=OtherProcess(), progress=lambda done, total: seen.append((done, total)))
    assert seen[-1][0] == seen[-1][1] and [done for done, _ in seen] == sorted({done for done, _ in seen})


def test_a_tagger_trains_on_an_engine(tmp_path):
    data = make_topics(400, 20)[0]
    taggers = [Tagger(n_jobs=1).fit_dataset(data, engine=engine) for engine in (None, OtherProcess())]
    folders = [tagger.save(tmp_path / str(i)) for i, tagger in enumerate(taggers)]
    names = [sorted(file.name for file in folder.iterdir()) for folder in folders]
    assert names[0] == names[1]
    assert all((folders[0] / name).read_bytes() == (folders[1] / name).read_bytes() for name in names[0])
    assert np.array_equal(*(tagger.predict_topk(data.texts[:20]).ids for tagger in taggers))


def test_train_resumes_from_a_checkpoint_and_removes_it(run, capfd, tmp_path, monkeypatch):
    data = tmp_path / "rows.jsonl"
    topics = make_topics(400, 20)[0]
    names = [list(topics.labels_of(row)) for row in range(topics.n_rows)]
    rows = [{"text": text, "labels": labels} for text, labels in zip(topics.texts, names, strict=True)]
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    run("train", data, "-o", tmp_path / "plain")
    add, left = Checkpoint.add, [3]

    def add_some(self, key, result):
        if left[0] == 0:
            raise KeyboardInterrupt
        left[0] -= 1
        add(self, key, result)

    monkeypatch.setattr(Checkpoint, "add", add_some)
    kept = ("--checkpoint", tmp_path / "kept", "--jobs", 1)
    told = run("train", data, "-o", tmp_path / "model", *kept, code=130)
    assert "kept keeps the work that was finished; the same command goes on from there." in told
    monkeypatch.undo()
    with pytest.raises(SystemExit):
        main(list(map(str, ("train", data, "-o", tmp_path / "model", *kept))))
    assert f"took up 3 finished tasks of {tmp_path / 'kept'}." in capfd.readouterr().err
    assert not (tmp_path / "kept").exists()
    for file in (tmp_path / "plain").iterdir():
        assert file.read_bytes() == (tmp_path / "model" / file.name).read_bytes()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    told = run("train", data, "-o", tmp_path / "model", "--checkpoint", tmp_path / "mine", code=4)
    assert "mine is a folder of other files" in told


@pytest.mark.parametrize("settings", [{}, {"assign": "argmax", "negatives": False, "n_iter": 3}, {"assign": "soft"}])
def test_label_vectors_are_the_same_on_every_engine(settings):
    pages = make_topics(600, 15)[0]
    X = TfidfFeatures().fit_transform(pages.texts)
    groups = sp.csr_array((np.ones(600), (np.arange(600), np.arange(600) // 5)), shape=(600, 120))
    found = []
    for engine in (None, OtherProcess()):
        with running_on(engine):
            eagle = Eagle(n_jobs=1, **settings).fit(X, groups, groups.T @ pages.Y)
        found.append([*vars(eagle.label_vectors_).values(), *vars(eagle.confidence_).values()])
    arrays = [[part for part in one if isinstance(part, np.ndarray)] for one in found]
    assert all(mine.tobytes() == theirs.tobytes() for mine, theirs in zip(*arrays, strict=True))


@pytest.mark.parametrize("method", ["tree", "ova"])
def test_predictions_and_evaluations_are_the_same_on_every_engine(method, monkeypatch):
    monkeypatch.setattr(on_engine, "ROWS_OF_A_TASK", 70)
    data = make_topics(400, 20)[0]
    tagger = Tagger(method).fit_dataset(data)
    engine = OtherProcess()
    with running_on(engine):
        there = evaluate_tagger(tagger, data, n_bootstrap=20, deny=["topic03"])
    here = evaluate_tagger(tagger, data, n_bootstrap=20, deny=["topic03"])
    for facts in (there, here):
        del facts["timings"]
    assert there == here and engine.done == 6
    top = Scoring(tagger, engine).predict_topk(data, 3, allow=[1, 2, 5])
    own = tagger.predict_topk(data.texts, 3, allow=tagger.labels_[1:3] + tagger.labels_[5:6])
    assert top.ids.tobytes() == own.ids.tobytes() and top.scores.tobytes() == own.scores.tobytes()


def test_predictions_of_rows_of_features_are_the_same(monkeypatch):
    monkeypatch.setattr(on_engine, "ROWS_OF_A_TASK", 70)
    data = Dataset(X=DATA.X[:300], Y=DATA.Y[:300])
    tagger = Tagger(calibrate=0).fit_dataset(data)
    there = Scoring(tagger, OtherProcess()).predict_topk(data, 3)
    assert there.ids.tobytes() == tagger.predict_topk(data.X, 3).ids.tobytes()
    with pytest.raises(DataError, match="the model was trained on rows of features, and the data has only texts"):
        Scoring(tagger, OtherProcess()).predict_topk(make_topics(20, 3)[0], 3)


@pytest.mark.parametrize("radius", ["exact", "bound"])
def test_audits_are_the_same_on_every_engine(radius):
    chance = np.random.default_rng(0)
    W, inputs = chance.normal(size=(12, 4)), chance.normal(size=(30, 4))
    Y = chance.random((40, 12)) < 0.25
    found = []
    for engine in (None, OtherProcess()):
        with running_on(engine):
            found.append(argmaxable(W, Y, inputs=inputs, radius=radius, n_jobs=1))
            found.append(winnable(W, n_jobs=1))
    for here, there in zip(found[:2], found[2:], strict=True):
        assert here.verdicts.tolist() == there.verdicts.tolist() and here.radius.tolist() == there.radius.tolist()
        assert here.how == there.how if isinstance(here.how, list) else list(here.how) == list(there.how)
        facts = [[one.to_facts() for one in audit.certificates] for audit in (here, there)]
        assert facts[0] == facts[1]
