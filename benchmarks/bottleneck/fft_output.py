"""Compare the DFT layer's scores with the product with the dense matrix: time and memory, forward and backward.

    python benchmarks/bottleneck/fft_output.py [--device cpu|cuda]

From projected rows (batch, 2k + 1) to the scores of all labels and back to the gradient of the rows, for k = 50 and
10,000 to 1,000,000 labels, one size prime. `layer` is what DFTOutput does, `fft` the same by FFT whatever the size. All
take turns in one process and the ratio of medians counts. With `in order` the scores are permuted too, as for a layer
with an order of labels. Times on a CPU are processor times on one thread, so that other programs on the machine do not
count. Memory is the peak above what is there before, the gradient of the scores left out: of torch's allocator on a
GPU, of a fresh process on a CPU. A GPU also runs the dense product in TF32, which is fast and right to about three
digits. Results are added to the file under the name of the device.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.harness.program import Facts, command, make_parser, processor, read_results, write_results
from benchmarks.harness.terminal import show_table
from benchmarks.harness.timing import medians
from longtail.bottleneck import dft_matrix
from longtail.bottleneck.dft_scores import circle_scores, stretch_tables

K = 50
SIZES = (10_000, 99_991, 100_000, 1_000_000)
WAYS = ("layer", "layer in order", "fft", "dense", "dense TF32")


def main() -> None:
    args = options()
    facts = read_results(args.output) if args.output.exists() else {"devices": {}}
    name = device_name(args.device)
    device = facts["devices"].setdefault(name, {"cells": {}})
    facts["command"] = command()
    device["torch"] = torch.__version__
    cells = device["cells"]
    for n in args.sizes:
        for batch in args.batch:
            key = f"n={n} batch={batch}"
            if args.resume and key in cells:
                continue
            if args.device == "cpu" and n * batch > args.most:
                continue
            cells[key] = cell(n, batch, args)
            print(f"{name}, {key}: {json.dumps(cells[key])}", flush=True)
            write_results(facts, args.output)
    show(facts)


def options() -> argparse.Namespace:
    parser = make_parser(__doc__, "fft_output.json", resume=True)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--batch", type=int, nargs="+", default=[64, 256])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--most", type=int, default=100_000_000, help="leave out cells of more batch × labels on a CPU")
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES), help="numbers of labels")
    return parser.parse_args()


def device_name(device: str) -> str:
    """Return the device's name without full stops, so that it can be a key of a figure."""
    if device == "cuda":
        return torch.cuda.get_device_name().replace(".", "_")
    return f"CPU {processor()}".replace(".", "_")


def cell(n: int, batch: int, args: argparse.Namespace) -> Facts:
    """Return times and memory of all ways at one size."""
    ways = WAYS if args.device == "cuda" else WAYS[:4]
    if args.device == "cuda":
        seconds = timed(n, batch, "cuda", ways, args.repeats)
        peaks = {way: peak_on_gpu(n, batch, way) for way in ways}
    else:  # a process of its own each: the peak of memory of a process never falls
        context = multiprocessing.get_context("fork")
        with context.Pool(1, maxtasksperchild=1) as pool:
            seconds = pool.apply(timed, (n, batch, "cpu", ways, args.repeats))
            peaks = {way: pool.apply(peak_on_cpu, (n, batch, way)) for way in ways}
    return {
        "ms": {way: 1000 * t for way, t in seconds.items()},
        "MB": {way: m / 1e6 for way, m in peaks.items()},
        "faster": {way: seconds["dense"] / seconds[way] for way in ways if way != "dense"},
        "smaller": peaks["dense"] / max(peaks["layer"], 1),
    }


def step(n: int, batch: int, device: str, way: str) -> Callable[[], None]:
    """Return the task that is measured: scores of a batch and the gradient of its rows."""
    torch.manual_seed(0)
    x = torch.randn(batch, 2 * K + 1, device=device, requires_grad=True)
    g = torch.ones(batch, n, device=device)
    if way.startswith("dense"):
        W = fixed_weights(n).to(device)

        def scores() -> torch.Tensor:
            torch.backends.cuda.matmul.allow_tf32 = way.endswith("TF32")
            return torch.nn.functional.linear(x, W)
    else:
        order = torch.randperm(n).to(device) if way.endswith("order") else None
        inverse = None if order is None else torch.argsort(order)

        def scores() -> torch.Tensor:
            return circle_scores(x, n, order, inverse, fft=way == "fft")

    def run() -> None:
        torch.autograd.grad(scores(), x, g)
        if device == "cuda":
            torch.cuda.synchronize()

    return run


def fixed_weights(n: int) -> torch.Tensor:
    """Return the dense matrix, made in pieces so that only the result counts as memory."""
    W = torch.empty(n, 2 * K + 1)
    for at in range(0, n, 10_000):
        rows = torch.arange(at, min(at + 10_000, n))
        W[at : at + 10_000] = torch.from_numpy(dft_matrix(n, K, rows.numpy()))
    return W


def timed(n: int, batch: int, device: str, ways: tuple[str, ...], repeats: int) -> dict[str, float]:
    """Return the median seconds of every way; they take turns."""
    torch.set_num_threads(1)
    clock = time.process_time if device == "cpu" else time.perf_counter
    return medians({way: step(n, batch, device, way) for way in ways}, repeats, clock, warm=1)


def peak_on_cpu(n: int, batch: int, way: str) -> int:
    """Return by how many bytes a step raises the peak of this process, without the gradient of the scores."""
    torch.set_num_threads(1)
    step(1_000, 2, "cpu", way)()  # loads the libraries
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    step(n, batch, "cpu", way)()
    return 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) - 4 * batch * n


def peak_on_gpu(n: int, batch: int, way: str) -> int:
    """Return the peak of torch's allocator in a step, without the gradient of the scores."""
    torch.cuda.empty_cache()
    stretch_tables.cache_clear()  # so that they count
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    step(n, batch, "cuda", way)()
    return torch.cuda.max_memory_allocated() - before - 4 * batch * n


def show(facts: Facts) -> None:
    """Print milliseconds and megabytes of every device."""
    for name, device in facts["devices"].items():
        rows = [
            [key, *(f"{at['ms'][way]:.1f}, {at['MB'][way]:.0f}" if way in at["ms"] else "" for way in WAYS)]
            for key, at in device["cells"].items()
        ]
        show_table(f"{name}: milliseconds, MB", ["", *WAYS], rows)


if __name__ == "__main__":
    main()
