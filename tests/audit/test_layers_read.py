"""Weights come from arrays, layers, models and files; what cannot be audited is refused in one sentence."""

import numpy as np
import pytest
import scipy.sparse as sp
from safetensors.numpy import save_file

from longtail import audit
from longtail.audit.dft_witness import dft_order, dft_witness, find_circle
from longtail.bottleneck.dft import cyclic_runs, dft_matrix
from longtail.errors import DataError, ParameterError

W = np.random.default_rng(0).standard_normal((6, 2)).astype(np.float32)
bias = np.random.default_rng(1).standard_normal(6).astype(np.float32)
Y = ((np.arange(64)[:, None] >> np.arange(6)) & 1).astype(float)


class Tensor:
    """As much of a torch tensor as an audit looks at."""

    def __init__(self, values):
        self.values, self.dtype = values, "torch.float32"

    def detach(self):
        return self

    cpu = float = detach

    def numpy(self):
        return self.values


class Linear:
    def __init__(self, weight, bias=None):
        self.weight, self.bias = Tensor(weight), None if bias is None else Tensor(bias)


def same(a, b):
    assert a.verdicts.tolist() == b.verdicts.tolist()
    np.testing.assert_array_equal(a.radius, b.radius)


def test_layers_and_tensors():
    expected, with_bias = audit.argmaxable(W, Y), audit.argmaxable(W, Y, bias=bias)
    assert expected.verdicts.tolist() != with_bias.verdicts.tolist() and with_bias.has_bias
    same(audit.argmaxable(Tensor(W), Y), expected)
    same(audit.argmaxable(Linear(W), Y), expected)
    same(audit.argmaxable(Linear(W, bias), Y), with_bias)
    same(audit.argmaxable(Linear(W, bias), Y, bias=np.zeros(6)), expected)
    same(audit.argmaxable(sp.csr_array(W), sp.csr_array(Y)), expected)
    same(audit.argmaxable(W.tolist(), Y.tolist(), bias=0.0), expected)

    class Ours:
        def weight(self):
            return W

    same(audit.argmaxable(Ours(), Y), expected)


def test_scikit_learn_models():
    from sklearn.linear_model import LogisticRegression, RidgeClassifier
    from sklearn.multiclass import OneVsRestClassifier

    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 3))
    labels = (X @ rng.standard_normal((3, 4)) > 0).astype(int)
    rest = OneVsRestClassifier(LogisticRegression()).fit(X, labels)
    found = audit.argmaxable(rest, rest.predict(X), inputs=X, radius="bound", box=100)
    assert found.has_bias and found.reachable.all() and "given input" in found.how
    ridge = RidgeClassifier().fit(X, labels)
    assert audit.argmaxable(ridge, ridge.predict(X), box=100).reachable.all()


def test_files(tmp_path):
    expected = audit.argmaxable(W, Y, bias=bias)
    np.savez(tmp_path / "w.npz", weight=W, bias=bias, other=np.ones((2, 2)))
    save_file({"head.weight": W, "head.bias": bias}, tmp_path / "w.safetensors")
    np.save(tmp_path / "w.npy", W)
    same(audit.argmaxable(tmp_path / "w.npz", Y), expected)
    same(audit.argmaxable(str(tmp_path / "w.safetensors"), Y), expected)
    same(audit.argmaxable(tmp_path / "w.npy", Y), audit.argmaxable(W, Y))
    np.savez(tmp_path / "two.npz", a=W, b=W)
    (tmp_path / "broken.npz").write_bytes(b"PK\x03\x04 nothing")
    (tmp_path / "broken.safetensors").write_bytes(b"1")
    (tmp_path / "w.txt").write_text("1 2")
    for name, kind, sentence in [
        ("two.npz", DataError, "must hold one array of weights with 2 dimensions, named 'weight'; it has"),
        ("broken.npz", DataError, "is not a readable .npz file"),
        ("broken.safetensors", DataError, "is not a readable safetensors file"),
        ("w.txt", DataError, "must be an .npz, .npy or .safetensors file"),
        ("missing.npz", DataError, "missing.npz does not exist"),
    ]:
        with pytest.raises(kind, match=sentence):
            audit.argmaxable(tmp_path / name, Y)


@pytest.mark.parametrize(
    ("change", "kind", "sentence"),
    [
        ({"W": np.ones(6)}, DataError, "W must have 2 dimensions, one row per label; got 1"),
        ({"W": np.where(W[2, 1] == W, np.nan, W)}, DataError, "W must be finite; got nan in row 2, column 1"),
        ({"W": W * (np.arange(6) != 4)[:, None]}, DataError, "row of zeros without a bias; row 4 is one"),
        ({"W": np.zeros((6, 2)), "bias": bias}, DataError, "W must not be all zeros"),
        ({"W": np.empty((0, 2))}, DataError, "at least one label and one dimension; got shape 0 x 2"),
        ({"W": [[1, 2], [1]]}, DataError, "rows of different lengths"),
        ({"W": "abc"}, DataError, "abc does not exist"),
        ({"W": [["a"]]}, DataError, "W must hold numbers"),
        ({"bias": np.ones(5)}, DataError, "bias must have one number per label, 6; got 5"),
        ({"bias": np.full(6, np.inf)}, DataError, "bias must be finite; got inf in row 0"),
        ({"Y": np.eye(5)}, DataError, "Y must have one column per label of W, 6; got 5"),
        ({"Y": np.empty((0, 6))}, DataError, "Y must have at least one row; got 0"),
        ({"Y": -Y}, DataError, "Y must not be negative"),
        ({"box": 0}, ParameterError, "box must be a number above 0 and at most 1e"),
        ({"eps": -1}, ParameterError, "eps must be a number > 0; got -1"),
        ({"radius": "exakt"}, ParameterError, "Did you mean 'exact'"),
        ({"inputs": np.ones((3, 3))}, DataError, "inputs must have 2 columns, as W has; got shape"),
        ({"n_jobs": 0}, ParameterError, "n_jobs must be"),
    ],
)
def test_what_cannot_be_audited(change, kind, sentence):
    with pytest.raises(kind, match=sentence):
        audit.argmaxable(**{"W": W, "Y": Y, **change})


def test_a_row_of_zeros_with_a_bias_is_a_constant_label():
    layer = np.array([[1.0, 0], [0, 1], [0, 0]])
    found = audit.argmaxable(layer, [[1, 0, 0], [1, 0, 1], [0, 0, 1]], bias=[0, 0, 2.0])
    assert found.verdicts[found.set_of_row].tolist() == ["not argmaxable", "eps-argmaxable", "eps-argmaxable"]
    for i, members in enumerate(found.members):
        assert audit.check_certificate(layer, members, found.certificates[i], bias=[0, 0, 2.0]).holds


def test_the_callers_arrays_stay_as_they_are():
    weights, labels = W.copy(), sp.csr_array(Y)
    before = labels.copy()
    audit.argmaxable(weights, labels, bias=bias)
    audit.winnable(weights)
    np.testing.assert_array_equal(weights, W)
    assert (labels != before).nnz == 0


def test_dft_layers_are_recognised_and_their_sets_found_by_formula():
    layer = dft_matrix(101, 4)
    assert dft_order(layer) == 4 and dft_order(layer.astype(np.float32).astype(float)) == 4
    assert dft_order(np.column_stack([layer, np.random.default_rng(0).standard_normal((101, 3))])) == 4
    assert dft_order(W) == 0
    rng = np.random.default_rng(0)
    sets = [np.sort(rng.choice(101, size, replace=False)) for size in (1, 2, 3, 4) for _ in range(10)]
    sets += [np.array([0, 100]), np.arange(101), np.empty(0, np.int64), np.arange(50)]
    for members in sets:
        assert np.flatnonzero(layer @ dft_witness(members, find_circle(layer), 9) > 0).tolist() == members.tolist()
    assert dft_witness(np.arange(0, 100, 20), find_circle(layer), 9) is None
    found = audit.argmaxable(layer, np.eye(101), radius="bound")
    assert found.reachable.all() and set(found.how) == {"DFT formula"}


def test_dft_matrices():
    assert cyclic_runs(np.array([2, 3, 6]), 7).tolist() == [[2, 3], [6, 6]]
    assert cyclic_runs(np.array([0, 6]), 7).tolist() == [[6, 7]]
    with pytest.raises(ParameterError, match="k must be at most 2 for 6 labels, so that 2k \\+ 1 <= n; got 3"):
        dft_matrix(6, 3)


def test_circles_in_any_order_with_labels_missing():
    rng = np.random.default_rng(0)
    order = rng.permutation(40)[:31]
    layer = np.column_stack([dft_matrix(40, 3)[order], rng.standard_normal((31, 2))])
    circle = find_circle(layer)
    assert (circle.size, circle.k) == (40, 3) and circle.positions.tolist() == order.tolist()
    sets = np.zeros((30, 31))
    for row in sets:
        row[rng.choice(31, rng.integers(0, 4), replace=False)] = 1
    for shift in (None, np.full(31, 0.75), np.full(31, -2.0)):
        found = audit.argmaxable(layer, sets, bias=shift, radius="bound")
        assert found.reachable.all() and set(found.how) == {"DFT formula"}
    assert dft_witness(np.array([0]), circle, 9, box=1e-3, shift=1.0) is None
    assert find_circle(np.full((4, 3), 0.5)) is None and find_circle(np.full((4, 3), 1e-5)) is None


def test_output_weights_come_first():
    class Model:
        coef_ = np.ones((2, 2))

        def output_weights(self):
            return sp.csr_array(W), np.where(np.arange(6) == 2, -np.inf, bias)

    found = audit.argmaxable(Model(), Y)
    assert found.has_bias and not any(2 in members for members in np.array(found.members, object)[found.reachable])


def test_files_with_several_arrays_names_or_a_sparse_matrix(tmp_path):
    from longtail.audit.read_weights import layer_from_file, names_in_file

    save_file({"a.weight": W, "b.weight": 2 * W, "b.bias": bias}, tmp_path / "two.safetensors")
    found = layer_from_file(tmp_path / "two.safetensors", "b.weight")
    np.testing.assert_array_equal(found[0], 2 * W)
    np.testing.assert_array_equal(found[1], bias)
    with pytest.raises(DataError, match=r"called 'b\.wieght'.*Did you mean 'b\.weight'"):
        layer_from_file(tmp_path / "two.safetensors", "b.wieght")
    np.savez(tmp_path / "named.npz", W=W, labels=np.array(list("abcdef")))
    assert names_in_file(tmp_path / "named.npz") == tuple("abcdef")
    assert names_in_file(tmp_path / "two.safetensors") is None
    sp.save_npz(tmp_path / "sparse.npz", sp.csr_array(W))
    same(audit.argmaxable(tmp_path / "sparse.npz", Y), audit.argmaxable(W, Y))
    np.savez(tmp_path / "objects.npz", weight=np.array([{}], dtype=object))
    with pytest.raises(DataError, match="holds pickled objects, which are not loaded"):
        audit.argmaxable(tmp_path / "objects.npz", Y)


def test_whole_models_names_and_transposed_weights_get_one_helpful_sentence():
    torch = pytest.importorskip("torch")

    class Tags(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.classifier = torch.nn.Linear(3, 2), torch.nn.Linear(2, 6)

    model = Tags()
    layer = model.classifier.weight.detach().numpy()
    for wrong, sentence in [
        ((model, Y), "W must be one linear layer; got a Tags: pass the last linear layer, such as model.classifier."),
        ((torch.nn.Sequential(model), Y), "a Sequential: pass the last linear layer, such as model[0].classifier."),
        ((torch.nn.ReLU(), Y), "W must be one linear layer; got a ReLU: pass the last linear layer."),
        ((model.state_dict(), Y), "got an OrderedDict: pass the weights of the last one, such as "
         "state['classifier.weight'], and its bias=."),
        ((layer.T, Y), "Y must have one column per label of W, 2; got 6. The weights may be transposed"),
        ((layer.T, Y, np.ones(6)), "bias must have one number per label, 2; got 6. The weights may be transposed"),
        ((layer, [["a", "b"], ["c"]]), "got names of labels: lt.Dataset.from_lists("),
        ((layer, np.array(["a", "b"])), "got names of labels"),
    ]:  # fmt: skip
        with pytest.raises(DataError) as told:
            audit.argmaxable(*wrong)
        assert sentence in str(told.value)
    with pytest.raises(DataError, match=r"sets must hold label numbers from 0 to 5, not names; got \['a'\] in set 0"):
        audit.retrievable(layer, [["a"]])


def test_facts_take_a_name_for_every_label():
    found = audit.argmaxable(W, Y)
    with pytest.raises(DataError, match=r"names must have one name per label, 6; got 2\."):
        found.facts(["a", "b"])
    assert found.facts(list("abcdef"))["hardest"][0]["labels"] == found.facts("abcdef")["hardest"][0]["labels"]
