"""Compare PRIME with its relatives on two data sets: accuracy, ablations, unseen labels, speed. Made for one GPU.

    python benchmarks/prime/vs_relatives.py prepare --data FOLDER   # where the data is: writes the folder prime-carry
    python benchmarks/prime/vs_relatives.py train --only yso-titles   # on the GPU, with prime-carry beside it
    python benchmarks/prime/vs_relatives.py train --only yso-titles --parts ablation zero-shot free --resume
    python benchmarks/prime/vs_relatives.py speed
    python benchmarks/prime/vs_relatives.py trees --only yso-titles   # trees on words, and on words and PRIME's vectors
    python benchmarks/prime/vs_relatives.py serve   # on a CPU
    python benchmarks/prime/vs_relatives.py new-labels   # on a CPU
    python benchmarks/prime/vs_relatives.py plot   # draws docs/prime.svg from the file of results

`train` runs every model of the parts asked for: "main" the frozen encoder, siamese triplets with a fixed margin (as
NGAME), with free vectors (as DEXA), PRIME-lite, PRIME (twice the batch, as published), and on top of it the classifier
alone, PRIME(W), and mixed with the prototypes, PRIME(θ, W); "ablation" PRIME-lite without one part at a time; "free" by
the number of free vectors; "zero-shot" with a tenth of the labels held out and added by their texts. All share the
encoder, the number of epochs, the learning rate and, but for PRIME, the batch; scores are on the test rows, and nothing
was chosen by them. Each model is a line in the file of results, written as it is found; `--resume` goes on.
The weights of PRIME's encoder are kept in pieces for `trees`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.harness.program import DOCS, make_parser, read_results
from benchmarks.harness.timing import folder_bytes
from benchmarks.prime.carried_data import LENGTH, prepare, prepare_encoder
from benchmarks.prime.figure import draw
from benchmarks.prime.new_labels import run_new_labels
from benchmarks.prime.runs import ABLATION, LR, MAIN
from benchmarks.prime.serve import run_serve
from benchmarks.prime.speed import run_speed
from benchmarks.prime.train import run_train
from benchmarks.prime.trees import run_trees

DATA = tuple(LENGTH)


def run_prepare(args: argparse.Namespace) -> None:
    """Write the data sets and the encoder into the folder that is carried to the GPU."""
    for file in [prepare_encoder(args.work), *(prepare(name, args.data, args.work) for name in args.only)]:
        print(f"{file}: {folder_bytes(file) / 2**20:.1f} MiB")


def run_plot(args: argparse.Namespace) -> None:
    """Draw the figure from the file of results."""
    draw(read_results(args.output), DATA, tuple(ABLATION), args.figure)


STAGES: dict[str, Callable[[argparse.Namespace], None]] = {
    "prepare": run_prepare,
    "train": run_train,
    "speed": run_speed,
    "trees": run_trees,
    "serve": run_serve,
    "new-labels": run_new_labels,
    "plot": run_plot,
}


def options() -> argparse.Namespace:
    parser = make_parser(__doc__, "prime.json", data="optional", seeds=(0,), resume=True)
    parser.add_argument("stage", choices=tuple(STAGES))
    parser.add_argument("--work", type=Path, default=Path("prime-carry"), help="folder of prepared data and encoder")
    parser.add_argument("--only", nargs="+", choices=DATA, default=list(DATA))
    parser.add_argument("--parts", nargs="+", choices=("main", "ablation", "free", "zero-shot"), default=["main"])
    parser.add_argument("--epochs", type=int, help="instead of those of the data set")
    parser.add_argument("--lr", type=float, default=LR)
    parser.add_argument("--rows", type=int, help="train on so many rows, drawn at random")
    parser.add_argument("--held-out", type=int, default=0, help="score so many training rows in place of the test rows")
    parser.add_argument("--weight", type=float, help="in `trees`: of the vectors beside the words")
    parser.add_argument("--share", type=float, default=6.0, help="of PRIME's scores, added to those of a tree")
    parser.add_argument("--models", nargs="+", choices=tuple(MAIN), help='only these of the part "main"')
    parser.add_argument("--ours", action="store_true", help="in `speed`: do not time sentence-transformers again")
    parser.add_argument("--minutes", type=float, help="begin nothing new after so long")
    parser.add_argument("--keep", type=Path, default=Path("prime-kept"), help="folder for the weights of encoders")
    parser.add_argument("--figure", type=Path, default=DOCS / "prime.svg", help="in `plot`")
    args = parser.parse_args()
    if args.stage == "prepare" and args.data is None:
        parser.error("the stage prepare needs --data FOLDER")
    return args


def main() -> None:
    args = options()
    STAGES[args.stage](args)


if __name__ == "__main__":
    main()
