"""The network with a narrow output layer: it learns, resumes, is saved, and its guarantee holds."""

import builtins
import json

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from longtail.bottleneck import BottleneckClassifier
from longtail.data import load_bundled
from longtail.data.synthetic.generate import make_linear, make_topics
from longtail.errors import DataError, GuaranteeWarning, MissingExtraError, ModelError, ParameterError
from longtail.pipeline import Tagger, audit_model, load, plan_training
from longtail.text import TfidfFeatures
from longtail.text.row_vectors import unit_rows

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore:the network is no better than naming")]
narrow = pytest.mark.filterwarnings("ignore::longtail.errors.GuaranteeWarning")  # where a guarantee is not the point
torch = pytest.importorskip("torch")


@pytest.fixture(scope="module")
def packages():
    """Descriptions of packages with their tags: the first thousand rows of the bundled data, the 60 commonest tags."""
    data = load_bundled("debtags").take(slice(0, 1250))
    common = np.argsort(-np.bincount(data.Y.indices, minlength=data.n_labels), kind="stable")[:60]
    X = TfidfFeatures(min_df=2, n_jobs=1).fit_transform(list(data.texts))
    Y = sp.csr_array(data.Y[:, np.sort(common)])
    return X[:1000], Y[:1000], X[1000:], Y[1000:]


@pytest.fixture(scope="module")
def small():
    data = make_linear(n_rows=120, n_features=40, n_labels=25, random_state=1)[0]
    return sp.csr_array(data.X), data.Y


def quick(**params):
    return BottleneckClassifier(**{"k": 5, "width": 8, "hidden": 32, "epochs": 4, "random_state": 0, **params})


def weights_of(model):
    return b"".join(value.numpy().tobytes() for value in model.network_.state_dict().values())


@pytest.mark.parametrize("params", [{"head": "dft"}, {"head": "bottleneck"}, {"head": "dft", "encoder": "linear"}])
def test_it_learns_real_tags(packages, params):
    X, Y, Xt, Yt = packages
    model = BottleneckClassifier(k=12, width=16, hidden=64, lr=1e-2, random_state=0, **params).fit(X, Y)
    common = np.bincount(Y.indices, minlength=60).argmax()
    assert model.score(Xt, Yt) > float(Yt[:, [common]].mean()) + 0.15
    losses = [epoch["valid_loss"] for epoch in model.history_]
    share = Y.nnz / np.prod(Y.shape)
    always = -(share * np.log(share) + (1 - share) * np.log(1 - share))  # the prior for every row and label
    assert min(losses) < 0.9 * always
    precisions = [epoch["valid_precision"] for epoch in model.history_]
    assert len(losses) < 50 and np.argmax(precisions) == len(losses) - 1 - 10  # stopped by patience
    assert model.best_epoch_ == 1 + int(np.argmax(precisions)) and max(precisions) > model.prior_precision_ + 0.05


def test_stopping_by_loss_is_left(packages):
    X, Y, _, _ = packages
    model = BottleneckClassifier(k=12, width=16, hidden=64, lr=1e-2, stop_on="loss", random_state=0).fit(X, Y)
    losses = [epoch["valid_loss"] for epoch in model.history_]
    assert np.argmin(losses) == len(losses) - 1 - 10 and "valid_precision" not in model.history_[0]


@pytest.fixture(scope="module")
def few_rows_many_labels():
    """Packages and what they depend on: 500 rows with more than a thousand labels, and 200 rows to test."""
    data = load_bundled("debian-relations")
    data = data.take(np.random.default_rng(0).permutation(data.n_rows)[:700])
    used = np.flatnonzero(np.bincount(data.Y[:500].indices, minlength=data.n_labels))
    X = TfidfFeatures(n_jobs=1).fit_transform(list(data.texts))
    Y = sp.csr_array(data.Y[:, used])
    return X[:500], Y[:500], X[500:], Y[500:]


@narrow
@pytest.mark.parametrize("head", ["dft", "bottleneck"])
def test_few_rows_of_many_labels_do_not_end_in_one_label_for_all(few_rows_many_labels, head):
    X, Y, Xt, Yt = few_rows_many_labels
    model = BottleneckClassifier(head=head, hidden=64, width=32, lr=5e-3, random_state=0).fit(X, Y)
    first = model.predict_topk(Xt, k=1).ids.ravel()
    common = np.bincount(Y.indices).argmax()
    assert (first == common).mean() < 0.9
    assert float(np.asarray(Yt[np.arange(200), first]).mean()) > float(Yt[:, [common]].mean()) + 0.02
    assert model.best_epoch_ > 5


@narrow
def test_a_network_no_better_than_the_frequency_of_labels_is_told(few_rows_many_labels):
    X, Y, _, _ = few_rows_many_labels
    with pytest.warns(
        ConvergenceWarning,
        match=r"no better than naming the most frequent labels for every row: on validation rows it reaches",
    ):
        model = BottleneckClassifier(hidden=8, width=4, epochs=1, lr=1e-6, random_state=0).fit(X, Y)
    assert model.prior_precision_ >= model.history_[0]["valid_precision"]


def test_it_starts_from_the_mean_number_of_labels(small):
    X, Y = small
    model = quick(lr=1e-9, epochs=1, valid=0).fit(X, Y)
    chances = 1 / (1 + np.exp(-model.predict_topk(X, k=25).scores))
    assert abs(float(chances.mean()) - Y.nnz / np.prod(Y.shape)) < 0.02


def test_killed_and_resumed_is_the_same_model(small, tmp_path):
    X, Y = small

    class Killed(BaseException):
        pass

    def kill(done, total):
        if done == 9:
            raise Killed

    settings = {"batch_size": 16, "epochs": 5, "dropout": 0.3}
    expected = quick(**settings).fit(X, Y)
    model = quick(**settings, checkpoint=tmp_path, checkpoint_minutes=0)
    with pytest.raises(Killed):
        model.fit(X, Y, progress=kill)
    steps = []
    model.fit(X, Y, progress=lambda done, total: steps.append(done))
    assert steps[0] == 9  # the ninth step was not in the last checkpoint
    assert weights_of(model) == weights_of(expected) and model.history_ == expected.history_
    assert not tmp_path.exists()


def test_seeds(small):
    X, Y = small
    assert weights_of(quick().fit(X, Y)) == weights_of(quick().fit(X, Y))
    assert weights_of(quick().fit(X, Y)) != weights_of(quick(random_state=1).fit(X, Y))


@pytest.mark.parametrize("density", [0.05, 0.6])
def test_sparse_and_dense_rows_give_the_same_model(density):
    rng = np.random.default_rng(0)
    X = sp.csr_array(sp.random_array((60, 30), density=density, rng=rng, dtype=np.float32))
    Y = np.eye(6)[rng.integers(0, 6, 60)]
    models = [quick(k=2, epochs=2).fit(rows, Y) for rows in (X, X.toarray(), sp.csc_array(X))]
    assert len({weights_of(model) for model in models}) == 1
    assert models[0].dense_ == (density > 0.5)


def test_validation_rows_may_be_given(small):
    X, Y = small
    seen = []
    model = quick().fit(X[:80], Y[:80], X_valid=X[80:], Y_valid=Y[80:], on_epoch=seen.append)
    assert model.n_rows_ == 80 and [e.epoch for e in seen] == [1, 2, 3, 4]
    assert all(np.isfinite(e.valid_loss) for e in seen)
    assert all(e["valid_loss"] is None for e in quick(valid=0).fit(X, Y).history_)


@narrow
def test_saved_models_predict_the_same(small, tmp_path):
    X, Y = small
    for number, params in enumerate(({}, {"head": "bottleneck"}, {"order": None}, {"hidden": [16, 8], "width": 0})):
        model = quick(**params).fit(X, Y)
        found = load(model.save(tmp_path / str(number)))
        assert found.predict_topk(X).scores.tobytes() == model.predict_topk(X).scores.tobytes()
        assert found.guaranteed_ == model.guaranteed_ and found.history_ == model.history_
        assert found.saved_params() == model.saved_params()


def test_places_on_the_circle_may_be_given(small, tmp_path):
    X, Y = small
    places = np.random.default_rng(0).permutation(25)
    model = quick(order=places).fit(X, Y)
    assert clone(model).order.tolist() == places.tolist()
    found = load(model.save(tmp_path / "m"))
    assert found.output_weights()[0].tobytes() == model.output_weights()[0].tobytes()
    with pytest.raises(ParameterError, match="order must name each place from 0 to 24 once"):
        quick(order=[0] * 25).fit(X, Y)


def test_a_damaged_model_is_refused(small, tmp_path):
    from longtail.storage import Part, save_folder

    X, Y = small
    part = quick().fit(X, Y).to_part()
    for name, array in (("encoder.0.bias", np.zeros(3, np.float32)), ("head.slack", np.full((25, 8), np.nan))):
        broken = Part(part.kind, part.params, {**part.arrays, name: array})
        save_folder(tmp_path / "m", "estimator.v1", {"model": broken})
        with pytest.raises(ModelError, match="is damaged"):
            load(tmp_path / "m")


def test_every_small_set_can_come_out(small):
    pytest.importorskip("scipy.optimize")
    from longtail.audit import argmaxable

    X, Y = small
    model = quick(k=4, width=2).fit(X, Y)
    W, bias = model.output_weights()
    assert W.shape == (25, 2 * 4 + 1 + 2) and bias is None and model.guaranteed_ == 4
    rng = np.random.default_rng(0)
    sets = np.zeros((20, 25))
    for row in sets:
        row[rng.choice(25, 4, replace=False)] = 1
    assert set(argmaxable(model, sets, n_jobs=1).verdicts) <= {"eps-argmaxable", "argmaxable"}
    assert quick(head="bottleneck").fit(X, Y).guaranteed_ == 0


def test_scores_are_those_of_the_weights_that_are_audited(small):
    X, Y = small
    model = quick().fit(X, Y)
    x = torch.from_numpy(unit_rows(X[:5].toarray()))
    with torch.no_grad():
        hidden = model.network_.head.project(model.network_.encoder(x)).numpy()
    W, _ = model.output_weights()
    top = model.predict_topk(X[:5], k=25)
    np.testing.assert_allclose(np.take_along_axis(hidden @ W.T, top.ids, axis=1), top.scores, atol=1e-4)


def test_few_labels_get_the_largest_guarantee_there_is(small):
    X, Y = small
    assert quick(k=50, width=4).fit(X, Y).guaranteed_ == 12
    assert quick().fit(X[:, :3], np.ones((120, 2))).guaranteed_ == 0


def test_an_encoder_too_narrow_for_the_guarantee_is_told_and_nothing_is_guaranteed(small, tmp_path):
    X, Y = small
    with pytest.warns(GuaranteeWarning) as told:
        model = quick(hidden=12).fit(X, Y)
    assert str(told[0].message) == (
        "no label set is guaranteed: the encoder returns 12 numbers, and every set of k=5 labels takes "
        "2k + 1 + width = 19; make hidden larger, or k or width smaller."
    )
    loaded = load(model.save(tmp_path / "m"))  # without saying it again
    for one in (model, loaded):
        assert one.guaranteed_ == 0 and one.label_circle() is None and one.output_weights()[0].shape == (25, 12)
        assert audit_model(one).facts["layer"]["guaranteed"] == 0
    assert quick().fit(X, Y).guaranteed_ == 5


@narrow
def test_a_module_of_the_user_is_trained_and_not_saved(small, tmp_path):
    X, Y = small
    body = torch.nn.Sequential(torch.nn.Linear(40, 12), torch.nn.Tanh())
    before = body[0].weight.detach().clone()
    model = quick(encoder=body, lr=0.01).fit(X, Y)
    assert torch.equal(body[0].weight, before)  # a copy was trained
    assert not torch.equal(model.network_.encoder[0].weight, before)
    assert model.predict_topk(X[:3], k=2).ids.shape == (3, 2)
    with pytest.raises(ModelError, match=r"a module of your own \(Sequential\) cannot be saved"):
        model.save(tmp_path / "m")
    with pytest.raises(ParameterError, match="encoder must take rows of 40 features"):
        quick(encoder=torch.nn.Linear(7, 2)).fit(X, Y)
    with pytest.raises(ParameterError, match="encoder must be 'mlp', 'linear' or a torch module; got 3"):
        quick(encoder=3).fit(X, Y)


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"head": "dtf"}, "head must be one of .*Did you mean 'dft'"),
        ({"k": 0}, "k must be an integer >= 1; got 0"),
        ({"width": -1}, "width must be an integer >= 0; got -1"),
        ({"head": "bottleneck", "width": 0}, "width must be an integer >= 1; got 0"),
        ({"encoder": "mpl"}, "encoder must be one of .*Did you mean 'mlp'"),
        ({"hidden": []}, "hidden must be a width or a list of at least one"),
        ({"dropout": 1.5}, "dropout must be a number between 0 and 0.99; got 1.5"),
        ({"lr": 0}, "lr must be a number > 0; got 0"),
        ({"epochs": 0}, "epochs must be an integer >= 1"),
        ({"patience": 0}, "patience must be an integer >= 1"),
        ({"valid": 0.9}, "valid must be a number between 0 and 0.5; got 0.9"),
        ({"order": "cooccurence"}, "order must be one of .*Did you mean 'cooccurrence'"),
        ({"device": "cuba"}, "device must be None or the name of a torch device such as 'cpu'; got 'cuba'"),
    ],
)
def test_bad_parameters(small, params, sentence):
    with pytest.raises(ParameterError, match=sentence):
        quick(**params).fit(*small)


def test_bad_validation_rows(small):
    X, Y = small
    with pytest.raises(ParameterError, match="X_valid and Y_valid must be given together"):
        quick().fit(X, Y, X_valid=X)
    with pytest.raises(DataError, match="X_valid must have 40 features"):
        quick().fit(X, Y, X_valid=X[:, :5], Y_valid=Y)
    with pytest.raises(DataError, match="Y_valid must have 25 labels"):
        quick().fit(X, Y, X_valid=X, Y_valid=Y[:, :5])


def test_a_huge_lr_ends_in_a_sentence(small):
    X, Y = small
    with pytest.raises(ModelError, match="training diverged"):
        quick(lr=1e30, epochs=30).fit(X, Y)


def test_without_torch_there_is_one_sentence(small, monkeypatch):
    real = builtins.__import__

    def without_torch(name, *args, **kwargs):
        if name == "torch" or name.startswith("torch."):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without_torch)
    with pytest.raises(MissingExtraError, match=r"needs the package 'torch'; install it with: pip install 'longtail\["):
        quick().fit(*small)


def test_a_tagger_trains_saves_and_explains_it(tmp_path):
    topics = make_topics(300, 8, random_state=0)[0]
    model = quick(k=3, lr=0.02, epochs=10)
    tagger = Tagger("dft", model=model, random_state=0).fit_dataset(topics)
    found = load(tagger.save(tmp_path / "m"))
    assert found.predict(topics.texts[:20]) == tagger.predict(topics.texts[:20])
    assert found.method == "dft"
    why = found.explain(topics.texts[0], k=1)["predicted"][0]
    assert why["bias"] + sum(word["weight"] for word in why["words"]) == pytest.approx(why["margin"], abs=1e-3)
    right = [set(a) & set(topics.labels_of(i)) for i, a in enumerate(tagger.predict(topics.texts))]
    assert np.mean([bool(r) for r in right]) > 0.6


def test_there_is_a_plan(tmp_path):
    topics = make_topics(300, 8, random_state=0)[0]
    facts = plan_training(topics, Tagger("dft", model=quick(k=3), random_state=0))
    assert facts["model"] == "BottleneckClassifier" and facts["train_seconds"] > 0
    saved = Tagger("dft", model=quick(k=3), random_state=0).fit_dataset(topics).save(tmp_path / "m")
    size = sum(file.stat().st_size for file in saved.iterdir())
    assert size / 2 < facts["model_bytes"] < size * 2


def test_the_command_line_trains_and_predicts(tmp_path, run):
    from longtail.data import write

    write(make_topics(120, 6, random_state=0)[0], tmp_path / "rows.jsonl")
    options = ("--method", "dft", "--epochs", 2, "--width", 4, "--checkpoint", tmp_path / "c", "--calibrate", 0)
    out = run("train", tmp_path / "rows.jsonl", "-o", tmp_path / "m", *options)
    assert "Trained dft on 120 texts with 6 labels" in out and "for 2 epochs, of which number" in out
    assert run("predict", tmp_path / "m", tmp_path / "rows.jsonl", "-k", 1).count("\n") == 120
    assert "suggestions per text" in run("evaluate", tmp_path / "m", tmp_path / "rows.jsonl")
    assert run("explain", tmp_path / "m", "--text", "some words", "-k", 1)
    saved = json.loads(run("inspect", tmp_path / "m", "--json"))
    assert [epoch["epoch"] for epoch in saved["epochs"]] == [1, 2] and "valid_precision" in saved["epochs"][0]
    assert run("audit", tmp_path / "m", tmp_path / "rows.jsonl", "--fail-if-any")
    sentence = run("train", tmp_path / "rows.jsonl", "-o", tmp_path / "n", "--epochs", 2, code=2)
    assert "--epochs is not an option of the method 'tree'" in sentence


@pytest.mark.parametrize("hidden", [1.5, None, "a", 0, [8, 0], True])
def test_widths_that_are_no_widths_are_refused(hidden):
    with pytest.raises(ParameterError, match="hidden must be a whole number >= 1 or a list of them"):
        BottleneckClassifier(hidden=hidden).fit(np.eye(8), np.eye(8))
