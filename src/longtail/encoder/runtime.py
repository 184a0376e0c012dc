"""Open a saved encoder with what is installed: torch, or ONNX Runtime where torch is not wanted."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

import numpy as np

from longtail.encoder.onnx_graph import ENCODER_PRECISIONS
from longtail.encoder.weights import LAYER_NAMES
from longtail.errors import MissingExtraError, ParameterError
from longtail.storage import Part
from longtail.validate import check_choice

RUNTIMES = ("auto", "torch", "onnx")
DRIVERS = ("/dev/nvidiactl", "/dev/kfd", "/proc/driver/nvidia")  # there if there is a GPU that torch could use


class Encoder(Protocol):
    """Anything that turns texts into vectors of a fixed width."""

    width: int

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Return one float32 row per text."""


def open_encoder(
    part: Part, *, runtime: str = "auto", precision: str = "float32", n_jobs: int | None = None
) -> Encoder:
    """Return a saved encoder, run by torch or by ONNX Runtime.

    Parameters
    ----------
    part : Part
        What was saved of a `TextEncoder`.
    runtime : {"auto", "torch", "onnx"}, default="auto"
        Who runs it; see `pick_runtime`.
    precision : {"float32", "int8"}, default="float32"
        "int8" is faster and a little less accurate; ONNX Runtime only.
    n_jobs : int, default=None
        Threads of ONNX Runtime; None for all cores.

    Returns
    -------
    Encoder
        `encode(texts)` returns one float32 row of length `width` per text, of any length.
    """
    if pick_runtime(runtime, precision, part.params["config"]["model_type"]) == "onnx":
        from longtail.encoder.onnx_encoder import OnnxEncoder

        return OnnxEncoder(part, precision=precision, n_jobs=n_jobs)
    from longtail.encoder.text_encoder import TextEncoder

    return TextEncoder.from_part(part).eval()


def pick_runtime(runtime: str, precision: str, architecture: str, device: object = None) -> str:
    """Return what runs an encoder: "torch" or "onnx".

    "auto" is torch where a GPU may be used, where torch is loaded in this process anyway, and where ONNX Runtime is
    missing or cannot run the architecture; else ONNX Runtime, so that torch need not be loaded.

    >>> pick_runtime("torch", "float32", "bert")
    'torch'
    """
    check_choice("runtime", runtime, RUNTIMES)
    device = None if device is None else str(device)
    eight_bits = check_choice("encoder_precision", precision, ENCODER_PRECISIONS) == "int8"
    if runtime == "onnx" or eight_bits:
        _check_onnx(runtime, eight_bits, architecture, device)
        return "onnx"
    if runtime == "torch" or device not in (None, "cpu") or architecture not in LAYER_NAMES:
        return "torch"
    if not has_onnxruntime():
        if find_spec("torch") is None:
            raise MissingExtraError("Running a trained encoder", "onnxruntime", "onnx")
        return "torch"
    return "torch" if sys.modules.get("torch") is not None or (device is None and has_gpu()) else "onnx"


def _check_onnx(runtime: str, eight_bits: bool, architecture: str, device: object) -> None:
    """Refuse ONNX Runtime, or int8 that only it has, together with what it cannot do."""
    name, got = ("encoder_precision", "int8") if eight_bits else ("runtime", "onnx")
    if architecture not in LAYER_NAMES:
        raise ParameterError(
            name=name, problem=f"must not be '{got}' for an encoder of type '{architecture}', which needs torch."
        )
    if eight_bits and runtime == "torch":
        raise ParameterError(name=name, problem="must be 'float32' with runtime='torch'; got 'int8'.")
    if device not in (None, "cpu"):
        raise ParameterError(name="device", problem=f"must be None or 'cpu' with {name}='{got}'; got {device!r}.")


def has_onnxruntime() -> bool:
    """Say whether what the extra [onnx] installs is there."""
    return find_spec("onnxruntime") is not None and find_spec("tokenizers") is not None


def has_gpu() -> bool:
    """Say whether torch is installed and the machine seems to have a GPU; torch is not loaded for that."""
    return find_spec("torch") is not None and any(Path(driver).exists() for driver in DRIVERS)
