"""Train SetFit on some rows and predict, in its own environment.

Reads a JSON file; writes predictions and times. It imports nothing but SetFit and what comes with it.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

BATCH = 16  # pairs of texts
Trained = tuple[dict[str, float], Callable[[], Any]]


def targets(spec: dict[str, Any]) -> tuple[list[int], Any]:
    """Return the labels in use, and a 0/1 matrix of them."""
    np = importlib.import_module("numpy")
    labels = sorted({label for row in spec["labels"] for label in row})
    number = {label: i for i, label in enumerate(labels)}
    Y = np.zeros((len(spec["texts"]), len(labels)), dtype=np.float32)
    for row, given in enumerate(spec["labels"]):
        Y[row, [number[label] for label in given]] = 1
    return labels, Y


def train_setfit(spec: dict[str, Any], Y: Any) -> Trained:
    """Tune the encoder by pairs of texts and put one logistic regression per label on it."""
    setfit = importlib.import_module("setfit")
    rows = {"text": spec["texts"], "label": Y.astype(int).tolist()}
    model = setfit.SetFitModel.from_pretrained(spec["encoder"], multi_target_strategy="one-vs-rest", device="cpu")
    settings = setfit.TrainingArguments(
        output_dir=spec["output"],
        batch_size=BATCH,
        max_steps=spec["steps"],
        save_strategy="no",
        report_to="none",
    )
    trainer = setfit.Trainer(
        model=model, args=settings, train_dataset=importlib.import_module("datasets").Dataset.from_dict(rows)
    )
    spent, _ = timed(trainer.train)
    return spent, lambda: model.predict_proba(spec["test_texts"], batch_size=64, as_numpy=True)


def timed(task: Callable[[], Any]) -> tuple[dict[str, float], Any]:
    """Run a task; return its seconds and what it returned."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = task()
    return {"seconds": time.perf_counter() - wall, "cpu_seconds": time.process_time() - cpu}, result


def main() -> None:
    spec = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    np = importlib.import_module("numpy")
    importlib.import_module("torch").set_num_threads(spec["threads"])
    labels, Y = targets(spec)
    training, predict = train_setfit(spec, Y)
    prediction, found = timed(predict)
    scores = np.asarray(found, dtype=np.float32)
    best = np.argsort(-scores, axis=1, kind="stable")[:, : spec["k"]]
    output = Path(spec["output"])
    np.savez(output / "top.npz", ids=np.array(labels)[best], scores=np.take_along_axis(scores, best, axis=1))
    facts = {
        **{f"train_{name}": value for name, value in training.items()},
        **{f"predict_{name}": value for name, value in prediction.items()},
        "steps": spec["steps"],
        "batch": BATCH,
    }
    (output / "facts.json").write_text(json.dumps(facts))


if __name__ == "__main__":
    main()
