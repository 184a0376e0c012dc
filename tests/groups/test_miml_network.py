"""The MIML network: it is what the formulas say, padding changes nothing, tau = 0 is Deep-MIML, gradients flow."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

from longtail.errors import ParameterError
from longtail.groups.miml_network import counts_loss, list_loss, log_odds, presence_loss, sets_loss, shares_loss
from longtail.nn import DeepMIML

SIZES = [3, 1, 4, 2]
N_FEATURES, N_LABELS, CONCEPTS = 6, 5, 3


def network(tau=2.0, seed=0, **more):
    torch.manual_seed(seed)
    vectors = np.random.default_rng(seed).standard_normal((N_LABELS, N_FEATURES)) if tau else None
    made = DeepMIML(N_FEATURES, N_LABELS, concepts=CONCEPTS, hidden=(7,), tau=tau, label_vectors=vectors, **more)
    with torch.no_grad():
        made.bias.copy_(torch.linspace(-2, 1, N_LABELS))
    return made.eval()


@pytest.fixture
def X():
    return np.random.default_rng(1).standard_normal((sum(SIZES), N_FEATURES)).astype(np.float32)


def bags(X):
    return np.split(X, np.cumsum(SIZES)[:-1])


def scores(made, X, sizes=SIZES):
    return made(torch.from_numpy(X), torch.tensor(sizes)).detach().numpy()


def slowly(made, bag):
    """Return the scores of instances in one bag, by loops."""
    W1, b1 = (p.detach().numpy() for p in (made.hidden[0].weight, made.hidden[0].bias))
    W2, b2 = (p.detach().numpy() for p in (made.concept.weight, made.concept.bias))
    L = made.vectors.detach().numpy() if made.tau else None
    out = np.zeros((len(bag), N_LABELS))
    for i, x in enumerate(bag):
        h = np.maximum(W1 @ x + b1, 0)
        v1 = np.maximum(W2 @ h + b2, 0)
        for k in range(N_LABELS):
            out[i, k] = max(v1[c * N_LABELS + k] for c in range(CONCEPTS))
    if L is not None:
        for k in range(N_LABELS):
            near = [made.tau * x @ L[k] / np.linalg.norm(x) / np.linalg.norm(L[k]) for x in bag]
            weight = np.exp(near) / np.exp(near).sum()
            out[:, k] *= len(bag) * weight
    return out + made.bias.detach().numpy()


@pytest.mark.parametrize("tau", [0.0, 2.0, 30.0])
def test_scores_are_what_the_formulas_say(X, tau):
    made = network(tau)
    expected = [slowly(made, bag).max(axis=0) for bag in bags(X)]
    np.testing.assert_allclose(scores(made, X), expected, atol=1e-4)


def test_a_mask_of_no_strength_is_deep_miml(X):
    plain, masked = network(0.0), network(2.0)
    masked.load_state_dict(plain.state_dict(), strict=False)
    assert not np.allclose(scores(masked, X), scores(plain, X))
    masked.tau = 0.0
    np.testing.assert_array_equal(scores(masked, X), scores(plain, X))
    masked.tau = 1e-9
    np.testing.assert_allclose(scores(masked, X), scores(plain, X), rtol=1e-5)


@pytest.mark.parametrize("exclusive", [False, True])
def test_a_bag_scores_the_same_alone_and_beside_larger_ones(X, exclusive):
    made = network(exclusive=exclusive)
    together = scores(made, X)
    for bag, size, expected in zip(bags(X), SIZES, together, strict=True):
        np.testing.assert_allclose(scores(made, bag, [size])[0], expected, atol=1e-5)


def test_the_order_of_instances_does_not_matter(X):
    made = network()
    turned = np.concatenate([bag[::-1] for bag in bags(X)])
    np.testing.assert_allclose(scores(made, turned), scores(made, X), atol=1e-5)


def test_a_bag_of_one_needs_no_mask(X):
    masked = network(5.0)
    ones = [1] * len(X)
    expected = [slowly(masked, x[None])[0] for x in X]
    np.testing.assert_allclose(scores(masked, X, ones), expected, atol=1e-4)


@pytest.mark.parametrize("learn_vectors", [False, True])
def test_all_that_is_trained_gets_a_gradient(X, learn_vectors):
    encoder = torch.nn.Sequential(torch.nn.Linear(N_FEATURES, 9), torch.nn.Tanh())
    made = network(learn_vectors=learn_vectors, encoder=encoder).train()
    counts = torch.tensor([[1.0, 0, 2, 0, 0], [0, 0, 1, 0, 0], [0, 3, 0, 1, 0], [1, 0, 0, 0, 1]])
    values, present = made.masked_scores(torch.from_numpy(X), torch.tensor(SIZES))
    presence_loss(made, values, present, counts).backward()
    moved = {name for name, p in made.named_parameters() if p.grad is not None and bool((p.grad != 0).any())}
    expected = {name for name, _ in made.named_parameters()} - (set() if learn_vectors else {"vectors"})
    assert moved == expected


def losses_by_loops(made, X, counts):
    """Return four losses of the bags, by loops over bags, labels and instances."""

    def entropy(score, has):
        return np.log1p(np.exp(-score)) if has else np.log1p(np.exp(score))

    presence, ranked, shares, lists = [], [], [], []
    for bag, count in zip(bags(X), counts, strict=True):
        s = slowly(made, bag)
        presence += [entropy(s[:, k].max(), count[k] > 0) for k in range(N_LABELS)]
        for k in range(N_LABELS):
            for rank, score in enumerate(sorted(s[:, k], reverse=True)):
                ranked.append(entropy(score, rank < count[k]))
        chances = np.exp(s) / np.exp(s).sum(axis=1, keepdims=True)
        shares.append(-(count / count.sum() * np.log(chances.mean(axis=0))).sum())
        best = np.exp(s.max(axis=0))
        entries = np.repeat(np.arange(N_LABELS), count.astype(int))  # the bag's list of labels
        lists.append(-np.mean([np.log(best[k] / best.sum()) for k in entries]))
    return np.mean(presence), np.mean(ranked), np.mean(shares), np.mean(lists)


def sets_loss_by_loops(made, X, counts, usual, lacking):
    """Return the loss for sets of labels, by loops."""
    outside, missing, mean, expected = [], [], np.zeros(N_LABELS), np.zeros(N_LABELS)
    for bag, count in zip(bags(X), counts, strict=True):
        s, labels = slowly(made, bag), np.flatnonzero(count)
        chances = np.exp(s) / np.exp(s).sum(axis=1, keepdims=True)
        if not labels.size:
            outside.append(0.0)
            missing.append(0.0)
            continue
        outside.append(np.mean([-np.log(row[labels].sum()) for row in chances]))
        missing.append(np.mean([-np.log(1 - np.prod(1 - chances[:, k])) for k in labels]))
        mean += chances.sum(axis=0) / len(X)
        expected[labels] += len(bag) / len(X) * usual[labels] / usual[labels].sum()
    return np.mean(outside) / lacking + np.mean(missing) - (expected * np.log(mean)).sum()


def test_losses_are_what_their_loops_say(X):
    made = network(1.5)
    counts = np.array([[1, 0, 2, 0, 0], [0, 0, 1, 0, 0], [0, 3, 0, 1, 0], [1, 0, 0, 0, 1]], dtype=np.float32)
    values, present = made.masked_scores(torch.from_numpy(X), torch.tensor(SIZES))
    losses = (presence_loss, counts_loss, shares_loss, list_loss)
    found = [loss(made, values, present, torch.from_numpy(counts)).item() for loss in losses]
    np.testing.assert_allclose(found, losses_by_loops(made, X, counts), rtol=1e-4)


def test_the_loss_for_sets_is_what_its_loops_say_also_with_a_bag_without_labels(X):
    made = network(1.5)
    counts = np.array([[1, 0, 2, 0, 0], [0, 0, 1, 0, 0], [0, 3, 0, 1, 0], [0, 0, 0, 0, 0]], dtype=np.float32)
    usual = np.array([0.1, 0.3, 0.2, 0.25, 0.15], dtype=np.float32)
    values, present = made.masked_scores(torch.from_numpy(X), torch.tensor(SIZES))
    found = sets_loss(made, values, present, torch.from_numpy(counts), torch.from_numpy(usual), 0.75)
    np.testing.assert_allclose(found.item(), sets_loss_by_loops(made, X, counts, usual, 0.75), rtol=1e-4)
    found.backward()
    assert all(bool(p.grad.isfinite().all()) for p in made.parameters() if p.grad is not None)


def test_exclusive_scores_are_the_log_odds_of_a_softmax(X):
    made = network(0.0, exclusive=True)
    s = slowly(made, X)
    chances = np.exp(s) / np.exp(s).sum(axis=1, keepdims=True)
    found = scores(made, X, [1] * len(X))
    np.testing.assert_allclose(1 / (1 + np.exp(-found)), chances, atol=1e-5)
    assert np.isfinite(log_odds(torch.tensor([0.0, -1e-30, -100.0])).numpy()).all()


def test_shapes_that_do_not_fit_are_refused():
    with pytest.raises(ParameterError, match="needs label_vectors"):
        DeepMIML(3, 2, tau=1.0)
    with pytest.raises(ParameterError, match=r"must have the shape \(2, 3\)"):
        DeepMIML(3, 2, tau=1.0, label_vectors=np.ones((3, 2)))
    with pytest.raises(ParameterError, match="one row per instance"):
        DeepMIML(3, 2, encoder=torch.nn.Flatten(0))
