"""Training by several processes, as torchrun starts them."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytestmark = pytest.mark.torch

PROGRAM = """
import sys
import numpy as np
from longtail.prime.estimator import Prime
texts = [f"{a} {b}" for a in ("red", "green", "old", "new") for b in ("apple", "car", "house")] * 4
Y = np.array([[t.endswith("apple"), t.endswith("car"), t.endswith("house"), "red" in t] for t in texts], dtype=float)
settings = {"epochs": 4, "batch_size": 13, "lr": 3e-3, "device": "cpu", "n_jobs": 1}
model = Prime({"width": 16, "layers": 1, "heads": 2}, **settings).fit(texts, Y, ["apple", "car", "house", "red"])
encoder = {"width": 16, "layers": 1, "heads": 2, "dropout": 0.0}
still = Prime(encoder, **{**settings, "lr": 1e-12, "batch_size": 15}).fit(texts, Y, ["apple", "car", "house", "red"])
centroids = still.network_.centroids.values.numpy()
timed = Prime({"width": 16, "layers": 1, "heads": 2}, **{**settings, "minutes": 1e-6}).fit(
    texts, Y, ["apple", "car", "house", "red"]
)
assert len(timed.history_) == 1
np.savez(sys.argv[1], loss=[r["loss"] for r in model.history_], still=centroids, **model.to_part().arrays)
"""


def test_two_processes_end_with_the_same_network(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    shared = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "OMP_NUM_THREADS": "1"}
    ranks = {str(rank): {**shared, "RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in range(2)}
    started = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(tmp_path / f"{name}.npz")],
            env={**os.environ, **more},
            stderr=subprocess.PIPE,
            text=True,
        )
        for name, more in {**ranks, "alone": {"OMP_NUM_THREADS": "1"}}.items()
    ]
    for process in started:
        _, problems = process.communicate(timeout=300)
        assert process.returncode == 0, problems
    first, second, alone = (dict(np.load(tmp_path / f"{name}.npz")) for name in ("0", "1", "alone"))
    for name, array in first.items():
        assert array.tobytes() == second[name].tobytes(), name
    assert first["loss"][-1] < first["loss"][0]
    # an encoder that stays as it is: centroids move as with one process, in a batch too small to share as well
    np.testing.assert_allclose(first["still"], alone["still"], atol=1e-5)
