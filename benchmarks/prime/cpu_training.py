"""What training an encoder on a CPU costs, in float32 and in bfloat16, and what it costs in accuracy.

    python benchmarks/prime/cpu_training.py [--rows 2000] [--epochs 2]

Two things are measured, on debtags with MiniLM and 128 tokens: tokens per second of a batch forward and backward, with
torch's own dropout and with dropout by sixteen bits; and a training of PRIME on some rows, its minutes and its
precision on test rows. A CPU that has no instructions for bfloat16 trains in float32 whatever is asked.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.harness.program import make_parser, start_facts, write_results
from benchmarks.harness.terminal import show_table
from longtail.data import load_bundled
from longtail.encoder import DEFAULT_ENCODER, load_text_encoder, packed
from longtail.metrics import precision_at_k
from longtail.prime import Prime
from longtail.training import computes_bfloat16

BATCH, REPEATS = 96, 5  # texts
CPU = torch.device("cpu")


@contextmanager
def torch_dropout() -> Iterator[None]:
    """Let torch drop numbers, as it did before."""
    others = {"drop_some": F.dropout, "_attend_all": F.scaled_dot_product_attention}
    ours = {name: getattr(packed, name) for name in others}
    vars(packed).update(others)
    try:
        yield
    finally:
        vars(packed).update(ours)


@contextmanager
def dropout_of_longtail() -> Iterator[None]:
    """Change nothing."""
    yield


def tokens_per_second(texts: list[str], mixed: bool) -> dict[str, float]:
    """Return how many tokens go forward, and forward and backward, in a second: the best of some batches."""
    encoder = load_text_encoder(DEFAULT_ENCODER, max_length=128).train()
    tokens = encoder.tokens(texts)
    n_tokens, rows = int(tokens.lengths.sum()), np.arange(len(texts))
    forward, both = [], []
    for _ in range(REPEATS):
        begun = time.perf_counter()
        with torch.autocast("cpu", torch.bfloat16, enabled=mixed):
            (vectors,) = encoder.embed_together((tokens, rows))
        forward.append(time.perf_counter() - begun)
        vectors.square().sum().backward()
        both.append(time.perf_counter() - begun)
    return {"forward": n_tokens / min(forward), "forward and backward": n_tokens / min(both)}


def main() -> None:
    parser = make_parser(__doc__, "prime_cpu_training.json")
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--epochs", type=int, default=2)
    args = parser.parse_args()
    facts = start_facts(args, {"bfloat16": computes_bfloat16(CPU), "threads": torch.get_num_threads(), "speed": {}})
    train, test = load_bundled("debtags", "train"), load_bundled("debtags", "test")
    texts = list(train.texts or ())[:BATCH]
    for precision, mixed in (("float32", False), ("bfloat16", True)):
        for dropout, how in (("dropout of torch", torch_dropout), ("dropout by sixteen bits", dropout_of_longtail)):
            with how():
                facts["speed"][f"{precision}, {dropout}"] = tokens_per_second(texts, mixed)
            write_results(facts, args.output)
    slowest = facts["speed"]["float32, dropout of torch"]["forward and backward"]
    shown = [[name, f"{of['forward and backward']:,.0f}", f"{of['forward and backward'] / slowest:.2f}"]
             for name, of in facts["speed"].items()]  # fmt: skip
    show_table("Tokens of a training batch", ["", "per second", "ratio"], shown)
    rows = np.random.default_rng(0).permutation(train.n_rows)[: args.rows]
    some, Y = [train.texts[i] for i in rows], train.Y[rows]  # type: ignore[index]
    facts["training"] = {"rows": args.rows, "epochs": args.epochs}
    for precision, mixed in (("bfloat16", True), ("float32", False)):
        begun = time.perf_counter()
        model = Prime(epochs=args.epochs, max_length=128, mixed_precision=mixed, device="cpu", random_state=0)
        model.fit(some, Y, train.label_texts or [])
        seconds = time.perf_counter() - begun
        found = model.predict_topk(list(test.texts or ()), k=5)
        facts["training"][precision] = {
            "seconds": seconds,
            **{f"p@{k}": 100 * float(precision_at_k(test.Y, found, k=k)) for k in (1, 5)},
        }
        write_results(facts, args.output)
    measured = [[name, f"{of['seconds']:.0f} s", f"{of['p@1']:.1f}", f"{of['p@5']:.1f}"]
                for name, of in facts["training"].items() if isinstance(of, dict)]  # fmt: skip
    show_table("A training of PRIME", ["", "time", "P@1", "P@5"], measured)


if __name__ == "__main__":
    main()
