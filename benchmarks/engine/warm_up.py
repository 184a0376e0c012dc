"""Work that lets every process of an engine load and compile what a training needs, before times are taken."""

from __future__ import annotations

import os
import time
from typing import Any

import numpy as np

from longtail.data.synthetic.generate import make_extreme
from longtail.engine import Arrays, Engine, Work
from longtail.tree import LabelTreeClassifier

PAUSE = 0.5  # seconds that a task lasts at least, so that every process gets one


def train_small(arrays: Arrays, settings: dict[str, Any]) -> None:
    """Train a small tree in this process."""
    small = make_extreme(600, 300, 2000)
    LabelTreeClassifier(max_leaf=20, random_state=0, n_jobs=1).fit(small.X, small.Y).predict_topk(small.X)


def say_which(_: None, task: int) -> Arrays:
    """Return the number of this process."""
    time.sleep(PAUSE)
    return {"process": np.array([os.getpid()])}


WARM_UP = Work(train_small, say_which)


def warm_up(engine: Engine) -> int:
    """Let every process of an engine train something small; return how many there are."""
    return len({int(out["process"][0]) for out in engine.map(WARM_UP, [], {}, list(range(4 * engine.workers)))})
