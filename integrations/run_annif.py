"""Annif 1.4 and longtail together, by Annif's own commands: our backends in Annif, and Annif asking our server.

    python integrations/run_annif.py --annif ENVIRONMENT/bin/annif [--annif-tests FOLDER]

ENVIRONMENT holds `annif[omikuji]`, longtail, `integrations/annif` and pytest. FOLDER is the folder `tests` of Annif's
repository, which is not in its source distribution: its tests of the Omikuji backend are then run with names replaced.
Data: a sample of the bundled debtags. Results: benchmarks/results/serve_annif.json.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
import tempfile
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from benchmarks.harness.program import Facts, free_port, make_parser, start_facts, write_results
from benchmarks.harness.transcript import Background, Transcript

from longtail.data import Dataset, load_bundled

URI = "https://debtags.debian.org/tag/"
ROWS = {"train": 4000, "held": 300, "test": 500}
LIMIT = 20
PROJECTS = """\
[DEFAULT]
language = en
vocab = debtags
limit = 100

[tree]
name = longtail tree
backend = longtail_tree
analyzer = snowball(english)
allow_learn = True

[hybrid]
name = longtail hybrid without an encoder
backend = longtail_hybrid
experts = tree,names

[omikuji]
name = Omikuji Parabel
backend = omikuji
analyzer = snowball(english)

[tfidf]
name = TF-IDF
backend = tfidf
analyzer = snowball(english)

[served]
name = longtail serve, by Annif's http backend
backend = http
endpoint = http://127.0.0.1:{port}/v1/projects/debtags/suggest

[mean]
name = Mean of TF-IDF and longtail serve
backend = ensemble
sources = tfidf,served:2
"""


def main() -> None:
    """Run everything and write what happened."""
    parser = make_parser(__doc__, "serve_annif.json")
    parser.add_argument("--annif", type=Path, required=True, metavar="PROGRAM", help="annif, in ENVIRONMENT/bin")
    parser.add_argument("--annif-tests", type=Path, metavar="FOLDER", help="the folder `tests` of Annif's repository")
    parser.add_argument("--about-tests", default="", help="where that folder is from, for the results")
    args = parser.parse_args()
    facts = start_facts(args, {"data": {"name": "debtags", "rows": ROWS, "limit": LIMIT}}, "starlette", "uvicorn")
    with tempfile.TemporaryDirectory() as name:
        folder, port = Path(name), free_port()
        variables = {
            "ANNIF_CONFIG": "annif_longtail.Config",
            "ANNIF_PROJECTS": "projects.cfg",
            "ANNIF_DATADIR": "data",
            "OMP_NUM_THREADS": "1",
        }
        told = Transcript(folder, variables)
        python = args.annif.parent / "python"
        facts["annif_environment"] = json.loads(told.run(python, "-c", VERSIONS))
        test = write_data(folder, port)
        facts["tests"] = {"own": run_tests(told, python, Path(__file__).parent / "annif" / "tests")}
        if args.annif_tests is not None:
            own = rename_tests(args.annif_tests, folder / "annif-tests")
            facts["tests"]["annifs"] = run_tests(told, python, own) | {"from": args.about_tests}
        facts["backends"] = use_backends(told, args.annif)
        facts["transcript"] = told.steps
        write_results(facts, args.output)
        facts["http"] = use_server(told, args.annif, test, port)
    write_results(facts, args.output)
    print(json.dumps({key: facts[key] for key in ("backends", "http", "tests")}, indent=1))


VERSIONS = """
import json, platform
from importlib.metadata import version
names = ("annif", "annif-longtail", "longtail", "omikuji", "optuna", "simplemma", "starlette", "numpy")
print(json.dumps({"python": platform.python_version(), **{name: version(name) for name in names}}))
"""


def write_data(folder: Path, port: int) -> Dataset:
    """Write vocabulary, corpora and projects as Annif reads them; return the test rows."""
    (folder / "projects.cfg").write_text(PROJECTS.format(port=port))
    whole, test = load_bundled("debtags"), load_bundled("debtags", "test")
    lines = ["@prefix skos: <http://www.w3.org/2004/02/skos/core#> ."]
    texts = whole.label_texts or whole.names()
    for tag, text in zip(whole.names(), texts, strict=True):
        title = text.partition(":")[2].strip() or text
        name = json.dumps(" ".join(title.split()).partition(".")[0][:80] or tag, ensure_ascii=False)
        parts = f"skos:prefLabel {name}@en ; skos:notation {json.dumps(tag)}"
        lines.append(f"<{uri_of(tag)}> a skos:Concept ; {parts} .")
    (folder / "debtags.ttl").write_text("\n".join(lines) + "\n", "utf-8")
    draw = np.random.default_rng(0)
    chosen = draw.permutation(whole.n_rows)[: ROWS["train"] + ROWS["held"]]
    parts_of = {
        "train": whole.take(np.sort(chosen[: ROWS["train"]])),
        "held": whole.take(np.sort(chosen[ROWS["train"] :])),
        "test": test.take(np.sort(draw.permutation(test.n_rows)[: ROWS["test"]])),
    }
    for name, data in parts_of.items():
        with (folder / f"{name}.tsv").open("w", encoding="utf-8") as rows:
            for row, text in enumerate(data.texts or ()):
                uris = " ".join(f"<{uri_of(tag)}>" for tag in data.labels_of(row))
                rows.write(f"{' '.join(text.split())}\t{uris}\n")
    return parts_of["test"]


def uri_of(tag: str) -> str:
    """Return the URI of a tag."""
    return URI + urllib.parse.quote(tag, safe=":+-._")


def use_backends(told: Transcript, annif: Path) -> Facts:
    """Train, train again, learn, search and judge with our backends, beside Annif's own on the same rows."""
    told.run(annif, "load-vocab", "debtags", "debtags.ttl")
    found: Facts = {}
    for project in ("tree", "hybrid", "omikuji", "tfidf"):
        told.run(annif, "train", project, "train.tsv", *(() if project == "tfidf" else ("-j", "2")))
        found[project] = {"train_seconds": told.steps[-1]["seconds"]} | measured(told, annif, project)
    told.run(annif, "train", "tree", "--cached", "-b", "longtail_tree.ngram=2")
    found["tree_cached_ngram_2"] = measured(told, annif, "tree")
    told.run(annif, "hyperopt", "tree", "held.tsv", "-T", "3", "-j", "1")
    told.run(annif, "train", "tree", "--cached")
    told.run(annif, "learn", "tree", "held.tsv")
    found["tree_learned"] = {"learn_seconds": told.steps[-1]["seconds"]} | measured(told, annif, "tree")
    told.run(annif, "suggest", "tree", "-l", "5", stdin="A tool to write music for the piano\n")
    nothing = told.run(annif, "suggest", "tree", "-l", "5", stdin="qqqq zzzz\n")
    found["suggestions_without_known_words"] = len(nothing.strip().splitlines())
    told.run(annif, "suggest", "tree", "-b", "longtail_tree.beem=3", stdin="music\n", may_fail=True)
    told.run(annif, "suggest", "tree", "-b", "longtail_tree.beam=many", stdin="music\n", may_fail=True)
    return found


def measured(told: Transcript, annif: Path, project: str) -> dict[str, float]:
    """Return what `annif eval` says of a project on the test rows."""
    metrics = ("NDCG", "F1@5", "Precision@5")
    words = [word for metric in metrics for word in ("-m", metric)]
    output = told.run(annif, "eval", project, "test.tsv", "-l", "10", *words)
    return {
        name: float(found[1]) for name in metrics if (found := re.search(rf"{re.escape(name)}:?\s+([\d.]+)", output))
    }


def use_server(told: Transcript, annif: Path, test: Dataset, port: int) -> Facts:
    """Serve a model; let Annif's http backend ask for it, alone and in an ensemble; compare with what we say."""
    program = [sys.executable, "-m", "longtail"]
    told.run(*program, "train", "train.tsv", "-o", "debtags", "--vocabulary", "debtags.ttl", "--seed", "0")
    base = f"http://127.0.0.1:{port}"
    with Background(told, [*program, "serve", "debtags", "--port", str(port)], f"{base}/v1/projects"):
        told.note("GET /v1/projects/debtags", get(f"{base}/v1/projects/debtags"))
        told.run(annif, "list-projects")
        texts = [" ".join(text.split()) for text in test.texts or ()][:100]
        (told.folder / "ask.tsv").write_text("".join(f"{text}\t\n" for text in texts), "utf-8")
        by_annif, by_mean, by_tfidf = (index(told, annif, project) for project in ("served", "mean", "tfidf"))
        own = [ask(f"{base}/v1/projects/debtags/suggest", text) for text in texts]
        measures = {project: measured(told, annif, project) for project in ("served", "tfidf", "mean")}
    same = [[hit["uri"] for hit in a] == [hit["uri"] for hit in b] for a, b in zip(by_annif, own, strict=True)]
    errors = [
        abs(x["score"] - y["score"]) for a, b in zip(by_annif, own, strict=True) for x, y in zip(a, b, strict=False)
    ]
    means = [mean_error(*rows) for rows in zip(by_mean, by_tfidf, own, strict=True)]
    return {
        "documents": len(texts),
        "documents_with_same_order": sum(same),
        "largest_score_difference": max(errors),
        "largest_ensemble_difference": max(means),
        "measures": measures,
    }


def index(told: Transcript, annif: Path, project: str) -> list[list[dict[str, Any]]]:
    """Return what `annif index` suggests for the texts asked about."""
    output = f"{project}.jsonl"
    told.run(annif, "index", project, "ask.tsv", "-l", str(LIMIT), "-O", output, "--no-include-doc")
    return [json.loads(line)["results"] for line in (told.folder / output).read_text("utf-8").splitlines()]


def mean_error(mean: list[dict[str, Any]], tfidf: list[dict[str, Any]], own: list[dict[str, Any]]) -> float:
    """Return how far the scores of the ensemble are from (TF-IDF + 2 · ours) / 3, for subjects that both list."""
    one, other = ({hit["uri"]: hit["score"] for hit in hits} for hits in (tfidf, own))
    both = [hit for hit in mean if hit["uri"] in one and hit["uri"] in other]
    return max((abs(hit["score"] - (one[hit["uri"]] + 2 * other[hit["uri"]]) / 3) for hit in both), default=0.0)


def get(address: str) -> Any:
    """Return what an address answers."""
    with urllib.request.urlopen(address, timeout=30) as answer:
        return json.load(answer)


def ask(address: str, text: str) -> list[dict[str, Any]]:
    """Return what our server suggests for a text."""
    form = urllib.parse.urlencode({"text": text, "limit": LIMIT}).encode()
    with urllib.request.urlopen(address, form, timeout=30) as answer:
        return json.load(answer)["results"]


def rename_tests(source: Path, target: Path) -> Path:
    """Copy Annif's tests, and those of the Omikuji backend with our names in place of its."""
    shutil.copytree(source, target / "tests", ignore=shutil.ignore_patterns("__pycache__", "data"))
    text = (target / "tests" / "test_backend_omikuji.py").read_text("utf-8")
    text = text.replace('pytest.importorskip("annif.backend.omikuji")', "import annif_longtail").replace(
        "omikuji", "longtail_tree"
    )
    file = target / "tests" / "test_backend_longtail_tree.py"
    file.write_text(text, "utf-8")
    return file


def run_tests(told: Transcript, python: Path, tests: Path) -> Facts:
    """Run tests in Annif's environment and return how each ended."""
    report = told.folder / "report.xml"
    root = tests if tests.is_dir() else tests.parents[1]
    told.run(
        *(python, "-m", "pytest", tests, "-q", "-p", "no:cacheprovider", "--junitxml", report),
        *("--rootdir", root, "--confcutdir", root, "--tb", "line"),
        may_fail=True,
    )
    ended = {"passed": list[str](), "failed": list[str](), "skipped": list[str]()}
    for case in re.findall(r"<testcase (.*?)(?:/>|>(.*?)</testcase>)", report.read_text("utf-8"), re.S):
        name = re.search(r'\bname="([^"]*)"', case[0])
        how = (
            "skipped"
            if "<skipped" in case[1]
            else "failed"
            if "<failure" in case[1] or "<error" in case[1]
            else "passed"
        )
        ended[how].append(name[1] if name else "?")
    return {"passed": len(ended["passed"]), "failed": ended["failed"], "skipped": ended["skipped"]}


if __name__ == "__main__":
    main()
