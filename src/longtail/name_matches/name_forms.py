"""The forms in which a name may stand in a text: whole, turned round, without its qualifier, or a part of it."""

from __future__ import annotations

import re
from typing import NamedTuple

PREFERRED, ALTERNATIVE, SHORTENED, PART = range(4)  # kinds of forms, the surest first
N_KINDS = 4
BRACKETS = re.compile(r"\([^()]*\)|\[[^\[\]]*\]")
ENDS_OF_PARTS = re.compile(r"[.:;\n]+(?=\s|$)|[()\[\]]|\s[-–—]+\s")
MOST_TURNED = 60  # characters of a name that is turned round at its comma


class NameForm(NamedTuple):
    """One form of a name."""

    text: str
    kind: int


def name_forms(name: str, alternative: bool) -> list[NameForm]:
    """Return the forms of a name, the name itself first.

    >>> [form.text for form in name_forms("migration (demography)", alternative=False)]
    ['migration (demography)', 'migration']
    >>> [form.text for form in name_forms("Abdomen, Acute", alternative=False)]
    ['Abdomen, Acute', 'Acute Abdomen']
    >>> [form.text for form in name_forms("Office: Word Processing. Writes letters.", alternative=False)][1:]
    ['Office', 'Word Processing', 'Writes letters']
    """
    own = ALTERNATIVE if alternative else PREFERRED
    forms = [NameForm(name, own)]
    bare = BRACKETS.sub(" ", name).strip()
    if bare and bare != name.strip():
        forms.append(NameForm(bare, SHORTENED))
    forms += [NameForm(turned, form.kind) for form in forms for turned in _turned(form.text)]
    parts = [part.strip() for part in ENDS_OF_PARTS.split(bare or name)]
    if len([part for part in parts if part]) > 1:
        forms += [NameForm(part, PART) for part in parts if part]
    return forms


def _turned(name: str) -> list[str]:
    """Return a name with one comma turned round at it, as people say it; nothing for other names."""
    head, comma, tail = name.partition(", ")
    if not comma or "," in tail or len(name) > MOST_TURNED:
        return []
    return [f"{tail} {head}"]
