"""What an audit refuses because no 64-bit float could prove it, and what it refuses to write."""

import numpy as np
import pytest

from longtail import audit
from longtail.errors import DataError, ParameterError

W = np.array([[1.0, 0], [0, 1], [-1, -1]])
SETS = [[1, 1, 0], [1, 1, 1]]


@pytest.mark.parametrize("scale", [1e308, 1e-310])
def test_weights_out_of_range_are_refused(scale):
    with pytest.raises(DataError, match="the largest weight of a row of W must be 0 or from 1e-200 to 1e"):
        audit.argmaxable(W * scale, SETS)


@pytest.mark.parametrize("scale", [1e140, 1e-140])
def test_large_and_small_weights_are_audited_like_others(scale):
    assert audit.argmaxable(W * scale, SETS).verdicts.tolist() == ["eps-argmaxable", "not argmaxable"]


def test_a_box_out_of_range_is_refused():
    with pytest.raises(ParameterError, match="box"):
        audit.argmaxable(W, SETS, box=1e308)


def test_certificates_are_written_only_with_the_layer_they_are_about(tmp_path):
    found, file = audit.argmaxable(W, SETS), tmp_path / "c.npz"
    with pytest.raises(ParameterError, match="W must have a row for every label"):
        audit.save_certificates(file, found, W[:2])
    for names in (["a"], ["a", "a", "b"], ["a", "b", None]):
        with pytest.raises(ParameterError, match="names must be 3 different strings"):
            audit.save_certificates(file, found, W, names=names)
    assert not file.exists()


def test_outputs_never_replace_inputs(tmp_path, run):
    weights, sets = tmp_path / "w.npz", tmp_path / "sets.jsonl"
    np.savez(weights, weight=W, labels=np.array(["a", "b", "c"]))
    sets.write_text('{"labels": ["a", "b"]}\n')
    before = weights.read_bytes(), sets.read_bytes()
    for option, path in (("--report", sets), ("--certificates", weights)):
        sentence = run("audit", "--weights", weights, sets, option, path, code=2)
        assert f"{option} is the file that is read ({path}); give another name." in sentence
    both = ("--report", tmp_path / "x.npz", "--certificates", tmp_path / "x.npz")
    assert "--certificates and --report must be different files" in run(
        "audit", "--weights", weights, sets, *both, code=2
    )
    assert (weights.read_bytes(), sets.read_bytes()) == before


def test_weights_that_cannot_be_used_are_named_with_their_file(tmp_path, run):
    np.savez(tmp_path / "nan.npz", weight=W * np.nan)
    sentence = run("audit", "--weights", tmp_path / "nan.npz", code=3)
    assert "nan.npz cannot be audited: W must be finite" in sentence and sentence.count("\n") == 1
