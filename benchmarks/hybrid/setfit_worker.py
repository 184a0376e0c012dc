"""Train SetFit on some rows and predict, in the environment of SetFit: reads a JSON file, writes predictions and times.

It imports nothing but SetFit and what comes with it.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from pathlib import Path
from typing import Any

BATCH = 16


def main() -> None:
    spec = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    setfit, np = importlib.import_module("setfit"), importlib.import_module("numpy")
    torch = importlib.import_module("torch")
    torch.set_num_threads(spec["threads"])
    labels = sorted({label for row in spec["labels"] for label in row})
    number = {label: i for i, label in enumerate(labels)}
    targets = np.zeros((len(spec["texts"]), len(labels)), dtype=int)
    for row, given in enumerate(spec["labels"]):
        targets[row, [number[label] for label in given]] = 1
    rows = importlib.import_module("datasets").Dataset.from_dict({"text": spec["texts"], "label": targets.tolist()})
    model = setfit.SetFitModel.from_pretrained(spec["encoder"], multi_target_strategy="one-vs-rest", device="cpu")
    settings = setfit.TrainingArguments(
        output_dir=spec["output"], batch_size=BATCH, max_steps=spec["steps"], save_strategy="no", report_to="none"
    )
    trainer = setfit.Trainer(model=model, args=settings, train_dataset=rows)
    trained = _timed(trainer.train)
    asked = _timed(lambda: model.predict_proba(spec["test_texts"], batch_size=64, as_numpy=True))
    scores = np.asarray(asked.pop("result"), dtype=np.float32)
    best = np.argsort(-scores, axis=1, kind="stable")[:, : spec["k"]]
    np.savez(
        Path(spec["output"]) / "top.npz", ids=np.array(labels)[best], scores=np.take_along_axis(scores, best, axis=1)
    )
    facts = {
        "train_seconds": trained["wall"],
        "train_cpu_seconds": trained["cpu"],
        "predict_seconds": asked["wall"],
        "predict_cpu_seconds": asked["cpu"],
        "steps": spec["steps"],
        "batch": BATCH,
        "version": setfit.__version__,
    }
    (Path(spec["output"]) / "facts.json").write_text(json.dumps(facts))


def _timed(task: Any) -> dict[str, Any]:
    """Run a task; return what it returned and its seconds."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = task()
    return {"result": result, "wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}


if __name__ == "__main__":
    main()
