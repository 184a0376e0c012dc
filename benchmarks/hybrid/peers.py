"""Measure what a user would pick instead of the hybrid, on the same rows and by the same measures.

    python benchmarks/hybrid/peers.py annif --data FOLDER --work WORK --annif ENVIRONMENT/bin/annif
    python benchmarks/hybrid/peers.py encoder --data FOLDER --work WORK
    python benchmarks/hybrid/peers.py setfit --only debtags --work WORK --interpreter ENVIRONMENT/bin/python
    python benchmarks/hybrid/peers.py xr-transformer --data FOLDER --work WORK --interpreter ENVIRONMENT/bin/python
    python benchmarks/hybrid/peers.py join --resume --add FILE

`annif` runs Annif's own commands: Omikuji Bonsai and MLLM, alone, averaged, with weights that Annif's hyperopt finds on
held-out rows, and joined by Annif's neural network. `encoder` puts one classifier per label on the vectors of a frozen
sentence encoder. `setfit` tunes the encoder by pairs of texts, on as many rows as it can take without a GPU.
`xr-transformer` starts xr_transformer.py, which tunes the encoder down a tree of labels (PECOS; needs a GPU).
Each peer and data set is measured once and kept in WORK; the file of results holds all that is there, with --resume
what it held before too, and with --add what xr_transformer.py found on another machine.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.harness.program import ROOT, command, make_parser, read_results, start_facts, write_results
from benchmarks.harness.terminal import show_table
from benchmarks.hybrid.annif_ensemble import CHARACTERS, run_annif
from benchmarks.hybrid.measure import measures
from benchmarks.hybrid.peer_data import DATA, Found, PeerData, read_data
from benchmarks.peers.environments import peer_versions
from longtail.encoder import DEFAULT_ENCODER, find_encoder

XR_TRANSFORMER = "xr-transformer"
COLUMNS = ("p@1", "p@3", "p@5", "psp@1", "psp@3", "psp@5", "r@10", "r@100", "macro_f1@5")
TITLES = {
    "annif-bonsai": "Annif, Omikuji Bonsai alone",
    "annif-mllm": "Annif, MLLM alone",
    "annif-equal": "Annif, ensemble with equal weights",
    "annif-tuned": "Annif, ensemble with weights from its hyperopt",
    "annif-neural": "Annif, neural ensemble",
    "encoder-one-vs-all": "frozen encoder, one logistic regression per label",
    "setfit": "SetFit, few rows",
    "few-rows-words": "longtail one-vs-all on words, the same few rows",
}


def options() -> argparse.Namespace:
    parser = make_parser(__doc__, "hybrid_peers.json", data="optional", resume=True)
    parser.add_argument("peer", choices=(*PEERS, XR_TRANSFORMER, "join"))
    parser.add_argument("--only", nargs="+", choices=DATA, default=list(DATA))
    parser.add_argument("--work", type=Path, default=Path("hybrid-peers"), help="folder for corpora, models and cells")
    parser.add_argument("--annif", type=Path, help="the program annif of the environment it is installed in")
    parser.add_argument("--ngram", type=int, default=1, help="in `annif`: words that count together")
    parser.add_argument("--characters", type=int, default=CHARACTERS, help="in `annif`: of a text that count")
    parser.add_argument("--encoder", default=DEFAULT_ENCODER, help="name or folder")
    parser.add_argument("--interpreter", type=Path, help="interpreter of the environment of SetFit or PECOS")
    parser.add_argument("--rows", type=int, default=1_000, help="of training, for SetFit")
    parser.add_argument("--steps", type=int, default=60, help="of training, for SetFit")
    parser.add_argument("--minutes", type=float, default=4.0, help="of tuning the encoder, for XR-Transformer")
    parser.add_argument("--add", nargs="+", type=Path, default=[], metavar="FILE", help="results of xr_transformer.py")
    parser.add_argument("--no-network", action="store_true", help="in `annif`: leave the neural ensemble out")
    return parser.parse_args()


def run_annif_peer(args: argparse.Namespace, name: str, data: PeerData) -> Found:
    """Run Annif in a folder of its own; one for each of its settings."""
    words = {
        "min_df": 2 if args.ngram == 1 else 5,
        "ngram": args.ngram,
        "characters": args.characters,
    }
    folder = args.work / name / f"annif-{args.ngram}-{args.characters}"
    found = run_annif(data, folder, args.annif.absolute(), words, not args.no_network)
    more = {"settings": words, "versions": peer_versions(args.annif.with_name("python"))}
    return [(peer, {**facts, **more}, top) for peer, facts, top in found]


def run_encoder_peer(args: argparse.Namespace, name: str, data: PeerData) -> Found:
    """Run one classifier per label on frozen vectors."""
    from benchmarks.hybrid.frozen_encoder import run_encoder

    return run_encoder(data, args.work / name, args.encoder)


def run_few_rows_peer(args: argparse.Namespace, name: str, data: PeerData) -> Found:
    """Run SetFit on few rows, beside one-vs-all on the same rows."""
    from benchmarks.hybrid.few_rows import FewRows, run_few_rows

    given = FewRows(args.interpreter.absolute(), args.encoder, args.rows, args.steps)
    return run_few_rows(data, args.work / name, given)


PEERS: dict[str, Callable[[argparse.Namespace, str, PeerData], Found]] = {
    "annif": run_annif_peer,
    "encoder": run_encoder_peer,
    "setfit": run_few_rows_peer,
}


def measure_xr_transformer(args: argparse.Namespace, name: str) -> None:
    """Let the environment of PECOS measure XR-Transformer on one data set and keep what was found."""
    found = args.work / name / f"{XR_TRANSFORMER}.json"
    found.parent.mkdir(parents=True, exist_ok=True)
    encoder = str(find_encoder(args.encoder) or args.encoder)
    words = [str(args.interpreter.absolute()), str(Path(__file__).with_name("xr_transformer.py")), "--name", name]
    words += ["--encoder", encoder, "--out", str(found), "--minutes", str(args.minutes)]
    words += ["--data", str(args.data)] if args.data else []
    folders = [*filter(None, [os.environ.get("PYTHONPATH")]), str(ROOT / "src"), str(ROOT)]
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(folders), "HF_HUB_OFFLINE": "1"}
    subprocess.run(words, check=True, env=variables)
    runs = {peer: {**run, "command": command()} for peer, run in read_results(found)[name].items()}
    write_results(runs, args.work / "cells" / name / f"{XR_TRANSFORMER}.json")


def measure(args: argparse.Namespace, name: str) -> None:
    """Measure one peer on one data set and keep what was found."""
    data = read_data(name, args.data)
    found = {
        peer: {
            "title": TITLES[peer],
            "command": command(),
            **facts,
            **measures(top, data.Y_test, data.counts(), len(data.texts)),
        }
        for peer, facts, top in PEERS[args.peer](args, name, data)
    }
    write_results(found, args.work / "cells" / name / f"{args.peer}.json")


def join(args: argparse.Namespace) -> None:
    """Write all that was measured into the file of results."""
    facts = start_facts(args, {"runs": {}})
    added = [read_results(file) for file in args.add]
    for name in DATA:
        cells = [read_results(cell) for cell in sorted((args.work / "cells" / name).glob("*.json"))]
        runs = {**facts["runs"].get(name, {})}
        for more in (*cells, *(file.get(name, {}) for file in added)):
            runs |= more
        if runs:
            facts["runs"][name] = runs
            rows = [[run["title"], *(f"{run[column]:.2f}" for column in COLUMNS)] for run in runs.values()]
            show_table(name, ["", *COLUMNS], rows)
    write_results(facts, args.output)


def main() -> None:
    args = options()
    if args.peer != "join":
        for name in args.only:
            print(name, flush=True)
            (measure_xr_transformer if args.peer == XR_TRANSFORMER else measure)(args, name)
    join(args)


if __name__ == "__main__":
    main()
