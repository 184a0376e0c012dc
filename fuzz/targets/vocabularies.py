"""Vocabularies: SKOS, tables and JSONL, changed in every way that a stranger could."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from fuzz.case import Case, Target, Wrong
from fuzz.mutations import change_json, change_text, dump_json
from fuzz.targets.reading import packed
from fuzz.values import string

SKOS = "http://www.w3.org/2004/02/skos/core#"
NAMES = ("cats", "Tiere und Menschen", "été", "law, order", "dogs")
SUFFIXES = {"tsv": "tsv", "csv": "csv", "jsonl": "jsonl", "ntriples": "nt", "turtle": "ttl", "rdfxml": "rdf"}
ENTITIES = (
    '<!DOCTYPE rdf:RDF [<!ENTITY a "http://ex.org/">]>',
    '<!DOCTYPE rdf:RDF [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;&a;">]>',
    '<!DOCTYPE rdf:RDF [<!ENTITY a SYSTEM "file:///etc/passwd">]>',
    '<!DOCTYPE rdf:RDF SYSTEM "http://ex.org/x.dtd">',
)


def make(rng: Random, format: str) -> Case:
    """Return a vocabulary in a format, with an odd field or changed text."""
    n = rng.randint(1, 5)
    concepts: list[dict[str, Any]] = [
        {
            "id": f"http://ex.org/{i}",
            "label": {"en": NAMES[i], "de": string(rng)} if rng.random() < 0.5 else NAMES[i],
            "alt_label": {"en": ["other", string(rng)]},
            "notation": str(i),
            "broader": [f"http://ex.org/{rng.randrange(n + 1)}"],
            "deprecated": rng.random() < 0.2,
        }
        for i in range(n)
    ]
    change = rng.choice(("fields", "text", "none"))
    if format == "jsonl":
        at = rng.randrange(n)
        listed: list[Any] = list(concepts)
        listed[at] = change_json(rng, concepts[at]) if change == "fields" else concepts[at]
        raw = b"".join(dump_json(rng, concept) + b"\n" for concept in listed)
    else:
        raw = WRITERS[format](rng, concepts, change == "fields")
    if change == "text":
        change, raw = change_text(rng, raw)
    name, raw, change = packed(rng, f"vocabulary.{SUFFIXES[format]}", raw, change)
    if rng.random() < 0.1:
        return Case(change, {"vocabulary": raw}, "vocabulary", {"format": None})
    return Case(change, {name: raw}, name, {"format": rng.choice((None, format))})


def _tsv(rng: Random, concepts: list[dict[str, Any]], odd: bool) -> bytes:
    rows = [[f"<{c['id']}>", _name(c), c["notation"]][: rng.randint(2, 3)] for c in concepts]
    if odd:
        rng.choice(rows)[rng.randrange(2)] = string(rng)
    return "\n".join("\t".join(row) for row in rows).encode("utf-8", "surrogatepass")


def _csv(rng: Random, concepts: list[dict[str, Any]], odd: bool) -> bytes:
    delimiter = rng.choice(",;\t")
    header = ["uri", "notation", "label_en", "alt_label_de", "broader", "deprecated", "replaced_by"]
    rows = [header] + [[c["id"], c["notation"], _name(c), "a|b", c["broader"][0], "", ""] for c in concepts]
    if odd:
        rng.choice(rows)[rng.randrange(7)] = string(rng)
    return "\n".join(delimiter.join(row) for row in rows).encode("utf-8", "surrogatepass")


def _ntriples(rng: Random, concepts: list[dict[str, Any]], odd: bool) -> bytes:
    lines = []
    for c in concepts:
        lines.append(f'<{c["id"]}> <{SKOS}prefLabel> "{_name(c)}"@en .')
        lines.append(f"<{c['id']}> <{SKOS}{rng.choice(('broader', 'narrower'))}> <{c['broader'][0]}> .")
        lines.append(f'<{c["id"]}> <{SKOS}altLabel> "{rng.choice(ESCAPES)}" .')
    if odd:
        lines[rng.randrange(len(lines))] = f'<http://ex.org/1> <{SKOS}prefLabel> "{string(rng)}"@en .'
    return "\n".join(lines).encode("utf-8", "surrogatepass")


ESCAPES = ("a\\u0041", "\\U0010FFFF", "\\UFFFFFFFF", "\\uD800", '\\"', "\\x", "\\n")


def _turtle(rng: Random, concepts: list[dict[str, Any]], odd: bool) -> bytes:
    if rng.random() < 0.3:
        return _ntriples(rng, concepts, odd)
    lines = [f"@prefix skos: <{SKOS}> .", "@prefix xl: <http://www.w3.org/2008/05/skos-xl#> ."]
    for c in concepts:
        more = rng.choice(
            ('skos:notation "1"^^<http://ex.org/t>', "skos:broader ( 1 2 )", "a skos:Concept", "xl:prefLabel []")
        )
        if odd:
            more = f"skos:altLabel {rng.choice(('[' * 300 + ']' * 300, '1e999', '<rel>', 'skos:x', string(rng)))}"
        lines.append(f'<{c["id"]}> skos:prefLabel "{_name(c)}"@en ; {more} .')
    return "\n".join(lines).encode("utf-8", "surrogatepass")


def _rdfxml(rng: Random, concepts: list[dict[str, Any]], odd: bool) -> bytes:
    head = rng.choice(ENTITIES) if rng.random() < 0.3 else ""
    rdf = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
    out = [f'<?xml version="1.0"?>{head}<rdf:RDF xmlns:rdf="{rdf}" xmlns:skos="{SKOS}">']
    for c in concepts:
        name = "&b;" if odd and rng.random() < 0.5 else _name(c)
        out.append(f'<skos:Concept rdf:about="{c["id"]}"><skos:prefLabel xml:lang="en">{name}</skos:prefLabel>')
        out.append(f'<skos:broader rdf:resource="{c["broader"][0]}"/></skos:Concept>')
    return ("\n".join(out) + "</rdf:RDF>").encode("utf-8", "surrogatepass")


WRITERS = {"tsv": _tsv, "csv": _csv, "ntriples": _ntriples, "turtle": _turtle, "rdfxml": _rdfxml}


def _name(concept: dict[str, Any]) -> str:
    label = concept["label"]
    return label if isinstance(label, str) else label["en"]


def run(case: Case, folder: Path) -> None:
    """Read a vocabulary, and ask it for names, concepts above others and what is saved of it."""
    from longtail.vocabulary import Vocabulary

    check_vocabulary(Vocabulary.read(folder / case.main, case.options.get("format")))


def check_vocabulary(vocabulary: Any) -> None:
    """Raise `Wrong` where a vocabulary has a name twice, a cycle, or is not what is saved of it."""
    from longtail.storage import Part
    from longtail.vocabulary import Vocabulary

    part = vocabulary.to_part()
    if Vocabulary.from_part(Part(part.kind, part.params, part.arrays)) != vocabulary:
        raise Wrong("what is saved differs")
    above = vocabulary.ancestors(vocabulary.ids)
    if above.shape != (len(vocabulary), len(vocabulary)):
        raise Wrong(f"ancestors have the shape {above.shape}")
    for id in vocabulary.ids[:20]:
        if vocabulary.find(id) != id or not vocabulary.candidates(vocabulary.name(id)):
            raise Wrong(f"{id!r} is not found")


def warm_up(folder: Path, format: str) -> None:
    """Read a few files, so that everything is loaded."""
    from longtail.errors import LongtailError

    rng = Random(3)
    for _ in range(30):
        case = make(rng, format)
        case.write(folder)
        try:
            run(case, folder)
        except LongtailError:
            continue


def targets() -> list[Target]:
    """Return one target for every format."""
    return [
        Target(
            f"vocabulary-{format}",
            "sides",
            partial(make, format=format),
            run,
            partial(warm_up, format=format),
            50,
            base=64 << 20 if format in ("turtle", "rdfxml") else 32 << 20,
            needs=("rdflib",) if format in ("turtle", "rdfxml") else (),
        )
        for format in SUFFIXES
    ]
