"""The fast search says what one full linear program per set says, whatever the mode, solver or number of threads."""

import json

import numpy as np
import pytest

from longtail import audit
from longtail.audit import reference_lp as highs
from longtail.audit.audited_layer import AuditedLayer
from longtail.audit.certificate import Certificate, KnownProofs
from longtail.audit.certificate_search import audit_set
from longtail.audit.proof import prove


def layer(n, d, seed, kind="random"):
    rng = np.random.default_rng(seed)
    W = rng.standard_normal((n, d))
    if kind == "alike":  # rows in a few directions, as trained layers have them
        W = rng.standard_normal((6, d))[rng.integers(6, size=n)] + 0.2 * W
    H = rng.standard_normal((25, d))
    few = np.zeros((25, n))
    for row in few:
        row[rng.choice(n, rng.integers(1, 6), replace=False)] = 1
    return W, np.concatenate([few, H @ W.T > 0]), H


@pytest.mark.parametrize("kind", ["random", "alike"])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("solver", ["highspy", "scipy"])
def test_same_as_one_full_linear_program_per_set(kind, bias, solver, monkeypatch):
    if solver == "highspy":
        pytest.importorskip("highspy")
    else:
        monkeypatch.setattr(highs, "has_highspy", lambda: False)
    W, Y, _ = layer(300, 12, 0, kind)
    offsets = np.random.default_rng(1).standard_normal(300) if bias else None
    found = audit.argmaxable(W, Y, bias=offsets, box=100)
    problem = AuditedLayer.read(W, offsets, 100)
    assert found.n_sets("undecided") == 0 and found.reachable.any() and found.impossible.any()
    for i, members in enumerate(found.members):
        x, r, rows, weights = highs.solve_with_all_rows(problem, members)
        proof = prove(problem, members, Certificate(x, rows, weights))
        assert proof.reachable == found.reachable[i]
        assert found.radius[i] == pytest.approx(max(r, 0), rel=1e-6, abs=1e-8)
        assert highs.solve_by_row_generation(problem, members, members)[1] == pytest.approx(r, rel=1e-7, abs=1e-7)


def test_a_bound_decides_the_same_sets():
    W, Y, H = layer(400, 10, 3)
    exact, bound = audit.argmaxable(W, Y), audit.argmaxable(W, Y, radius="bound", inputs=H)
    assert exact.verdicts.tolist() == bound.verdicts.tolist()
    assert (bound.radius <= exact.radius * (1 + 1e-9)).all() and (exact.radius <= bound.radius_at_most + 1e-9).all()
    assert bound.how.count("given input") == 25


def test_threads_change_nothing():
    W, Y, _ = layer(500, 8, 4)
    one, two = (audit.argmaxable(W, Y, n_jobs=jobs) for jobs in (1, 3))
    assert one.facts() == two.facts()
    for a, b in zip(one.certificates, two.certificates):
        assert a.to_facts() == b.to_facts()


def test_eps_sets_the_bar():
    W, Y, _ = layer(200, 6, 5)
    free = audit.argmaxable(W, Y)
    half = float(np.median(free.radius[free.reachable]))
    strict = audit.argmaxable(W, Y, eps=half)
    assert strict.reachable.tolist() == free.reachable.tolist()
    assert ((strict.verdicts == "eps-argmaxable") == (free.radius >= half)).all()
    assert 0 < strict.n_sets("argmaxable") < strict.reachable.sum()


def test_the_radius_grows_with_the_box():
    W, Y, _ = layer(200, 6, 6)
    small, large = (audit.argmaxable(W, Y, box=box) for box in (1.0, 1e6))
    np.testing.assert_allclose(large.radius, small.radius * 1e6, rtol=1e-9)


def test_rows_with_the_same_set_are_audited_once():
    W, Y, _ = layer(100, 5, 7)
    once, twice = audit.argmaxable(W, Y), audit.argmaxable(W, np.concatenate([Y, Y]))
    assert len(twice) == len(once) and twice.set_of_row.size == 2 * once.set_of_row.size
    assert twice.counts.tolist() == (2 * once.counts).tolist()
    sizes = [m.size for m in twice.members]
    assert sizes == sorted(sizes)
    for row, number in enumerate(twice.set_of_row):
        assert np.flatnonzero(np.concatenate([Y, Y])[row]).tolist() == twice.members[number].tolist()


def test_a_proof_serves_every_set_it_fits():
    known = KnownProofs()
    certificate = Certificate(labels=np.array([1, 4, 7]), weights=np.array([1.0, 1.0, 1.0]))
    known.add(np.array([1, 2]), certificate)  # says: not 1 on with 4 and 7 off
    assert known.find(np.array([1, 9])) is certificate
    assert known.find(np.array([1, 4])) is None and known.find(np.array([2])) is None
    rng = np.random.default_rng(0)
    W = rng.standard_normal((300, 5))
    Y = (rng.random((400, 300)) < 0.02).astype(float)
    Y[:, 0] = 1
    found = audit.argmaxable(W, Y)
    assert found.how.count("proof of another set") > 0
    for i in range(0, len(found), 7):
        assert audit.check_certificate(W, found.members[i], found.certificates[i]).reachable is bool(found.reachable[i])


def test_highs_takes_over_when_the_kernel_fails(monkeypatch):
    monkeypatch.setattr("longtail.audit.certificate_search.find_centre", lambda *args: None)
    W, Y, _ = layer(150, 5, 8)
    problem = AuditedLayer.read(W)
    for row in Y[::5]:
        members = np.flatnonzero(row)
        outcome = audit_set(problem, members, 1e-8, True, {})
        assert outcome.how == "HiGHS" and outcome.verdict != "undecided"


def test_facts_are_json_and_add_up():
    W, Y, _ = layer(120, 5, 9)
    names = [f"label {i}" for i in range(120)]
    calls = []
    found = audit.argmaxable(W, Y, progress=lambda done, total: calls.append((done, total)))
    assert calls[-1] == (len(found), len(found))
    facts = json.loads(json.dumps(found.facts(names, most=3)))
    assert sum(facts["sets"].values()) == facts["n_sets"] == len(found)
    assert sum(facts["rows"].values()) == facts["n_rows"] == 50
    assert len(facts["impossible"]) == len(facts["hardest"]) == 3
    assert facts["impossible"][0]["labels"][0].startswith("label ")
    radii = [entry["radius"] for entry in facts["hardest"]]
    assert radii == sorted(radii) and facts["hardest"][0]["radius_over_box"] == pytest.approx(radii[0] / 1e4)
    assert "not argmaxable" in repr(found) and "120 labels in 5 dimensions" in repr(found)
    detail = found.set_facts(0, certificate=True)
    assert json.loads(json.dumps(detail))["certificate"]


@pytest.mark.parametrize("scale", [1e-150, 1e-12, 1e12, 1e150])
def test_the_scale_of_the_weights_does_not_matter(scale):
    W, Y, _ = layer(80, 4, 10)
    one, other = audit.argmaxable(W, Y), audit.argmaxable(W * scale, Y)
    assert one.verdicts.tolist() == other.verdicts.tolist() and one.n_sets("undecided") == 0
    np.testing.assert_allclose(one.radius, other.radius, rtol=1e-6)
    mixed = audit.argmaxable(W * np.where(np.arange(80) % 2, 1, scale)[:, None], Y)
    assert mixed.verdicts.tolist() == one.verdicts.tolist()
