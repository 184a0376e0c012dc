"""Compute what the pictures of docs/methods show: a small tree, labels of pages, a narrow layer, prototypes.

    python benchmarks/pictures/methods.py [--parts label-trees labels-of-groups argmaxability prime] [--resume]

All of it is computed on the bundled data; `prime` and the mask of `labels-of-groups` need the extra `torch` and, for
`prime`, the encoder all-MiniLM-L6-v2. `scripts/draw_methods.py` draws the pictures from the file of results.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.harness.program import make_parser, start_facts, write_results

PARTS = {
    "label-trees": "small_tree",
    "labels-of-groups": "groups_to_rows",
    "argmaxability": "narrow_layer",
    "prime": "prototypes",
}


def main() -> None:
    parser = make_parser(__doc__, "method_pictures.json", resume=True)
    parser.add_argument("--parts", nargs="+", choices=list(PARTS), default=list(PARTS))
    args = parser.parse_args()
    facts = start_facts(args, {}, "torch")
    for part in args.parts:
        print(part, flush=True)
        facts[part] = import_module(f"benchmarks.pictures.{PARTS[part]}").measure()
        write_results(facts, args.output)


if __name__ == "__main__":
    main()
