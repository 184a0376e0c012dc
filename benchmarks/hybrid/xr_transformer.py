"""Train PECOS' XR-Transformer on whole data sets and measure it as the hybrid is measured; meant for a GPU.

    python benchmarks/hybrid/xr_transformer.py --data FOLDER --name debtags,yso-titles --encoder FOLDER --out FILE

`peers.py xr-transformer` starts it. The environment needs what longtail needs, torch, and without their dependencies
libpecos 1.2.8, transformers 4.36.2, tokenizers 0.15.2 and a huggingface-hub below 1: libpecos asks for NumPy 1, but
runs with NumPy 2. Settings are those PECOS publishes for the data set nearest in rows and labels; steps and batch
follow the minutes. The words beside the encoder are those of the hybrid's label tree. A data set that fails is told,
and the next one begins.
"""

from __future__ import annotations

import argparse
import importlib
import logging
import math
import shutil
import sys
import tempfile
import time
import traceback
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.harness.program import Facts, read_results, write_results
from benchmarks.harness.timing import timed
from benchmarks.hybrid.measure import K, measures
from benchmarks.hybrid.peer_data import DATA, PeerData, read_data, top_of_pairs
from longtail.data import TopK
from longtail.text import TfidfFeatures

PEER, TITLE = "xr-transformer", "XR-Transformer of PECOS"
PACKAGES = ("libpecos", "transformers", "tokenizers", "torch", "numpy", "scipy")
OPTIONS = ("minutes", "lr", "batch", "recipe", "seed", "rows")  # that change what is measured
LENGTH = {"yso-titles": 32}  # tokens of a text that are read, where texts are short
BATCHES = (32, 64, 128, 256)
EPOCHS, MOST_EPOCHS = 5, 10  # the smallest batch is taken with which 5 passes fit the minutes; no more than 10 are made
WARM_UP = 0.1  # share of the steps of a level
MOST_CLUSTERS = 32_768  # PECOS tunes no level that has more
LEAF = 16  # labels
MANY_ROWS, NARROW = 100_000, 20  # with more rows, the ranker learns from the labels of 20 clusters, else of 100
FEW_STEPS, MORE_STEPS = 10, 40  # that are timed


class Recipe(NamedTuple):
    """Settings published with XR-Transformer for a data set of so many rows and labels.

    `splits` and `top` shape the tree that the encoder is tuned on, `ranker_splits` and `ranker_top` that of the final
    classifiers; `steps` are those of its levels; `beam` counts clusters whose labels serve as negatives; `costs` weigh
    errors on rows with a label and without it, `leaf_costs` on the last level.
    """

    rows: int
    labels: int
    splits: int
    top: int
    ranker_splits: int
    ranker_top: int | None
    steps: tuple[int, ...]
    beam: int
    dropout: float
    threshold: float
    cost_sensitive: bool
    costs: tuple[float, float]
    leaf_costs: tuple[float, float]
    tolerance: float


RECIPES = {
    "eurlex-4k": Recipe(
        *(15_449, 3_956, 16, 16, 8, None, (600, 800, 1200), 5, 0.1, 0.001, False, (1.0, 2.0), (2.0, 4.0), 0.1)
    ),
    "wiki10-31k": Recipe(
        *(14_146, 30_938, 16, 128, 16, None, (1000, 1000, 400), 20, 0.1, 0.001, True, (4.0, 1.0), (4.0, 1.0), 0.1)
    ),
    "amazoncat-13k": Recipe(
        *(1_186_239, 13_330, 8, 128, 8, 128, (5000, 10_000, 30_000), 20, 0.05, 0.0001, True),
        *((0.25, 0.5), (0.25, 0.5), 0.1),  # published: beam 50 and tolerance 0.01, which would take hours
    ),
}


class Training(NamedTuple):
    """What XR-Transformer is trained on: texts, words and labels in use, and how."""

    texts: list[str]
    X: sp.csr_matrix
    Y: sp.csr_matrix
    recipe: Recipe
    encoder: str
    tokens: int
    lr: float
    minutes: float
    batch: int | None


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of the data sets that are not bundled")
    parser.add_argument("--name", required=True, help=f"data sets with commas between them, of {', '.join(DATA)}")
    parser.add_argument("--encoder", type=Path, required=True, help="folder of the encoder")
    parser.add_argument("--out", type=Path, required=True, help="file of results; runs that are there are kept")
    parser.add_argument("--minutes", type=float, default=4.0, help="of tuning the encoder")
    parser.add_argument("--lr", type=float, default=1e-4, help="learning rate; PECOS publishes 5e-5 and 1e-4")
    parser.add_argument("--batch", type=int, help="texts of a step (default: what fits the minutes)")
    parser.add_argument("--recipe", choices=RECIPES, help="settings (default: those of the nearest data set)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rows", type=int, help="of training and of test (default: all)")
    parser.add_argument("--held-out", action="store_true", help="measure on held-out training rows, to choose settings")
    return parser.parse_args()


def mend_libpecos() -> None:
    """Let libpecos 1.2.8 run with NumPy 2, a SciPy of today, and batches that are made without further processes.

    SciPy has moved two functions and takes no tensor for row numbers, NumPy copies by other rules, and a product with
    no threads divides by zero.
    """
    old = vars(importlib.import_module("scipy.sparse.sputils"))
    old["upcast"], old["get_index_dtype"] = np.result_type, sp.get_index_dtype

    def compressed(
        parts: tuple[np.ndarray, np.ndarray, np.ndarray],
        kind: type[sp.csr_matrix] | type[sp.csc_matrix],
        shape: tuple[int, int] | None = None,
        dtype: type[np.generic] | None = None,
        copy: bool = False,
    ) -> sp.csr_matrix | sp.csc_matrix:
        """Return a matrix of values, indices and offsets, copied only if asked for or needed."""
        values, indices, offsets = parts
        return kind((np.asarray(values, dtype), indices, offsets), shape=shape, copy=copy)

    vars(importlib.import_module("pecos.utils.smat_util"))["cs_matrix"] = compressed
    core = importlib.import_module("pecos.core").clib
    product = core.sparse_matmul
    core.sparse_matmul = lambda *given, threads=-1, **named: product(*given, threads=threads or -1, **named)
    is_tensor, item = importlib.import_module("torch").is_tensor, sp.csr_matrix.__getitem__
    sp.csr_matrix.__getitem__ = lambda self, key: item(self, key.numpy() if is_tensor(key) else key)


def readable(encoder: Path, folder: Path) -> str:
    """Return a copy of an encoder that says its weights are torch's: transformers 4.36 reads no other."""
    torch_weights = importlib.import_module("safetensors.torch")
    copy = Path(shutil.copytree(encoder, folder / "encoder"))
    weights = {name: tensor.float() for name, tensor in torch_weights.load_file(encoder / "model.safetensors").items()}
    torch_weights.save_file(weights, copy / "model.safetensors", metadata={"format": "pt"})
    return str(copy)


def nearest_recipe(rows: int, labels: int) -> str:
    """Return the published data set whose numbers of rows and labels have the nearest logarithms.

    >>> nearest_recipe(45_000, 4_108), nearest_recipe(308_000, 25_000), nearest_recipe(48_000, 35_000)
    ('eurlex-4k', 'amazoncat-13k', 'wiki10-31k')
    """
    return min(
        RECIPES, key=lambda name: math.hypot(*np.log([rows / RECIPES[name].rows, labels / RECIPES[name].labels]))
    )


def chosen_rows(data: PeerData, rows: int | None, held_out: bool) -> PeerData:
    """Return the data set, or some of its rows, or its held-out training rows in place of the test rows."""
    train, test = np.arange(len(data.texts)), np.arange(len(data.test_texts))
    texts, Y = data.test_texts, data.Y_test
    if held_out:
        (train, test), texts, Y = data.split(), data.texts, data.Y
    if rows:
        train, test = np.random.default_rng(0).permutation(train)[:rows], test[:rows]
    return data._replace(
        texts=[data.texts[i] for i in train],
        Y=sp.csr_array(data.Y[train]),
        test_texts=[texts[i] for i in test],
        Y_test=sp.csr_array(Y[test]),
    )


def run(args: argparse.Namespace, name: str, encoder: str) -> Facts:
    """Train on one data set, predict its test rows, and return settings, times and measures."""
    torch = importlib.import_module("torch")
    torch.manual_seed(args.seed)
    np.random.seed(args.seed)  # noqa: NPY002  # PECOS draws from it
    torch.backends.cuda.matmul.allow_tf32 = True
    data = chosen_rows(read_data(name, args.data), args.rows, args.held_out)
    used = np.flatnonzero(data.counts())
    recipe = args.recipe or nearest_recipe(len(data.texts), used.size)
    tokens = LENGTH.get(name, 128)
    reading, (X, X_test) = timed(words_of, data)
    given = Training(
        *(data.texts, X, sp.csr_matrix(data.Y[:, used], dtype=np.float32), RECIPES[recipe], encoder),
        *(tokens, args.lr, args.minutes, args.batch),
    )
    training, (model, settings, stages) = timed(train, given)
    prediction, top = timed(predict, model, data.test_texts, X_test, used)
    return {
        "title": TITLE + (" (held-out rows)" if args.held_out else ""),
        "command": command_of(args, name),
        "device": device_name(),
        "train_seconds": reading.wall + training.wall,
        "train_cpu_seconds": reading.cpu + training.cpu,
        "predict_seconds": prediction.wall,
        "predict_cpu_seconds": prediction.cpu,
        "seconds": {"words": reading.wall, **stages},
        "rows": len(data.texts),
        "settings": {"recipe": recipe, **settings, "tokens": tokens, "seed": args.seed},
        "versions": {package: version(package) for package in PACKAGES},
        **measures(top, data.Y_test, data.counts(), len(data.texts)),
    }


def command_of(args: argparse.Namespace, name: str) -> str:
    """Return the command that measures this data set alone, without the folders of this machine."""
    words = ["python benchmarks/hybrid/xr_transformer.py --name", name, "--encoder FOLDER --out FILE"]
    words += ["--data FOLDER"] if args.data else []
    words += [f"--{option} {vars(args)[option]}" for option in OPTIONS if vars(args)[option] is not None]
    return " ".join(words + (["--held-out"] if args.held_out else []))


def words_of(data: PeerData) -> tuple[sp.csr_matrix, sp.csr_matrix]:
    """Return words of training and test texts, weighted by TF-IDF."""
    words = TfidfFeatures()
    X = words.fit_transform(data.texts)
    return sp.csr_matrix(X, dtype=np.float32), sp.csr_matrix(words.transform(data.test_texts), dtype=np.float32)


def train(given: Training) -> tuple[Any, Facts, dict[str, float]]:
    """Train XR-Transformer; return it with its settings and the seconds of its stages."""
    xmc = importlib.import_module("pecos.xmc")
    kind = importlib.import_module("pecos.xmc.xtransformer.model").XTransformer
    matcher = importlib.import_module("pecos.xmc.xtransformer.matcher").TransformerMatcher
    problem = importlib.import_module("pecos.xmc.xtransformer.module").MLProblemWithText
    planting, tree = timed(
        lambda: xmc.Indexer.gen(
            xmc.LabelEmbeddingFactory.pifa(given.Y, given.X), train_params=tree_params(given.recipe, ranker=False)
        )
    )
    levels = [C.shape[0] for C in tree if C.shape[0] <= MOST_CLUSTERS]
    planning, (batch, steps) = timed(plan, given, tree, len(levels))
    chain = [level_params(given, batch, n) for n in level_steps(given.recipe.steps, len(levels), steps)]
    # the tree of the ranker has the depth of any tree of as many labels
    any_tree = np.random.default_rng(0).random((given.Y.shape[1], 2), dtype=np.float32)
    depth = len(list(xmc.Indexer.gen(any_tree, train_params=tree_params(given.recipe, ranker=True))))
    params = kind.TrainParams.from_dict(
        {
            "preliminary_indexer_params": tree_params(given.recipe, ranker=False),
            "refined_indexer_params": tree_params(given.recipe, ranker=True),
            "matcher_params_chain": chain,
            "ranker_params": ranker_params(given.recipe, depth),
            "max_match_clusters": MOST_CLUSTERS,
        }
    )
    asked = kind.PredParams.from_dict(prediction_params(given, len(levels), depth))
    tuned = Stopwatch(matcher, "fine_tune_encoder")
    with tuned:
        fitting, model = timed(
            lambda: kind.train(
                problem(given.texts, given.Y, X_feat=given.X), clustering=tree, train_params=params, pred_params=asked
            )
        )
    settings = {
        "tuned_levels": levels,
        "steps": [level["max_steps"] for level in chain],
        "batch": batch,
        "epochs": sum(level["max_steps"] for level in chain) * batch / given.Y.shape[0],
        "lr": given.lr,
        "minutes": given.minutes,
    }
    stages = {"tree": planting.wall, "plan": planning.wall, "tuning": tuned.seconds}
    return model, settings, {**stages, "the rest of training": fitting.wall - tuned.seconds}


class Stopwatch:
    """Count the seconds spent in a method of a class."""

    def __init__(self, kind: type, method: str) -> None:
        self.kind, self.method, self.seconds = kind, method, 0.0
        self.plain = getattr(kind, method)

    def __enter__(self) -> None:
        def counted(*given: Any, **named: Any) -> Any:
            begun = time.perf_counter()
            try:
                return self.plain(*given, **named)
            finally:
                self.seconds += time.perf_counter() - begun

        setattr(self.kind, self.method, counted)

    def __exit__(self, *error: object) -> None:
        setattr(self.kind, self.method, self.plain)


def tree_params(recipe: Recipe, ranker: bool) -> dict[str, Any]:
    """Return the parameters of the tree that the encoder is tuned on, or of that of the ranker."""
    return {
        "nr_splits": recipe.ranker_splits if ranker else recipe.splits,
        "min_codes": recipe.ranker_top if ranker else recipe.top,
        "max_leaf_size": LEAF,
    }


def level_params(given: Training, batch: int, steps: int) -> dict[str, Any]:
    """Return the parameters of tuning on one level."""
    recipe = given.recipe
    return {
        "model_shortcut": given.encoder,
        "negative_sampling": "tfn+man",
        "loss_function": "weighted-squared-hinge",
        "bootstrap_method": "weighted-linear",
        "threshold": recipe.threshold,
        "hidden_dropout_prob": recipe.dropout,
        "batch_size": batch,
        "batch_gen_workers": 0,
        "max_steps": steps,
        "learning_rate": given.lr,
        "warmup_steps": int(WARM_UP * steps),
        "logging_steps": max(1, steps // 5),
        "save_steps": steps,
        "cost_sensitive_ranker": recipe.cost_sensitive,
    }


def ranker_params(recipe: Recipe, depth: int) -> dict[str, Any]:
    """Return the parameters of the linear classifiers on words and vectors."""
    costs = [recipe.costs] * (depth - 1) + [recipe.leaf_costs]
    solver = {"threshold": recipe.threshold, "eps": recipe.tolerance}
    return {
        "rel_mode": "induce",
        "rel_norm": "l1",
        "hlm_args": {
            "neg_mining_chain": ["tfn"] * (depth - 1) + ["tfn+man"],
            "model_chain": [{**solver, "Cp": seen, "Cn": unseen} for seen, unseen in costs],
        },
    }


def prediction_params(given: Training, levels: int, depth: int) -> dict[str, Any]:
    """Return the parameters of prediction while training; the beam of the ranker brings its negatives."""
    level = {
        "only_topk": given.recipe.beam,
        "post_processor": "l3-hinge",
        "ensemble_method": "concat-only",
        "truncate_length": given.tokens,
    }
    beam = K if given.Y.shape[0] <= MANY_ROWS else NARROW
    inner, leaf = ({"only_topk": beam, "post_processor": how} for how in ("l3-hinge", "noop"))
    return {
        "matcher_params_chain": [level] * levels,
        "ranker_params": {"hlm_args": {"model_chain": [inner] * (depth - 1) + [leaf]}},
    }


def level_steps(published: tuple[int, ...], levels: int, total: int) -> list[int]:
    """Share steps out among the levels as published, the last levels first; each gets one at least.

    >>> level_steps((600, 800, 1200), 3, 2600), level_steps((600, 800, 1200), 2, 1000)
    ([600, 800, 1200], [400, 600])
    """
    parts = [*(published[0] for _ in range(levels - len(published))), *published[-levels:]]
    return [max(1, round(total * part / sum(parts))) for part in parts]


def plan(given: Training, tree: Any, levels: int) -> tuple[int, int]:
    """Return batch size and steps: the smallest batch with which the epochs fit the minutes."""
    rows = given.Y.shape[0]
    batch = steps = 1
    for batch in (given.batch,) if given.batch else BATCHES:
        each = seconds_per_step(given, tree, levels, batch)
        fitting, most = int(60 * given.minutes / each), math.ceil(MOST_EPOCHS * rows / batch)
        steps = max(levels, min(fitting, most))
        print(f"batch {batch}: {1000 * each:.1f} ms a step, {steps * batch / rows:.1f} epochs", flush=True)
        if steps * batch >= EPOCHS * rows:
            break
    return batch, steps


def seconds_per_step(given: Training, tree: Any, levels: int, batch: int) -> float:
    """Time some steps on the last level that is tuned, where most labels are looked at."""
    matcher_kind = importlib.import_module("pecos.xmc.xtransformer.matcher").TransformerMatcher
    setup_device = importlib.import_module("pecos.utils.torch_util").setup_device
    rng = np.random.default_rng(0)
    rows = rng.integers(given.Y.shape[0], size=batch * MORE_STEPS)
    matrices = list(tree)
    Y = given.Y[rows]
    for C in reversed(matrices[levels:]):
        Y = sp.csr_matrix(Y @ C, dtype=np.float32)
    C, M = matrices[levels - 1], None
    if levels > 1:
        beam = rng.integers(C.shape[1], size=(rows.size, given.recipe.beam)).ravel()
        at = np.repeat(np.arange(rows.size), given.recipe.beam)
        drawn = sp.csr_matrix((np.ones(at.size, dtype=np.float32), (at, beam)), shape=(rows.size, C.shape[1]))
        M = sp.csr_matrix(drawn + Y @ C, dtype=np.float32)
    matcher = matcher_kind.download_model(given.encoder, Y.shape[1], hidden_dropout_prob=given.recipe.dropout)
    matcher.text_model.random_init(sparse=M is not None)
    matcher.C = C
    texts = matcher.text_to_tensor([given.texts[row] for row in rows], max_length=given.tokens)
    problem = importlib.import_module("pecos.xmc.xtransformer.module").MLProblemWithText(texts, Y, C=C, M=M)
    matcher.to_device(*setup_device(True))

    def tune(steps: int) -> None:
        matcher.train_params = matcher_kind.TrainParams.from_dict(
            {**level_params(given, batch, steps), "save_steps": 0, "logging_steps": 0}
        )
        matcher.fine_tune_encoder(problem)

    tune(FEW_STEPS)
    few, more = (timed(tune, steps)[0].wall for steps in (FEW_STEPS, MORE_STEPS))
    matcher.clear_cuda()
    return max(more - few, 1e-3) / (MORE_STEPS - FEW_STEPS)


def predict(model: Any, texts: list[str], X: sp.csr_matrix, used: np.ndarray) -> TopK:
    """Return the 100 best labels of every text, of the 100 best clusters."""
    P = model.predict(texts, X, only_topk=K, beam_size=K, batch_size=256, batch_gen_workers=0)
    return top_of_pairs(
        [
            list(zip(used[P.indices[a:b]].tolist(), P.data[a:b].tolist(), strict=True))
            for a, b in zip(P.indptr[:-1], P.indptr[1:], strict=True)
        ],
        K,
    )


def device_name() -> str:
    """Return the name of the GPU, or "cpu"."""
    torch = importlib.import_module("torch")
    return torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu"


def main() -> int:
    args = options()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    mend_libpecos()
    failed = []
    with tempfile.TemporaryDirectory() as folder:
        encoder = readable(args.encoder, Path(folder))
        for name in args.name.split(","):
            print(name, flush=True)
            try:
                found = run(args, name, encoder)
            except Exception:
                traceback.print_exc()
                failed.append(name)
                continue
            runs = read_results(args.out) if args.out.exists() else {}
            runs.setdefault(name, {})[PEER] = found
            write_results(runs, args.out)
            print(name, {key: round(value, 2) for key, value in found.items() if isinstance(value, float)}, flush=True)
    if failed:
        print(f"failed: {', '.join(failed)}", flush=True)
    return len(failed)


if __name__ == "__main__":
    sys.exit(main())
