"""A `train` that is killed leaves the old model; one that is interrupted says so."""

import random
import signal
import subprocess
import sys
import time

import pytest

from longtail.data import write
from longtail.data.synthetic.generate import make_topics
from longtail.pipeline import load
from longtail.storage import read_manifest


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("killed")
    write(make_topics(400, 12, random_state=0)[0], folder / "rows.jsonl")
    return folder


def start(place, model, seed=0):
    options = ["-o", str(model), "--seed", str(seed)]
    command = [sys.executable, "-m", "longtail", "train", str(place / "rows.jsonl"), *options]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def train(place, model, seed=0):
    process = start(place, model, seed)
    process.communicate()
    assert process.returncode == 0


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_the_old_model_survives_sigkill(place):
    model = place / "model"
    started = time.perf_counter()
    train(place, model)
    seconds = time.perf_counter() - started
    rng = random.Random(0)
    for kill in range(5):
        process = start(place, model, seed=kill + 1)
        time.sleep(rng.uniform(0.3, 1.0) * seconds)
        process.kill()
        process.communicate()
        assert load(model).predict(["anything"])
    train(place, model, seed=9)
    assert {p.name for p in model.iterdir()} == {"manifest.json", *read_manifest(model)["files"]}


@pytest.mark.parametrize(
    ("number", "code", "word"), [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")]
)
def test_an_interrupted_train_says_so_and_writes_nothing(tmp_path, wait_until_at_work, number, code, word):
    options = ["-o", str(tmp_path / "model"), "--method", "ova"]  # 38,449 labels: long enough to be interrupted
    command = [sys.executable, "-m", "longtail", "train", "bundled:debian-relations", *options]
    process = subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        # whoever runs the tests in the background may have them ignore Ctrl-C, and children inherit that
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    wait_until_at_work(process)
    process.send_signal(number)
    _, err = process.communicate()
    assert process.returncode == code and word in err and "Traceback" not in err
    assert not (tmp_path / "model").exists()
