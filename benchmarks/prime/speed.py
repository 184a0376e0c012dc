"""Compare the training steps of PRIME-lite with those of sentence-transformers: the stage `speed`."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness.program import Facts, write_results
from benchmarks.harness.torch_timing import device, timed_steps, wait
from benchmarks.peers.sentence_transformers_steps import PEERS
from benchmarks.prime.carried_data import LENGTH, Texts, load, some_rows
from benchmarks.prime.runs import BATCH, open_results
from longtail.encoder import load_text_encoder
from longtail.prime import PositiveSampler, Prime
from longtail.prime.fit import loop_settings, prime_loss
from longtail.prime.network import start_network
from longtail.prime.sampling import label_weights
from longtail.prime.settings import resolve_settings
from longtail.prime.train import Examples, PrimeBatch, QueryBank, Stopwatch, batch_loss, make_optimizer, train_prime
from longtail.training import mixed_precision


def run_speed(args: argparse.Namespace) -> None:
    """Compare training steps with those of sentence-transformers, same encoder, batch and texts."""
    facts = open_results(args)
    for name in args.only:
        texts = some_rows(load(name, args.work), args.rows)
        known = facts.setdefault("speed", {}).get(name, {}) if args.ours else {}
        for speed in speeds(texts, args.work / "encoder", BATCH[name], LENGTH[name], known):
            facts["speed"][name] = speed
            write_results(facts, args.output)
        print(name, json.dumps(facts["speed"][name], indent=1), flush=True)


def our_steps(texts: Texts, encoder: Path, batch: int, length: int) -> dict[str, float]:
    """Time whole steps of PRIME-lite: sampling, both encodings, prototypes, the loss, the optimiser."""
    network, bank, tokens, labels, settings, how = _begin(texts, encoder, batch, length, epochs=8)
    optimizer = make_optimizer(network, how)
    sampler = PositiveSampler(texts.Y, label_weights(texts.Y, settings.sampling), settings.n_positives)
    examples, queries, loss = Examples(tokens, labels, texts.Y), QueryBank(bank), prime_loss(settings)
    rng = np.random.default_rng(0)
    network.train()

    def step() -> None:
        rows = rng.integers(len(tokens), size=batch)
        optimizer.zero_grad(set_to_none=True)
        with mixed_precision(device(), how.mixed):
            made = PrimeBatch(rows, sampler(rows, rng), rows, sampler.label_rows(rows))
            value = batch_loss(network, queries, examples, made, loss)
        value.backward()
        optimizer.step()

    return timed_steps(step, batch)


def clusters_and_sampling(texts: Texts, encoder: Path, batch: int, length: int) -> dict[str, float]:
    """Return the shares of sampling and clustering in two epochs, the second of them with new clusters."""
    network, bank, tokens, labels, settings, how = _begin(texts, encoder, batch, length, epochs=2)
    watch = Stopwatch()
    started = time.perf_counter()
    train_prime(network, Examples(tokens, labels, texts.Y), bank, prime_loss(settings), how, stopwatch=watch)
    wait()
    total = time.perf_counter() - started
    return {"seconds": total, **{name: value / total for name, value in watch.seconds.items()}}


def speeds(texts: Texts, encoder: Path, batch: int, length: int, known: Facts) -> Iterator[Facts]:
    """Time our steps and theirs, unless theirs are known, and the share of sampling and clustering in ours.

    Yields all facts so far after each of them.
    """
    facts: Facts = {**known, "batch": batch, "length": length}
    facts["ours"] = our_steps(texts, encoder, batch, length)
    yield facts
    peers = dict(PEERS)
    if missing := [name for name in ("datasets", "accelerate") if find_spec(name) is None]:
        print(f"without {' and '.join(missing)}, their trainer is not timed", flush=True)
        peers = {name: steps for name, steps in PEERS.items() if "trainer" not in name}
    for name, steps in peers.items():
        facts[name] = known.get(name) or steps(texts, encoder, batch, length)
        ours = facts["ours"]["rows_per_s"]
        facts["ratios"] = {peer: ours / facts[peer]["rows_per_s"] for peer in PEERS if peer in facts}
        yield facts
    shares = clusters_and_sampling(texts, encoder, batch, length)
    percent = 100 * (shares["sampling"] + shares["clustering"])
    yield facts | {"shares": shares, "percent_in_sampling_and_clustering": percent}


def _begin(texts: Texts, encoder: Path, batch: int, length: int, epochs: int) -> tuple[Any, ...]:
    """Return a new network with all that its training needs."""
    model = Prime(str(encoder), "prime-lite", epochs=epochs, batch_size=batch)
    params = model.get_params(deep=False)
    settings = resolve_settings(params, *texts.Y.shape)
    made = load_text_encoder(encoder, length).to(device())
    tokens, labels = made.tokens(texts.texts), made.tokens(texts.label_texts)
    network, bank = start_network(
        made,
        tokens,
        labels,
        texts.Y,
        n_free=settings.n_free,
        n_private=settings.n_private,
        mixed=device().type == "cuda",
    )
    return network, bank, tokens, labels, settings, loop_settings(params, settings)
