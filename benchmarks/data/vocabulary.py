"""Measure vocabularies: how long files of 100,000 concepts take to read, and a hierarchy as the label tree.

    python benchmarks/data/vocabulary.py

Concepts have two preferred names, an alternative, a notation and a broader concept. The tree is that of the bundled
Debian tags, whose facets stand above them. CPU seconds, not wall time: the machine may be shared.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.harness.program import Facts, make_parser, start_facts, write_results
from benchmarks.harness.timing import timed
from longtail import LabelTreeClassifier, Tagger
from longtail.data import load_bundled
from longtail.pipeline import evaluate_tagger
from longtail.tree import tree_inside
from longtail.vocabulary import Concept, Vocabulary

SKOS = "http://www.w3.org/2004/02/skos/core#"
SHOWN = ("p@1", "p@3", "p@5", "hf1@5")


def made(n: int) -> Vocabulary:
    """Return a vocabulary of n concepts, ten below each."""
    base = "http://example.org/concept/"
    return Vocabulary(
        Concept(
            f"{base}{i}",
            {"en": f"concept number {i}", "de": f"Begriff Nummer {i}"},
            {"en": (f"other name {i}",)},
            str(i),
            (f"{base}{i // 10}",) if i else (),
        )
        for i in range(n)
    )


def write_ntriples(vocabulary: Vocabulary, file: Path) -> None:
    """Write SKOS as N-Triples."""
    with file.open("w", encoding="utf-8") as out:
        for concept in vocabulary:
            out.writelines(f'<{concept.id}> <{SKOS}prefLabel> "{n}"@{tag} .\n' for tag, n in concept.names.items())
            out.writelines(f'<{concept.id}> <{SKOS}altLabel> "{n}"@en .\n' for n in concept.alternatives["en"])
            out.write(f'<{concept.id}> <{SKOS}notation> "{concept.notation}" .\n')
            out.writelines(f"<{concept.id}> <{SKOS}broader> <{above}> .\n" for above in concept.broader)


def write_rdfxml(turtle: Path, file: Path) -> None:
    """Write SKOS as RDF/XML, with rdflib."""
    import rdflib

    rdflib.Graph().parse(turtle).serialize(file, format="xml")


def reading(n: int) -> Facts:
    """Return CPU seconds and size for each format."""
    out: Facts = {"concepts": n, "formats": {}}
    with tempfile.TemporaryDirectory() as folder:
        vocabulary = made(n)
        files = {name: Path(folder) / f"a.{name}" for name in ("jsonl", "csv", "tsv", "nt", "ttl", "rdf")}
        for name in ("jsonl", "csv", "tsv", "ttl"):
            vocabulary.write(files[name])
        write_ntriples(vocabulary, files["nt"])
        write_rdfxml(files["ttl"], files["rdf"])
        for name, file in files.items():
            spent, read = timed(lambda file=file: Vocabulary.read(file))
            if len(read) != n:
                raise SystemExit(f"{name} gave {len(read)} concepts.")
            out["formats"][name] = {"cpu_s": round(spent.cpu, 2), "mb": round(file.stat().st_size / 1e6, 1)}
            print(name, out["formats"][name], flush=True)
    return out


def debtags() -> Vocabulary:
    """Return the vocabulary of the Debian tags, as the script writes it."""
    script = Path(__file__).resolve().parents[2] / "scripts" / "make_debtags_skos.py"
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, str(script), f"{folder}/debtags.ttl"], check=True)
        return Vocabulary.read(f"{folder}/debtags.ttl")


def tree(vocabulary: Vocabulary, max_leaf: int, from_vocabulary: bool) -> Facts:
    """Return the metrics of a tagger of Debian packages with either tree."""
    model = LabelTreeClassifier(max_leaf=max_leaf)
    tagger = Tagger(model=model, calibrate=0, random_state=0)
    settings: dict[str, Any] = {"vocabulary": vocabulary, "tree_from_vocabulary": from_vocabulary}
    spent, _ = timed(lambda: tagger.fit_dataset(load_bundled("debtags", "train"), **settings))
    facts = evaluate_tagger(tagger, load_bundled("debtags", "test"), n_bootstrap=0, n_examples=0)
    metrics = {name: round(100 * (facts["evaluation"]["metrics"][name]["value"] or 0.0), 2) for name in SHOWN}
    inside = tree_inside(tagger.model_, tagger.features_)
    leaves = 0 if inside is None else int(inside.tree.trees_[0].n_leaves)
    out = {**metrics, "leaves": leaves, "train_cpu_s": round(spent.cpu, 1)}
    print(max_leaf, "from the vocabulary" if from_vocabulary else "clustered", out, flush=True)
    return out


def main() -> None:
    parser = make_parser(__doc__, "vocabulary.json")
    parser.add_argument("--concepts", type=int, default=100_000)
    args = parser.parse_args()
    facts = start_facts(args, {}, "rdflib")
    tags = debtags()
    facts["tree"] = {
        f"max_leaf_{n}": {"clustered": tree(tags, n, False), "from_vocabulary": tree(tags, n, True)} for n in (160, 40)
    }
    facts["reading"] = reading(args.concepts)
    write_results(facts, args.output)


if __name__ == "__main__":
    main()
