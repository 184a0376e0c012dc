"""Write the section "Every part" of docs/model-folders.md from the schemas.

    python scripts/make_format_docs.py [--check]

With --check nothing is written; the exit code says whether the page is up to date.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from longtail.encoder import TEXT_ENCODER_SCHEMA
from longtail.pipeline import part_schemas
from longtail.storage import ArraySpec, ParamSpec, PartSchema, Record
from longtail.training import CHECKPOINT

PAGE = Path(__file__).parents[1] / "docs" / "model-folders.md"
BEGIN, END = "<!-- made by scripts/make_format_docs.py: begin -->", "<!-- made by scripts/make_format_docs.py: end -->"


def schemas() -> list[PartSchema]:
    """Return the schemas in the order of the page: parts of parts follow those that hold them."""
    found: dict[int, PartSchema] = {}
    for schema in (*part_schemas().values(), TEXT_ENCODER_SCHEMA, CHECKPOINT):
        for one in (schema, *(inner.schema for inner in schema.inner)):
            found.setdefault(id(one), one)
    return list(found.values())


def section() -> str:
    """Return the section, between its two marks."""
    return "\n".join([BEGIN, *(line for schema in schemas() for line in _lines(schema)), "", END])


def _lines(schema: PartSchema) -> Iterator[str]:
    """Yield the lines about one kind of part."""
    yield from ("", f"### `{schema.kind}`", "", f"{schema.about[0].upper()}{schema.about[1:]}.")
    if schema.params:
        yield from ("", "| parameter | is | for |", "|---|---|---|")
        for param in schema.params:
            yield from _param_rows(param)
    if schema.arrays:
        yield from ("", "| array | type | shape | entries | holds |", "|---|---|---|---|---|")
        yield from (_array_row(array) for array in schema.arrays)
    notes = [f"`{size.name}`: {size.about}, {size.low:,} to {size.high:,}." for size in schema.sizes]
    for inner in schema.inner:
        where = f"; its parameters are `{inner.params}`" if inner.params else f"; one for each entry of `{inner.times}`"
        notes.append(f"Arrays `{inner.prefix}…` are those of a part `{inner.schema.kind}`{where}.")
    notes += [f"Also: {check.about}." for check in schema.crosschecks]
    if notes:
        yield from ("", *(f"- {note}" for note in notes))


def _param_rows(param: ParamSpec) -> Iterator[str]:
    """Yield the row of a parameter and those of its fields, if it is an object."""
    waiting = [(param.name, param.value, param.about, param.optional)]
    while waiting:
        name, value, about, optional = waiting.pop(0)
        inside = value if isinstance(value, Record) else None
        words = "an object; its fields follow" + (", or null" if value.none else "") if inside else value.words
        yield _row(f"`{name}`{' (may be missing)' if optional else ''}", words, about)
        if inside is not None:
            below = ((f"{name}.{key}", field, "", key in inside.optional) for key, field in inside.fields.items())
            waiting = [*below, *waiting]


def _array_row(array: ArraySpec) -> str:
    name = f"`{array.name}`{' (may be missing)' if array.optional else ''}"
    shape = "any" if array.shape is None else " × ".join("any" if n == "*" else str(n) for n in array.shape)
    entries = []
    if "pointers" in array.order:
        rise = "rise" if array.order == "strict pointers" else "never fall"
        entries.append(f"from 0 to {array.high}, {rise}")
    else:
        if array.low is not None or array.high is not None:
            entries.append(" ".join(f"{w} {v}" for w, v in (("from", array.low), ("to", array.high)) if v is not None))
        if array.order:
            entries.append("never fall")
    if array.finite:
        entries.append(array.finite)
    return _row(name, ", ".join(array.dtypes.split()), shape, ", ".join(entries) or "any", array.about)


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def page_with(text: str, made: str) -> str:
    """Return the page with the section in place of the old one."""
    before, _, rest = text.partition(BEGIN)
    return before + made + rest.partition(END)[2]


def main() -> int:
    """Write the page, or with --check say whether it is up to date."""
    old = PAGE.read_text("utf-8")
    new = page_with(old, section())
    if "--check" in sys.argv[1:]:
        return int(new != old)
    PAGE.write_text(new, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
