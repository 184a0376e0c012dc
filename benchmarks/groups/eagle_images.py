"""Draw the label vectors that EAGLE learns on Fashion-MNIST, and compare them with the mean images of the classes.

    python benchmarks/groups/eagle_images.py --fashion FOLDER [--seeds 0 1 2] [--figure docs/eagle-images.svg]

The EAGLE paper's Figures 5 and 10: images of 28 x 28 pixels less the mean image, random groups of 4 images whose labels
are known for the group only (with repetitions). FOLDER holds the gz files of Fashion-MNIST. Measured: the cosine of
each label's vector with the mean image of its class, at the start (EAGLE-0), after 20 steps and as `auto` learns it,
and the share of labels given to an image that has them.
"""

from __future__ import annotations

import base64
import struct
import sys
import zlib
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.groups.miml import read_images
from benchmarks.harness.program import DOCS, Facts, make_parser, start_facts, write_results
from benchmarks.harness.scores import mean_and_sd
from benchmarks.harness.terminal import show_table
from longtail.data import group_randomly
from longtail.groups import Eagle
from longtail.report.plots.canvas import WIDTH, drawing, standalone, text

NAMES = ("T-shirt", "trousers", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "boot")
SIZE, SIDE = 4, 28  # images of a group, pixels of a side
SETTINGS: dict[str, Facts] = {"EAGLE-0": {"n_iter": 0}, "EAGLE": {}, "auto": {"assign": "auto", "damping": 0.0}}


def measure(X: np.ndarray, classes: np.ndarray, settings: Facts, seed: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Return the label vectors, their cosines with the mean images of the classes, and the share of right labels."""
    Y = np.eye(len(NAMES), dtype=np.float32)[classes]
    groups, Y_groups = group_randomly(Y, SIZE, random_state=seed)
    eagle = Eagle(threshold=0.0, **settings).fit(X, groups, Y_groups)
    vectors = eagle.label_vectors_.toarray()
    unit = X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-12)
    means = Y.T @ unit
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    found = eagle.row_labels_
    right = float((found.multiply(Y) > 0).sum() / found.nnz)
    return vectors, (vectors * means).sum(axis=1), right


def png(image: np.ndarray) -> str:
    """Return a grey picture of a vector, dark where it is low, as a data address."""
    grey = np.clip(127.5 + 127.5 * image / np.abs(image).max(), 0, 255).astype(np.uint8).reshape(SIDE, SIDE)
    raw = b"".join(b"\0" + line.tobytes() for line in grey)

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    head = struct.pack(">IIBBBBB", SIDE, SIDE, 8, 0, 0, 0, 0)
    parts = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(raw, 9)) + chunk(b"IEND", b"")
    return "data:image/png;base64," + base64.b64encode(parts).decode()


def plot(images: dict[str, np.ndarray]) -> str:
    """Draw the vectors of all labels, a line for each setting."""
    body, top, step = [], 20.0, WIDTH / len(NAMES)
    for title, vectors in images.items():
        body.append(text(0, top - 6, title, css="strong"))
        for number, vector in enumerate(vectors):
            place = f'x="{number * step:.1f}" y="{top:.1f}" width="{step - 4:.1f}" height="{step - 4:.1f}"'
            body.append(f'<image {place} href="{png(vector)}"/>')
        top += step + 24
    body += [text((n + 0.45) * step, top - 14, name, "middle", "soft small") for n, name in enumerate(NAMES)]
    return standalone(drawing(top - 8, "Label vectors learned from groups of four images", ", ".join(NAMES), body))


def main() -> None:
    parser = make_parser(__doc__, "eagle_images.json", seeds=(0, 1, 2))
    parser.add_argument("--fashion", type=Path, required=True, metavar="FOLDER", help="folder of Fashion-MNIST")
    parser.add_argument("--figure", type=Path, default=DOCS / "eagle-images.svg")
    args = parser.parse_args()
    X, classes = read_images(args.fashion, "train")
    X = X - X.mean(axis=0)
    facts: Facts = start_facts(args, {"group": SIZE, "results": {}})
    images: dict[str, np.ndarray] = {}
    for title, settings in SETTINGS.items():
        runs = [measure(X, classes, settings, seed) for seed in args.seeds]
        images[title] = runs[0][0]
        facts["results"][title] = {
            "cosine": mean_and_sd([float(cosines.mean()) for _, cosines, _ in runs]),
            "least cosine": mean_and_sd([float(cosines.min()) for _, cosines, _ in runs]),
            "right, percent": mean_and_sd([100 * right for _, _, right in runs], 2),
        }
        write_results(facts, args.output)
    rows = [[title, *(str(value["mean"]) for value in run.values())] for title, run in facts["results"].items()]
    show_table("label vectors on Fashion-MNIST", ["", "cosine", "least cosine", "right"], rows)
    args.figure.write_text(plot(images), encoding="utf-8")


if __name__ == "__main__":
    main()
