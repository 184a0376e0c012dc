"""A hybrid with an encoder: all experts together, saved, served and given new labels."""

import numpy as np
import pytest
from tests.engine.other_process import OtherProcess

pytest.importorskip("torch")
pytest.importorskip("sentence_transformers")

import longtail
from longtail.data import load_bundled
from longtail.hybrid import EXPERTS, Hybrid
from longtail.pipeline import Scoring, Tagger, on_engine
from longtail.report.expert_sentences import expert_sentences

pytestmark = pytest.mark.torch
SMALL = {"width": 32, "layers": 1, "heads": 2}


def new_model(**settings):
    own = {"epochs": 2, "max_length": 24, "device": "cpu", "random_state": 0, "n_jobs": 1}
    return Hybrid(SMALL, **{**own, **settings})


@pytest.fixture(scope="module")
def data():
    return load_bundled("debtags", "train").take(np.arange(0, 24000, 30))


@pytest.fixture(scope="module")
def tagger(data):
    return Tagger("hybrid", model=new_model(), random_state=0, n_jobs=1).fit_dataset(data)


def test_every_expert_has_a_say(tagger):
    assert set(tagger.model_.weighed_) == {*EXPERTS, "together"}
    best = max(tagger.model_.weighed_[name]["P@5"] for name in EXPERTS)
    assert tagger.model_.weighed_["together"]["P@5"] >= best - 0.02
    facts = tagger.explain("a chess game for the desktop", k=1)["predicted"][0]
    assert {fact["expert"] for fact in facts["experts"]} == {*EXPERTS, "start"}
    neighbours = next(fact for fact in facts["experts"] if fact["expert"] == "neighbours")
    assert all(0 <= row < tagger.model_.n_rows_ for row in neighbours["rows"])


def test_what_is_saved_predicts_the_same(tagger, data, tmp_path):
    again = longtail.load(tagger.save(tmp_path / "model"))
    texts = list(data.texts)[:30]
    first = tagger.model_.predict_topk(texts, k=6)
    second = again.model_.set_params(runtime="torch", n_jobs=1).predict_topk(texts, k=6)
    np.testing.assert_array_equal(first.ids, second.ids)
    np.testing.assert_allclose(first.scores, second.scores, atol=1e-4)


def test_rows_are_scored_on_an_engine_as_here(tagger, data, monkeypatch):
    monkeypatch.setattr(on_engine, "ROWS_OF_A_TASK", 25)
    some = data.take(np.arange(60))
    here, there = tagger.predict_topk(some.texts, 4), Scoring(tagger, OtherProcess()).predict_topk(some, 4)
    np.testing.assert_allclose(here.scores, there.scores, atol=1e-4)
    assert np.mean(here.ids == there.ids) > 0.99


def test_the_same_seed_gives_the_same_model(data):
    texts, some = list(data.texts)[:150], data.take(np.arange(150))
    scores = [
        new_model(epochs=1).fit(texts, some.Y, some.label_texts).predict_topk(texts[:20], k=5).scores for _ in range(2)
    ]
    np.testing.assert_array_equal(*scores)


def test_an_encoder_can_stay_as_it_is(data):
    texts, some = list(data.texts)[:200], data.take(np.arange(200))
    model = new_model(epochs=0).fit(texts, some.Y, some.label_texts)
    assert model.describe()["epochs"] == [] and model.predict_topk(texts[:3], k=2).ids.shape == (3, 2)


def test_on_a_cpu_the_encoder_is_trained_only_when_time_is_given(data):
    texts, some = list(data.texts)[:150], data.take(np.arange(150))
    frozen = new_model(epochs=None).fit(texts, some.Y, some.label_texts)
    assert frozen.effective_params()["epochs"] == 0
    timed = new_model(epochs=None, minutes=5).fit(texts, some.Y, some.label_texts)
    assert timed.effective_params()["epochs"] >= 1
    short = new_model(epochs=50, minutes=1e-6).fit(texts, some.Y, some.label_texts)
    assert short.effective_params()["epochs"] == len(short.describe()["epochs"]) == 1


def test_experts_can_be_left_out(data, tmp_path):
    texts, some = list(data.texts)[:200], data.take(np.arange(200))
    for experts in (("prototypes",), ("classifier", "tree"), ("neighbours", "names")):
        model = new_model(experts=experts, epochs=1).fit(texts, some.Y, some.label_texts)
        again = longtail.load(model.save(tmp_path / "-".join(experts)))
        first, second = (m.set_params(runtime="torch").predict_topk(texts[:5], k=3) for m in (model, again))
        np.testing.assert_array_equal(first.ids, second.ids)


def test_a_label_added_by_its_text_is_found(data):
    model = new_model().fit(list(data.texts), data.Y, data.label_texts)
    before = model.predict_topk(["a chess game"], k=5)
    model.add_labels(["whale watching"])
    top = model.predict_topk(["software for whale watching"], k=5)
    assert model.n_labels_ - 1 in top.ids[0]
    after = model.predict_topk(["a chess game"], k=6)
    kept = [(int(i), float(s)) for i, s in zip(after.ids[0], after.scores[0], strict=True) if i != model.n_labels_ - 1]
    assert [i for i, _ in kept][:5] == before.ids[0].tolist()
    np.testing.assert_allclose([s for _, s in kept][:5], before.scores[0], atol=1e-4)


def test_an_interrupted_training_goes_on_from_its_checkpoint(data, tmp_path, monkeypatch):
    texts, some = list(data.texts)[:150], data.take(np.arange(150))
    model = new_model(epochs=1, checkpoint=tmp_path / "kept", checkpoint_minutes=0)
    import longtail.hybrid.fit as fit

    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(fit, "weigh", interrupt)
        with pytest.raises(KeyboardInterrupt):
            model.fit(texts, some.Y, some.label_texts)
    assert any((tmp_path / "kept").iterdir())
    reports = []
    model.fit(texts, some.Y, some.label_texts, on_epoch=reports.append)
    assert not reports  # the encoder was trained already
    model.save(tmp_path / "model")
    assert not (tmp_path / "kept").exists()


def test_similar_texts_are_shown_by_id_and_first_words(tagger, data, tmp_path):
    def similar(model):
        facts = model.explain("a chess game for the desktop", k=1)["predicted"][0]["experts"]
        return next(fact for fact in facts if fact["expert"] == "neighbours")

    told = similar(tagger)
    for row in told["similar"]:
        assert row["id"] == data.ids[row["row"]]
        assert " ".join(data.texts[row["row"]].split()).startswith(row["text"].rstrip("…")) and len(row["text"]) <= 60
    assert similar(longtail.load(tagger.save(tmp_path / "model")))["similar"] == told["similar"]
    assert f"such as {told['similar'][0]['id']} “" in expert_sentences({"experts": [{**told, "weight": 1.0}]})[0]


def test_texts_that_are_not_kept_are_not_in_the_model(data, tmp_path):
    few = data.take(np.arange(120))
    model = new_model(experts=("neighbours",), epochs=0, keep_texts=False)
    tagger = Tagger("hybrid", model=model, random_state=0, n_jobs=1).fit_dataset(few)
    saved = longtail.load(tagger.save(tmp_path / "model"))
    assert saved.model_.experts_.shown is None and saved.model_.keep_texts is False
    fact = saved.explain(few.texts[0], k=1)["predicted"][0]["experts"][0]
    assert fact["rows"] and "similar" not in fact
    assert not any(few.texts[3][:30].encode() in file.read_bytes() for file in (tmp_path / "model").iterdir())
