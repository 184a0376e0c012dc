"""Save and resume the state of a training: weights, optimisers, random numbers and position, as arrays and JSON.

A checkpoint is written as a model folder is: to new files, with digests, and made valid by one rename. It belongs to
one training: the same data, settings, seed and first weights. Another training in the same folder has its own.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn

from longtail.errors import ModelError, ParameterError
from longtail.storage import Part, load_folder, read_manifest, save_folder
from longtail.training.schema import CHECKPOINT, CHECKPOINT_FOLDER

KIND = CHECKPOINT.kind
ANY_VERSION = "training."
Weights = dict[str, torch.Tensor]
NUMBERS = ("epoch", "step", "best_loss", "epochs_since_best")  # of the state, saved as JSON


@dataclass(frozen=True)
class Epoch:
    """Record of one epoch.

    Attributes
    ----------
    epoch : int
        Its number, from 1.
    loss : float
        Mean loss on the training rows.
    valid_loss : float or None
        Loss on the held-out rows, if there are any.
    best : bool
        Whether it was better on the held-out rows than every earlier epoch.
    seconds : float
        Time it took.
    valid_precision : float or None
        Precision on the held-out rows, where it decides which epoch is best; None where the loss does.
    """

    epoch: int
    loss: float
    valid_loss: float | None
    best: bool
    seconds: float
    valid_precision: float | None = None


class Validation(NamedTuple):
    """Loss and precision on held-out rows; the epoch with the highest precision is the best.

    Patience begins when an epoch has been better than `floor`, such as the precision of no training at all.
    """

    loss: float
    precision: float
    floor: float = 0.0


@dataclass
class TrainingState:
    """All that changes in a training.

    Attributes
    ----------
    model : nn.Module
        The network, changed in place.
    optimizers : list of torch.optim.Optimizer
        Its optimisers.
    extra : dict of str to Tensor
        Further tensors that change in place.
    loss_sum : Tensor
        Sum of the losses of the finished steps of the current epoch.
    epoch, step : int
        Finished epochs, and finished steps of the epoch after them.
    best_loss : float or None
        Lowest loss on the held-out rows; of precisions, which are to be high, the lowest negative.
    best : dict of str to Tensor, or None
        Weights of the epoch that had it.
    epochs_since_best : int
        Epochs after that one.
    history : list of Epoch
        Records of the finished epochs.
    """

    model: nn.Module
    optimizers: list[torch.optim.Optimizer]
    extra: dict[str, torch.Tensor]
    loss_sum: torch.Tensor
    epoch: int = 0
    step: int = 0
    best_loss: float | None = None
    best: Weights | None = None
    epochs_since_best: int = 0
    history: list[Epoch] = field(default_factory=list)


def copy_weights(model: nn.Module) -> Weights:
    """Return a copy of all weights."""
    return {name: value.detach().clone() for name, value in model.state_dict().items()}


def check_folder(folder: object) -> Path:
    """Return the folder for checkpoints if they can be written there: an hour's work must not end in a refusal."""
    if not isinstance(folder, str | Path) or str(folder) in ("", ".") or "\0" in str(folder):
        raise ParameterError(
            name="checkpoint", allowed="the name of a folder of its own", got=str(folder), optional=", or None"
        )
    path = Path(folder)
    try:
        path.exists()
    except OSError as error:
        raise ParameterError(name="checkpoint", problem=f"cannot be used: {error.strerror}.") from error
    if path.exists() and not path.is_dir():
        raise ParameterError(name="checkpoint", problem=f"must be the name of a folder; {path} is a file.")
    if (path / "manifest.json").exists():
        raise ModelError(f"{path} is a model folder; give checkpoint a folder of its own.")
    is_new = not path.exists()
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ModelError(f"{path} cannot be made for checkpoints: {error.strerror}.") from error
    if not os.access(path, os.W_OK):
        raise ModelError(f"{path} cannot be written to; checkpoint must be a folder that can.")
    if is_new:
        path.rmdir()
    return path


class Checkpoint:
    """The checkpoint of one training within a folder.

    Parameters
    ----------
    folder : str or Path
        Folder of checkpoints.
    identity : JSON
        Tells this training from others: its data and settings.
    model : nn.Module
        The network before training; its weights are part of the identity.
    minutes : float, default=10.0
        Minutes between two checkpoints.

    Attributes
    ----------
    planned : int or None
        Epochs of the training, saved beside its state, where they were planned when it began.
    """

    def __init__(self, folder: str | Path, identity: object, model: nn.Module, minutes: float = 10.0) -> None:
        check_folder(folder)
        digest = hashlib.sha256(json.dumps(identity, sort_keys=True).encode())
        for name, value in sorted(model.state_dict().items()):
            digest.update(f"{name} {tuple(value.shape)}".encode())
            digest.update(value.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().tobytes())
        self.path: Path = Path(folder) / digest.hexdigest()[:16]
        self.minutes = minutes
        self.planned: int | None = None
        self._last_saved = time.monotonic()
        for path, kind in self._others():
            if kind != KIND:
                raise ModelError(
                    f"{path} is a checkpoint of another version ({kind}, not {KIND}); remove it to start again."
                )

    def save_if_due(self, state: TrainingState) -> None:
        """Save the state if the last checkpoint is `minutes` old."""
        if time.monotonic() - self._last_saved >= 60 * self.minutes:
            self.save(state)

    def save(self, state: TrainingState) -> None:
        """Save the state; a crash while writing leaves the checkpoint before."""
        arrays = {f"model.{name}": _array(value) for name, value in state.model.state_dict().items()}
        arrays |= {f"best.{name}": _array(value) for name, value in (state.best or {}).items()}
        arrays |= {f"extra.{name}": _array(value) for name, value in state.extra.items()}
        for which, optimizer in enumerate(state.optimizers):
            for number, values in optimizer.state_dict()["state"].items():
                arrays |= {f"optimizer.{which}.{number}.{name}": _array(value) for name, value in values.items()}
        arrays["loss_sum"] = _array(state.loss_sum)
        arrays["random.cpu"] = torch.get_rng_state().numpy()
        if state.loss_sum.is_cuda:
            arrays["random.cuda"] = torch.cuda.get_rng_state(state.loss_sum.device).numpy()
        params: dict[str, Any] = {name: getattr(state, name) for name in NUMBERS}
        params["history"] = [asdict(record) for record in state.history]
        if self.planned is not None:
            params["planned"] = self.planned
        save_folder(self.path, KIND, {"training": Part(KIND, params, arrays)})
        self._last_saved = time.monotonic()

    def restore(self, state: TrainingState) -> bool:
        """Bring a training to the saved state; say whether there was one."""
        part = self._load()
        if part is None:
            return False
        device = state.loss_sum.device
        try:
            for name in NUMBERS:
                setattr(state, name, part.params[name])
            state.history = [Epoch(**record) for record in part.params["history"]]
            state.model.load_state_dict(_under(part, "model.", device))
            state.best = _under(part, "best.", device) or None
            for name, tensor in state.extra.items():
                tensor.copy_(_tensor(part.array(f"extra.{name}")))
            state.loss_sum = _tensor(part.array("loss_sum")).reshape(()).to(device)
            for which, optimizer in enumerate(state.optimizers):
                optimizer.load_state_dict(_optimizer_state(part, which, optimizer))
            torch.set_rng_state(_tensor(part.array("random.cpu")))
            if device.type == "cuda" and "random.cuda" in part.arrays:
                torch.cuda.set_rng_state(_tensor(part.array("random.cuda")), device)
        except (TypeError, ValueError, KeyError, RuntimeError) as error:
            raise ModelError(f"{self.path} is damaged; remove it to start again.") from error
        return True

    def planned_epochs(self) -> int | None:
        """Return how many epochs were planned when the training that is saved here began, if there is one."""
        part = self._load()
        return None if part is None else part.params.get("planned")

    def _load(self) -> Part | None:
        """Return what is saved of this training, if anything."""
        if not (self.path / "manifest.json").exists():
            return None
        try:
            return load_folder(self.path, {KIND: CHECKPOINT_FOLDER}).parts["training"]
        except ModelError as error:
            raise ModelError(
                f"{self.path} is damaged; remove it to start again ({str(error).removesuffix('.')})."
            ) from error

    def refuse_others(self) -> None:
        """Refuse a folder that holds the checkpoint of another training."""
        if others := self._others():
            raise ModelError(
                f"{self.path.parent} holds the checkpoint of a training on other data or with other settings "
                f"({others[0][0].name}); give another folder or remove that one."
            )

    def _others(self) -> list[tuple[Path, str]]:
        """Return path and kind of the checkpoints of other trainings in the same folder."""
        others = []
        for manifest in sorted(self.path.parent.glob("*/manifest.json")):
            with contextlib.suppress(ModelError):
                kind = str(read_manifest(manifest.parent).get("kind"))
                if manifest.parent != self.path and kind.startswith(ANY_VERSION):
                    others.append((manifest.parent, kind))
        return others

    def remove(self) -> None:
        """Remove the checkpoint, since its training is done, and its folder if nothing else is in it."""
        shutil.rmtree(self.path, ignore_errors=True)
        with contextlib.suppress(OSError):  # not empty, or not there
            self.path.parent.rmdir()


def _array(value: torch.Tensor | int) -> np.ndarray:
    return value.detach().cpu().numpy() if isinstance(value, torch.Tensor) else np.asarray(value, dtype=np.int64)


def _tensor(array: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(np.array(array))  # a copy: the mapped array cannot be written to


def _under(part: Part, prefix: str, device: torch.device) -> Weights:
    return {name: _tensor(array).to(device) for name, array in part.under(prefix).items()}


def _optimizer_state(part: Part, which: int, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    state: dict[int, dict[str, Any]] = {}
    prefix = f"optimizer.{which}."
    for name, array in part.arrays.items():
        if name.startswith(prefix):
            number, what = name.removeprefix(prefix).split(".")
            value: Any = _tensor(array)
            if what == "step":  # a tensor in some optimisers, a whole number in others
                value = value.reshape(()) if value.is_floating_point() else int(value)
            state.setdefault(int(number), {})[what] = value
    return {"state": state, "param_groups": optimizer.state_dict()["param_groups"]}
