r"""Make the two bundled data sets, `debtags` and `debian-relations`, from a Debian package index.

The same input files give the same output bytes (with the same liblzma). To run it again, on any machine: fetch
`main/binary-amd64/Packages.xz` and `main/i18n/Translation-en.xz` of the suite bookworm from any Debian mirror, then

    apt-get download debtags && dpkg-deb -x debtags_*.deb debtags
    python scripts/make_bundled_data.py --packages Packages.xz --translations Translation-en.xz \
        --vocabulary debtags/usr/share/debtags/vocabulary \
        --index "Debian 12.15 (bookworm), main, amd64, Release file of 2026-07-11"

Without --packages the index of this machine is used (`apt-cache dumpavail`); it holds only the short
descriptions, so give --translations too. The archive changes with every point release and then the data
changes too: `facts.json`, written beside the data, names the digests of the inputs.

The rules, each at the function that applies it; README.md beside the data says them in one place:

- text of a row: short description, then long one, cut at 1,000 characters           (`row_text`)
- relations: Pre-Depends, Depends and Recommends to packages of the index           (`related`)
- debtags: the Tag field, without bookkeeping tags and tags without a description    (`tags_of`)
- transitional packages are no rows                                                  (`is_transitional`)
- the split goes by groups of source packages, so that no text stands on both sides  (`split_groups`, `in_test`)
- rows that repeat both the text and the labels of another row are left out          (`drop_repeats`)
"""

from __future__ import annotations

import argparse
import bz2
import gzip
import hashlib
import json
import lzma
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

OUT = Path(__file__).resolve().parents[1] / "src" / "longtail" / "data" / "files"
MAX_CHARS = 1000
TEST_SHARE = 0.15
RELATION_FIELDS = ("Pre-Depends", "Depends", "Recommends")
ABOUT = {
    "debtags": "package descriptions with the facet tags of Debian's debtags vocabulary",
    "debian-relations": "package descriptions with the packages they depend on or recommend",
}

Paragraph = dict[str, str]
Row = dict[str, Any]


def read_paragraphs(lines: Iterable[str]) -> Iterator[Paragraph]:
    """Yield the paragraphs of a Debian control file; continuation lines are joined with newlines."""
    fields: Paragraph = {}
    key = ""
    for raw in lines:
        line = raw.rstrip("\n")
        if not line.strip():
            if fields:
                yield fields
            fields, key = {}, ""
        elif line[0] in " \t":
            if key:
                fields[key] += "\n" + line[1:]
        else:
            key, _, value = line.partition(":")
            fields[key] = value.strip()
    if fields:
        yield fields


def read_packages(lines: Iterable[str]) -> dict[str, Paragraph]:
    """Return the packages by name, sorted; of a package given twice the later paragraph counts."""
    found = {p["Package"]: p for p in read_paragraphs(lines) if "Package" in p}
    return {name: found[name] for name in sorted(found)}


def add_translations(packages: dict[str, Paragraph], lines: Iterable[str]) -> int:
    """Put the long descriptions of a Translation-en file in place; return how many found their package.

    The index names the description it means by its md5, so that a text of another version is never taken.
    """
    found = 0
    for p in read_paragraphs(lines):
        package = packages.get(p.get("Package", ""))
        if package and "Description-en" in p and package.get("Description-md5") == p.get("Description-md5"):
            package["Description"] = p["Description-en"]
            found += 1
    return found


def source_of(package: Paragraph) -> str:
    """Return the name of the source package, without the version that may follow it."""
    return package.get("Source", package["Package"]).split(" ")[0]


def short_text(description: str) -> str:
    """Return the first line of a description: Debian's short description."""
    return " ".join(description.partition("\n")[0].split())


def full_text(description: str) -> str:
    """Return the description as plain lines: the short one, then one line per paragraph of the long one."""
    short, _, long = description.partition("\n")
    paragraphs = re.split(r"^\s*\.\s*$", long, flags=re.MULTILINE)
    lines = (" ".join(part.split()) for part in (short, *paragraphs))
    return "\n".join(line for line in lines if line)


def row_text(description: str, limit: int = MAX_CHARS) -> str:
    """Return the text of a row: the full description, cut at the last word that ends within `limit`.

    The package's own name is not put into the text; where the description uses it, it stays.
    """
    text = full_text(description)
    if len(text) <= limit:
        return text
    cut = max(text.rfind(" ", 0, limit + 1), text.rfind("\n", 0, limit + 1))
    return text[: cut if cut > 0 else limit].rstrip()


def is_transitional(package: Paragraph) -> bool:
    """Say whether a package exists only for upgrades; its description then describes nothing."""
    short = short_text(package.get("Description", ""))
    return re.search(r"\btransitional\b|\bdummy package\b", short, re.IGNORECASE) is not None


def parse_relations(field: str) -> list[list[str]]:
    """Return the alternatives of each relation, names only: versions and architectures are stripped.

    >>> parse_relations("libc6 (>= 2.34), perl:any, default-mta | mail-transport-agent [amd64]")
    [['libc6'], ['perl'], ['default-mta', 'mail-transport-agent']]
    """
    relations = []
    for part in field.split(","):
        names = [m[0] for choice in part.split("|") if (m := re.match(r"[^\s:(\[<]+", choice.strip()))]
        if names:
            relations.append(names)
    return relations


def providers(packages: Mapping[str, Paragraph]) -> dict[str, list[str]]:
    """Return, for every virtual package, the sorted real packages that provide it."""
    found: dict[str, set[str]] = {}
    for name, package in packages.items():
        for virtual, *_ in parse_relations(package.get("Provides", "")):
            found.setdefault(virtual, set()).add(name)
    return {virtual: sorted(names) for virtual, names in found.items() if virtual not in packages}


def related(package: Paragraph, packages: Mapping[str, Paragraph], provided: Mapping[str, list[str]]) -> list[str]:
    """Return the sorted packages this one depends on or recommends.

    Of alternatives `a | b` the first that can be told counts: it is what an installation takes by default.
    A virtual package stands for its provider where there is exactly one, and is no label otherwise.
    """

    def real(name: str) -> str | None:
        if name in packages:
            return name
        choices = provided.get(name, [])
        return choices[0] if len(choices) == 1 else None

    found = set()
    for field in RELATION_FIELDS:
        for alternatives in parse_relations(package.get(field, "")):
            found.add(next((r for r in map(real, alternatives) if r), None))
    return sorted(name for name in found if name and name != package["Package"])


def read_vocabulary(lines: Iterable[str]) -> dict[str, str]:
    """Return the text of every tag: the facet's short description, the tag's short and its long one.

    Many tags have only one word ("Accounting"); the facet ("System Administration") says in which sense.
    """
    facets: dict[str, str] = {}
    tags: dict[str, str] = {}
    for p in read_paragraphs(lines):
        short, _, long = full_text(p.get("Description", "")).partition("\n")
        if "Facet" in p:
            facets[p["Facet"]] = short
        elif "Tag" in p and short:
            facet = facets.get(p["Tag"].partition("::")[0], "")
            tags[p["Tag"]] = (f"{facet}: " if facet else "") + " ".join(f"{short}. {long}".split()).rstrip(".") + "."
    return tags


def tags_of(package: Paragraph, vocabulary: Mapping[str, str]) -> list[str]:
    """Return the sorted tags of a package that the vocabulary describes.

    Tags that only keep the taggers' books (`special::…`, `…:TODO`) say nothing about the package.
    """
    tags = {tag.strip() for tag in package.get("Tag", "").split(",")}
    return sorted(t for t in tags if t in vocabulary and not t.startswith("special::") and not t.endswith(":TODO"))


def split_groups(packages: Mapping[str, Paragraph]) -> dict[str, str]:
    """Return the group of every source package: sources that share a text, digits aside, are one group.

    Packages of one source share most of their text, and so do gcc-11 and gcc-12: a random split would put
    near copies of the training rows into the test rows. A group is named by its first source.
    """
    parent: dict[str, str] = {}

    def root(source: str) -> str:
        while parent.setdefault(source, source) != source:
            source = parent[source]
        return source

    first: dict[str, str] = {}
    for package in packages.values():
        source = root(source_of(package))
        if is_transitional(package):
            continue
        words = re.sub(r"[\W\d_]+", " ", full_text(package.get("Description", "")).lower())
        low, high = sorted((source, root(first.setdefault(words, source))))
        parent[high] = low
    return {source: root(source) for source in sorted(parent)}


def in_test(group: str) -> bool:
    """Say whether a group is in the test split: a hash of its name decides, so that it never moves."""
    return int(hashlib.sha256(group.encode()).hexdigest()[:8], 16) < TEST_SHARE * 2**32


def drop_repeats(rows: Iterable[Row]) -> list[Row]:
    """Return the rows without those that repeat both the text and the labels of an earlier row."""
    kept: dict[tuple[str, tuple[str, ...]], Row] = {}
    for row in rows:
        kept.setdefault((row["text"], tuple(row["labels"])), row)
    return list(kept.values())


def make_rows(packages: Mapping[str, Paragraph], labels: Mapping[str, list[str]]) -> tuple[list[Row], list[Row]]:
    """Return train and test rows, ordered by source package and name: neighbours compress well."""
    groups = split_groups(packages)
    order = sorted(labels, key=lambda name: (source_of(packages[name]), name))
    rows: tuple[list[Row], list[Row]] = ([], [])
    for name in order:
        package = packages[name]
        text = row_text(package.get("Description", ""))
        if labels[name] and text and not is_transitional(package):
            test = in_test(groups[source_of(package)])
            rows[test].append({"id": name, "text": text, "labels": labels[name]})
    return drop_repeats(rows[0]), drop_repeats(rows[1])


def facts_of(train: list[Row], test: list[Row]) -> dict[str, Any]:
    """Return the numbers that describe a data set."""
    seen = Counter(label for row in train for label in row["labels"])
    asked = Counter(label for row in test for label in row["labels"])
    rows, uses = len(train) + len(test), seen + asked
    return {
        "rows_train": len(train),
        "rows_test": len(test),
        "labels": len(uses),
        "labels_per_row": round(uses.total() / rows, 3),
        "labels_used_once": sum(n == 1 for n in uses.values()),
        "labels_in_train": len(seen),
        "labels_only_in_test": len(uses) - len(seen),
        "test_labels_seen_in_train": round(sum(n for k, n in asked.items() if k in seen) / asked.total(), 4),
        "characters_per_text": round(sum(len(row["text"]) for row in (*train, *test)) / rows, 1),
    }


def write_jsonl(path: Path, records: Iterable[Row]) -> int:
    """Write records as xz-compressed JSON lines; return the size in bytes."""
    text = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
    data = lzma.compress(text.encode("utf-8"), preset=9 | lzma.PRESET_EXTREME)
    path.write_bytes(data)
    return len(data)


def write_data(
    out: Path, name: str, packages: Mapping[str, Paragraph], labels: Mapping[str, list[str]], texts: Mapping[str, str]
) -> dict[str, Any]:
    """Write the three files of a data set and return its facts; the labels are those used by any row."""
    train, test = make_rows(packages, labels)
    used = sorted({label for row in (*train, *test) for label in row["labels"]})
    sizes = {
        f"{name}.train.jsonl.xz": write_jsonl(out / f"{name}.train.jsonl.xz", train),
        f"{name}.test.jsonl.xz": write_jsonl(out / f"{name}.test.jsonl.xz", test),
        f"{name}.labels.jsonl.xz": write_jsonl(
            out / f"{name}.labels.jsonl.xz", ({"id": label, "text": texts[label]} for label in used)
        ),
    }
    cut = sum(len(full_text(packages[row["id"]]["Description"])) > MAX_CHARS for row in (*train, *test))
    return {"about": ABOUT[name], **facts_of(train, test), "texts_cut": cut, "bytes": sizes}


def read_text(path: Path) -> str:
    """Return the text of a plain, .xz, .gz, .bz2 or (through apt) .lz4 file."""
    if path.suffix == ".lz4":
        command = ["/usr/lib/apt/apt-helper", "cat-file", str(path)]
        return subprocess.run(command, check=True, capture_output=True, encoding="utf-8").stdout
    opener: Any = {".xz": lzma.open, ".gz": gzip.open, ".bz2": bz2.open}.get(path.suffix, open)
    with opener(path, "rt", encoding="utf-8") as file:
        return file.read()


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--packages", type=Path, nargs="+", help="Packages files; default: apt-cache dumpavail")
    parser.add_argument("--translations", type=Path, nargs="+", default=[], help="Translation-en files")
    parser.add_argument("--vocabulary", type=Path, default=Path("/usr/share/debtags/vocabulary"))
    parser.add_argument("--index", default="", help="what the index is, for facts.json: release, component, date")
    parser.add_argument("--out", type=Path, default=OUT, help="folder to write to")
    options = parser.parse_args(arguments)

    inputs: dict[str, str] = {}

    def take(kind: str, path: Path) -> list[str]:
        text = read_text(path)  # the digest is that of the uncompressed file, as Debian's Release file gives it
        name = path.stem if path.suffix in (".xz", ".gz", ".bz2", ".lz4") else path.name
        inputs[f"{kind}: {name}"] = hashlib.sha256(text.encode("utf-8")).hexdigest()
        return text.split("\n")

    if options.packages:
        lines = [line for path in options.packages for line in (*take("packages", path), "")]
    else:
        dump = subprocess.run(["apt-cache", "dumpavail"], check=True, capture_output=True, encoding="utf-8").stdout
        inputs["packages: apt-cache dumpavail"] = hashlib.sha256(dump.encode("utf-8")).hexdigest()
        lines = dump.split("\n")
    packages = read_packages(lines)
    found = sum(add_translations(packages, take("translations", path)) for path in options.translations)
    vocabulary = read_vocabulary(take("vocabulary", options.vocabulary))
    print(f"{len(packages)} packages, {found} long descriptions taken, {len(vocabulary)} tags", file=sys.stderr)

    provided = providers(packages)
    relations = {name: related(package, packages, provided) for name, package in packages.items()}
    tags = {name: tags_of(package, vocabulary) for name, package in packages.items()}
    shorts = {name: short_text(package.get("Description", "")) or name for name, package in packages.items()}
    options.out.mkdir(parents=True, exist_ok=True)
    facts = {
        "index": options.index,
        "inputs_sha256": inputs,
        "data": {
            "debtags": write_data(options.out, "debtags", packages, tags, vocabulary),
            "debian-relations": write_data(options.out, "debian-relations", packages, relations, shorts),
        },
    }
    (options.out / "facts.json").write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(facts["data"], indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
