"""Where a training stands, on disk: weights, optimiser, random numbers and position, as plain arrays and JSON.

A checkpoint is written as a model folder is: to new files, with digests, and made valid by one rename. It belongs to
one training: the same data, settings, seed and first weights. Another training in the same folder has its own.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from longtail.errors import ModelError, ParameterError
from longtail.storage import Part, load_folder, read_manifest, save_folder

KIND = "training.v1"
Weights = dict[str, torch.Tensor]


@dataclass
class Position:
    """How far a training is, and what it has found so far."""

    epoch: int = 0  # finished epochs
    step: int = 0  # finished steps of the epoch after them
    best_loss: float | None = None  # on the validation rows
    worse: int = 0  # epochs since the best one
    history: list[dict[str, Any]] = field(default_factory=list)


@dataclass
class State:
    """All that changes in a training."""

    model: nn.Module
    optimizers: list[torch.optim.Optimizer]
    at: Position
    best: Weights | None  # of the best epoch, where there are validation rows
    loss_sum: torch.Tensor  # over the finished steps of this epoch


def copy_weights(model: nn.Module) -> Weights:
    """Return a copy of all weights."""
    return {name: value.detach().clone() for name, value in model.state_dict().items()}


def check_folder(folder: Any) -> Path:
    """Return the folder for checkpoints if they can be written there: an hour's work must not end in a refusal."""
    if not isinstance(folder, str | Path) or str(folder) in ("", ".") or "\0" in str(folder):
        raise ParameterError(
            name="checkpoint", allowed="the name of a folder of its own", got=str(folder), optional=", or None"
        )
    path = Path(folder)
    if path.exists() and not path.is_dir():
        raise ModelError(f"{path} is a file; checkpoint must be the name of a folder.")
    if (path / "manifest.json").exists():
        raise ModelError(f"{path} is a model folder; give checkpoint a folder of its own.")
    made = not path.exists()
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ModelError(f"{path} cannot be made for checkpoints: {error.strerror}.") from error
    if not os.access(path, os.W_OK):
        raise ModelError(f"{path} cannot be written to; checkpoint must be a folder that can.")
    if made:
        path.rmdir()
    return path


class Checkpoint:
    """The checkpoint of one training within a folder."""

    def __init__(self, folder: str | Path, identity: Any, model: nn.Module) -> None:
        check_folder(folder)
        digest = hashlib.sha256(json.dumps(identity, sort_keys=True).encode())
        for name, value in sorted(model.state_dict().items()):
            digest.update(f"{name} {tuple(value.shape)}".encode())
            digest.update(value.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().tobytes())
        self.path = Path(folder) / digest.hexdigest()[:16]

    def save(self, state: State) -> None:
        """Write where the training stands; a crash while writing leaves the checkpoint before."""
        arrays = {f"model.{name}": _array(value) for name, value in state.model.state_dict().items()}
        arrays |= {f"best.{name}": _array(value) for name, value in (state.best or {}).items()}
        for which, optimizer in enumerate(state.optimizers):
            for number, values in optimizer.state_dict()["state"].items():
                arrays |= {f"optimizer.{which}.{number}.{name}": _array(value) for name, value in values.items()}
        arrays["loss_sum"] = _array(state.loss_sum)
        arrays["random.cpu"] = torch.get_rng_state().numpy()
        if state.loss_sum.is_cuda:
            arrays["random.cuda"] = torch.cuda.get_rng_state(state.loss_sum.device).numpy()
        save_folder(self.path, KIND, {"training": Part(KIND, asdict(state.at), arrays)})

    def restore(self, state: State) -> bool:
        """Bring a training to where the checkpoint stands; say whether there was one."""
        if not (self.path / "manifest.json").exists():
            return False
        part = load_folder(self.path).parts.get("training")
        if part is None or part.kind != KIND:
            raise ModelError(f"{self.path} is not the checkpoint of a training; remove it to start again.")
        device = state.loss_sum.device
        try:
            state.at = Position(**part.params)
            state.model.load_state_dict(_under(part, "model.", device))
            state.best = _under(part, "best.", device) or None
            state.loss_sum = _tensor(part.array("loss_sum")).reshape(()).to(device)
            for which, optimizer in enumerate(state.optimizers):
                optimizer.load_state_dict(_optimizer_state(part, which, optimizer))
            torch.set_rng_state(_tensor(part.array("random.cpu")))
            if device.type == "cuda" and "random.cuda" in part.arrays:
                torch.cuda.set_rng_state(_tensor(part.array("random.cuda")), device)
        except (TypeError, ValueError, KeyError, RuntimeError) as error:
            raise ModelError(f"{self.path} is damaged; remove it to start again.") from error
        return True

    def others(self) -> list[Path]:
        """Return the checkpoints of other trainings in the same folder."""
        found = []
        for path in sorted(self.path.parent.glob("*/manifest.json")):
            with contextlib.suppress(ModelError):
                if path.parent != self.path and read_manifest(path.parent).get("kind") == KIND:
                    found.append(path.parent)
        return found

    def remove(self) -> None:
        """Remove the checkpoint: its training is done."""
        shutil.rmtree(self.path, ignore_errors=True)


def _array(value: torch.Tensor | int) -> np.ndarray:
    return value.detach().cpu().numpy() if isinstance(value, torch.Tensor) else np.asarray(value, dtype=np.int64)


def _tensor(array: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(np.array(array))  # a copy: the mapped array cannot be written to


def _under(part: Part, prefix: str, device: torch.device) -> Weights:
    return {name: _tensor(array).to(device) for name, array in part.under(prefix).items()}


def _optimizer_state(part: Part, which: int, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    found: dict[int, dict[str, Any]] = {}
    prefix = f"optimizer.{which}."
    for name, array in part.arrays.items():
        if name.startswith(prefix):
            number, what = name.removeprefix(prefix).split(".")
            value: Any = _tensor(array)
            if what == "step":  # a tensor in some optimisers, a whole number in others
                value = value.reshape(()) if value.is_floating_point() else int(value)
            found.setdefault(int(number), {})[what] = value
    return {"state": found, "param_groups": optimizer.state_dict()["param_groups"]}
