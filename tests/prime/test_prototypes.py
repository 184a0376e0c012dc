"""Prototypes, shared vectors and centroids against plain loops."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse as sp

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

from longtail.errors import DataError, ParameterError
from longtail.prime.label_means import mean_queries
from longtail.prime.prototypes import Centroids, FreeVectors, PrototypeNetwork, label_clusters


def slow_prototype(layer, tokens):
    """One post-norm transformer layer with one head, written out, and the mean over the tokens."""
    weights = {name: value.detach().double().numpy() for name, value in layer.named_parameters()}
    d = tokens.shape[1]

    def linear(x, name):
        return x @ weights[f"{name}weight"].T + weights[f"{name}bias"]

    def norm(x, name):
        x = (x - x.mean(axis=1, keepdims=True)) / np.sqrt(x.var(axis=1, keepdims=True) + 1e-5)
        return x * weights[f"{name}.weight"] + weights[f"{name}.bias"]

    q, k, v = np.split(linear(tokens, "self_attn.in_proj_"), 3, axis=1)
    logits = q @ k.T / math.sqrt(d)
    attention = np.exp(logits - logits.max(axis=1, keepdims=True))
    attention /= attention.sum(axis=1, keepdims=True)
    x = norm(tokens + linear(attention @ v, "self_attn.out_proj."), "norm1")
    inner = linear(x, "linear1.")
    inner = inner * 0.5 * (1 + np.vectorize(math.erf)(inner / math.sqrt(2)))
    return norm(x + linear(inner, "linear2."), "norm2").mean(axis=0)


@pytest.mark.parametrize("n_tokens", [1, 2, 3])
def test_network_is_the_slow_layer(n_tokens):
    torch.manual_seed(0)
    network = PrototypeNetwork(6, hidden=10).eval()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.uniform_(-1, 1)
        vectors = torch.randn(n_tokens, 4, 6)
        found = network(*vectors)
    for label in range(4):
        expected = slow_prototype(network.layer, vectors[:, label].double().numpy())
        np.testing.assert_allclose(found[label].numpy(), expected, atol=1e-5)


def test_network_has_a_gradient_for_every_part():
    network = PrototypeNetwork(4, hidden=8)
    vectors = torch.randn(3, 5, 4, requires_grad=True)
    network(*vectors).square().sum().backward()
    assert (vectors.grad.abs().sum(dim=(1, 2)) > 0).all()


def test_labels_alike_share_a_vector_and_private_ones_do_not():
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(8, 16))
    vectors = np.repeat(centres, 4, axis=0) + 0.01 * rng.normal(size=(32, 16))
    counts = np.arange(32)[::-1]
    cluster = label_clusters(vectors, 9, counts=counts, n_private=2, random_state=1)
    assert cluster[:2].tolist() == [8, 9]
    sizes = np.bincount(cluster[2:], minlength=8)
    assert sizes.max() - sizes.min() <= 1
    again = label_clusters(vectors, 9, counts=counts, n_private=2, random_state=1, n_jobs=1)
    assert (again == cluster).all()
    bank = FreeVectors(cluster, width=16)
    assert bank.vectors.shape == (10, 16)
    rows = bank(torch.arange(32)).detach().numpy()
    for a in range(32):
        for b in range(32):
            assert (rows[a] == rows[b]).all() == (cluster[a] == cluster[b])
    bound = math.sqrt(6 / (10 + 16))
    assert 0.5 * bound < np.abs(rows).max() <= bound


def test_clusters_of_odd_numbers():
    vectors = np.eye(3)
    assert sorted(label_clusters(vectors, 100)) == [0, 0, 1]  # rounded down to a power of two, and to the labels
    assert label_clusters(vectors, 4, counts=np.ones(3), n_private=9).tolist() == [0, 1, 2]
    with pytest.raises(DataError, match=r"counts must have one entry per label \(3\)"):
        label_clusters(vectors, 2, n_private=1)


def equation_4(centroids, labels, queries, momentum):
    """Take one step after the other, as the equation is printed."""
    values = np.array(centroids, dtype=np.float64)
    for label, query in zip(labels, queries, strict=True):
        values[label] = momentum * values[label] + (1 - momentum) * query
    return values


def test_a_second_query_of_a_label_is_a_second_step():
    centroids = Centroids(torch.tensor([[1.0, 0.0]]), momentum=0.95)
    centroids.update(torch.tensor([0, 0]), torch.tensor([[0.0, 1.0], [0.0, 1.0]]))
    np.testing.assert_allclose(centroids.values.numpy(), [[0.9025, 0.0975]], atol=1e-7)


@pytest.mark.parametrize("momentum", [0.0, 0.5, 0.95, 1.0])
def test_centroids_take_a_step_for_every_query(momentum):
    rng = np.random.default_rng(0)
    start, queries = rng.normal(size=(30, 4)), rng.normal(size=(500, 4))
    labels = (30 * rng.random(500) ** 3).astype(int)  # some labels have hundreds of the queries, some none
    centroids = Centroids(torch.tensor(start), momentum)
    centroids.update(torch.tensor(labels), torch.tensor(queries, requires_grad=True))
    np.testing.assert_allclose(centroids(torch.arange(30)), equation_4(start, labels, queries, momentum), atol=1e-5)
    assert not centroids.values.requires_grad
    with pytest.raises(ParameterError, match="momentum must be a number between 0 and 1; got 2"):
        Centroids(torch.eye(2), momentum=2)


def test_mean_centroids_are_the_means_of_the_latest_vectors():
    rng = np.random.default_rng(0)
    Y = sp.csr_array((rng.random((40, 7)) < 0.3).astype(np.float32))
    bank = rng.normal(size=(40, 4)).astype(np.float32)
    counts = np.bincount(Y.indices, minlength=7)
    centroids = Centroids(
        torch.tensor(mean_queries(bank, Y, np.zeros((7, 4)))), rule="mean", counts=torch.tensor(counts)
    )
    for _ in range(20):
        rows = rng.permutation(40)[:9]
        new = rng.normal(size=(9, 4)).astype(np.float32)
        pairs = [(i, label) for i, row in enumerate(rows) for label in Y[[row]].indices]
        at, labels = np.array(pairs).T
        centroids.update(torch.tensor(labels), torch.tensor(new[at]), torch.tensor(bank[rows][at]))
        bank[rows] = new
    np.testing.assert_allclose(centroids.values.numpy(), mean_queries(bank, Y, np.zeros((7, 4))), atol=1e-5)


def test_centroids_that_are_means_need_the_numbers_of_queries():
    with pytest.raises(DataError, match=r"counts must have one entry per label \(2\)"):
        Centroids(torch.eye(2), rule="mean")
    with pytest.raises(DataError, match="before must be given"):
        Centroids(torch.eye(2), rule="mean", counts=torch.ones(2)).update(torch.tensor([0]), torch.ones(1, 2))


def test_first_centroids_are_means():
    Y = sp.csr_array(np.array([[1, 0, 0.5], [1, 0, 0]], dtype=np.float32))
    queries = np.array([[1.0, 2.0], [3.0, 4.0]])
    text = np.array([[9.0, 9.0], [5.0, 6.0], [9.0, 9.0]])
    assert mean_queries(queries, Y, text).tolist() == [[2, 3], [5, 6], [1, 2]]
