"""Write the tags of the bundled Debian data as a SKOS vocabulary.

    python scripts/make_debtags_skos.py debtags.ttl

Each tag is a concept with a URI, its title as its name and the tag itself as its notation. Above it stand the tag that
it refines (`game::rpg` above `game::rpg:rogue`) or its facet (`game`).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from longtail.data import load_bundled
from longtail.vocabulary import Concept, Vocabulary

BASE = "https://debtags.debian.org/tag/"


def debtags_vocabulary() -> Vocabulary:
    """Return the tags of the bundled Debian data, with their facets."""
    return Vocabulary(_concepts(), language="en", name="debtags")


def _concepts() -> Iterator[Concept]:
    data = load_bundled("debtags")
    texts = dict(zip(data.names(), data.label_texts or (), strict=True))
    facets: dict[str, str] = {}
    for tag, text in texts.items():
        facets.setdefault(tag.partition("::")[0], text.partition(":")[0])
    for facet, title in facets.items():
        yield Concept(BASE + facet, {"en": title}, notation=facet)
    for tag, text in texts.items():
        title = text.partition(": ")[2].partition(". ")[0].rstrip(".")
        refined = tag.rpartition(":")[0]
        above = refined if refined in texts else tag.partition("::")[0]
        yield Concept(BASE + tag, {"en": title}, notation=tag, broader=(BASE + above,))


def main() -> None:
    """Write the file that is named."""
    if len(sys.argv) != 2:
        sys.exit("Usage: python scripts/make_debtags_skos.py FILE.ttl|FILE.jsonl|FILE.csv|FILE.tsv")
    print(f"Wrote {len(debtags_vocabulary())} concepts to {debtags_vocabulary().write(sys.argv[1])}.")


if __name__ == "__main__":
    main()
