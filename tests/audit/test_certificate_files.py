"""Certificates in a file can be checked by anyone, with the file alone."""

import numpy as np
import pytest
import scipy.sparse as sp

from longtail import audit
from longtail.errors import DataError, ParameterError


def sets(n, seed=0, rows=40):
    return (np.random.default_rng(seed).random((rows, n)) < 0.1).astype(float)


@pytest.mark.parametrize("bias", [False, True])
def test_a_file_holds_all_that_is_needed(tmp_path, bias):
    rng = np.random.default_rng(0)
    W, offsets = rng.standard_normal((20, 3)).astype(np.float32), rng.standard_normal(20) if bias else None
    found = audit.argmaxable(W, sets(20), bias=offsets)
    file = audit.save_certificates(tmp_path / "c.npz", found, W, offsets, [f"label {i}" for i in range(20)])
    kept = audit.load_certificates(file)
    assert kept.verdicts == found.verdicts.tolist() and kept.names[3] == "label 3" and kept.box == 1e4
    assert [p.reachable for p in kept.check()] == found.reachable.tolist()
    # by hand, with numpy alone
    with np.load(file, allow_pickle=False) as z:
        starts = np.concatenate([[0], z["x.ends"]])
        for i, verdict in enumerate(z["verdict"]):
            members = z["set.values"][np.concatenate([[0], z["set.ends"]])[i] : z["set.ends"][i]]
            x = z["x.values"][starts[i] : starts[i + 1]]
            if verdict == "not argmaxable":
                assert x.size == 0
            else:
                scores = z["weight"].astype(float) @ x + (z["bias"] if bias else 0)
                assert np.flatnonzero(scores > 0).tolist() == members.tolist()


def test_sparse_layers_and_rankings(tmp_path):
    rng = np.random.default_rng(1)
    W = sp.random_array((12, 2300), density=0.01, rng=rng, format="csr")
    found = audit.argmaxable(W, sets(12, 1))
    kept = audit.load_certificates(audit.save_certificates(tmp_path / "sparse.npz", found, W))
    assert sp.issparse(kept.W) and all(p.reachable for p in kept.check()) and kept.names is None
    vectors = rng.standard_normal((30, 2)) * rng.uniform(0.2, 1, (30, 1))
    ranked = audit.winnable(vectors)
    kept = audit.load_certificates(audit.save_certificates(tmp_path / "classes.npz", ranked, vectors))
    assert [p.reachable for p in kept.check()] == ranked.reachable.tolist() and ranked.impossible.any()


def test_a_false_file_proves_nothing(tmp_path):
    W = np.random.default_rng(0).standard_normal((10, 2))
    found = audit.argmaxable(W, np.eye(10))
    file = audit.save_certificates(tmp_path / "c.npz", found, W)
    with np.load(file) as z:
        arrays = dict(z)
    arrays["verdict"] = np.full(10, "eps-argmaxable")
    np.savez(tmp_path / "false.npz", **arrays)
    assert [p.reachable for p in audit.load_certificates(tmp_path / "false.npz").check()] == found.reachable.tolist()


def test_files_that_cannot_be_used(tmp_path):
    W = np.eye(3)
    found = audit.argmaxable(W, np.eye(3))
    with pytest.raises(ParameterError, match=r"certificates must be written to an \.npz file; got 'c\.json'"):
        audit.save_certificates(tmp_path / "c.json", found, W)
    file = audit.save_certificates(tmp_path / "c.npz", found, W)
    with np.load(file) as z:
        arrays = dict(z)
    for name, change in [
        ("short", {"set.ends": np.array([1])}),
        ("outside", {"set.values": np.array([0, 1, 7])}),
        ("missing", {"box": None}),
    ]:
        np.savez(tmp_path / f"{name}.npz", **{k: v for k, v in (arrays | change).items() if v is not None})
        with pytest.raises(DataError, match="is damaged: its arrays do not fit each other"):
            audit.load_certificates(tmp_path / f"{name}.npz")
    np.savez(tmp_path / "other.npz", a=W)
    with pytest.raises(DataError, match="holds no certificates"):
        audit.load_certificates(tmp_path / "other.npz")
