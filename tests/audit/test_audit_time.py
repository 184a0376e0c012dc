"""An audit ends when its time is over, and when a signal comes, in the middle of one set too."""

import signal
import time

import numpy as np
import pytest

from longtail import audit
from longtail.audit.audited_layer import AuditedLayer
from longtail.audit.chebyshev_centre import find_centre
from longtail.audit.dual_simplex import OPTIMAL

SLOW = 10  # seconds that a loaded machine may take for what takes one


def hard_layer() -> tuple[np.ndarray, np.ndarray]:
    """Return a layer and label sets that take minutes."""
    rng = np.random.default_rng(0)
    return rng.standard_normal((3000, 500)), (rng.random((64, 3000)) < 0.003).astype(float)


class Alarm(Exception):
    pass


@pytest.fixture
def alarm():
    def ring(number, frame):
        raise Alarm

    before = signal.signal(signal.SIGALRM, ring)
    yield lambda seconds: signal.setitimer(signal.ITIMER_REAL, seconds)
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture(autouse=True)
def compiled():
    audit.argmaxable(np.eye(3), np.eye(3))


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_the_seconds_hold_within_a_set(n_jobs):
    W, Y = hard_layer()
    started = time.monotonic()
    found = audit.argmaxable(W, Y, seconds=0.5, n_jobs=n_jobs)
    assert time.monotonic() - started < SLOW
    assert found.n_sets("undecided") > 50 and "no time left" in found.how


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_signal_ends_an_audit(n_jobs, alarm):
    W, Y = hard_layer()
    started = time.monotonic()
    alarm(0.5)
    with pytest.raises(Alarm):
        audit.argmaxable(W, Y, n_jobs=n_jobs)
    assert time.monotonic() - started < SLOW


@pytest.mark.parametrize("seconds", [0.5, None])
def test_highs_ends_in_time_and_by_a_signal(seconds, alarm, monkeypatch):
    monkeypatch.setattr("longtail.audit.certificate_search.find_centre", lambda *args: None)
    W, Y = hard_layer()
    started = time.monotonic()
    if seconds is None:
        alarm(0.5)
        with pytest.raises(Alarm):
            audit.argmaxable(W, Y[:2], n_jobs=1)
    else:
        assert audit.argmaxable(W, Y[:2], seconds=seconds, n_jobs=1).n_sets("undecided") == 2
    assert time.monotonic() - started < SLOW


def test_rounding_does_not_keep_the_search_going():
    rng = np.random.default_rng(3)  # weights of word features: long, mostly 0, and many labels with the same rows
    W = rng.standard_normal((60, 900)) * (rng.random((60, 900)) < 0.3)
    W = np.concatenate([W, W[:20]])
    layer = AuditedLayer.read(W, rng.uniform(-0.2, 0.8, 60)[np.r_[:60, :20]])
    signs = layer.signs(np.array([7, 31, 45]))
    signs[60:] = signs[:20]
    x, basis, weights = np.zeros(900), np.full(901, -1), np.zeros(901)
    given = layer.lp_rows, layer.lp_columns, layer.lp_offsets, signs, 1e-13, np.inf, 200 * 901
    status, r, smallest, pivots, _ = find_centre(*given, x, basis, weights)
    assert status == OPTIMAL and smallest == pytest.approx(r, abs=1e-11) and pivots < 4000
