"""Label Studio's labeling configuration: which text is tagged, by which choices; read from XML that may be hostile."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from xml.parsers import expat

from longtail.errors import DataError

MOST_CHARACTERS = 4_000_000
MOST_ELEMENTS = 200_000
MOST_DEPTH = 100
TEXTS = ("text", "hypertext")  # tags whose values are texts
CONTROLS = ("choices", "taxonomy")
TAG = re.compile(r"(<[^<>]*>)")
TAG_NAME = re.compile(r"<(/?[a-z]+)")
NUMBERED = re.compile(r"&#(?:[0-9]{8,}|[xX][0-9a-fA-F]{7,});?")  # no character has so large a number
UNREAD = ("script", "style")


@dataclass
class Element:
    """One element of the configuration: its tag in small letters, its attributes, and what is inside."""

    tag: str
    attributes: dict[str, str]
    inside: list[Element] = field(default_factory=list)

    def walk(self) -> Iterator[Element]:
        """Yield this element and all below it, in their order."""
        waiting = [self]
        while waiting:
            found = waiting.pop()
            yield found
            waiting.extend(reversed(found.inside))


@dataclass(frozen=True)
class Control:
    """One question of a configuration: choices, flat or in a tree, about a text of the task.

    `paths` are the answers that it offers, each as the names on the way to it as Label Studio writes them, by every
    name that a label may match; empty where the configuration does not list them.
    """

    kind: str  # "choices" or "taxonomy"
    name: str
    to_name: str
    text_key: str  # the field of a task's data that holds the text
    is_html: bool
    single: bool
    paths: Mapping[str, tuple[str, ...]]

    def result(self, answers: list[tuple[str, ...]]) -> list[dict[str, Any]]:
        """Return answers as the result of a prediction."""
        if not answers:
            return []
        values: list[Any] = [path[-1] for path in answers] if self.kind == "choices" else [list(p) for p in answers]
        return [{"from_name": self.name, "to_name": self.to_name, "type": self.kind, "value": {self.kind: values}}]

    def text_of(self, task: object) -> str | None:
        """Return the text of a task; None where it has none. Nothing is ever fetched: an address is no text."""
        data = task.get("data") if isinstance(task, dict) else None
        text = data.get(self.text_key) if isinstance(data, dict) else None
        if not isinstance(text, str):
            return None
        return without_tags(text) if self.is_html else text

    def answers(self, result: object) -> list[tuple[str, ...]]:
        """Return the answers of an annotation to this question, each as its path."""
        out: list[tuple[str, ...]] = []
        for one in result if isinstance(result, list) else []:
            if not isinstance(one, dict) or one.get("from_name") != self.name or not isinstance(one.get("value"), dict):
                continue
            given = one["value"].get(self.kind)
            for path in given if isinstance(given, list) else []:
                names = [path] if isinstance(path, str) else path
                if isinstance(names, list) and names and all(isinstance(name, str) for name in names):
                    out.append(tuple(names))
        return out


def read_control(config: str) -> Control:
    """Return the first question of a configuration that choices about a text answer; raises DataError.

    >>> control = read_control('<View><Text name="t" value="$body"/><Choices name="c" toName="t"><Choice value="a"/>'
    ...     '</Choices></View>')
    >>> control.text_key, control.single, dict(control.paths)
    ('body', True, {'a': ('a',)})
    """
    root = parse_xml(config)
    texts = {e.attributes.get("name", ""): e for e in root.walk() if e.tag in TEXTS}
    for element in root.walk():
        text = texts.get(element.attributes.get("toname", ""))
        if element.tag not in CONTROLS or text is None:
            continue
        if text.attributes.get("valuetype") == "url" or not text.attributes.get("value", "").startswith("$"):
            continue
        own = element.attributes
        single = own.get("choice", "single") != "multiple" if element.tag == "choices" else own.get("maxusages") == "1"
        return Control(
            kind=element.tag,
            name=own.get("name", ""),
            to_name=own["toname"],
            text_key=text.attributes["value"][1:],
            is_html=text.tag == "hypertext",
            single=single,
            paths=_paths(element),
        )
    raise DataError(
        "the labeling configuration has no Choices and no Taxonomy about a Text with a value such as $text."
    )


def _paths(control: Element) -> dict[str, tuple[str, ...]]:
    """Return the answers that a question offers, by alias and by value; the first of a name goes before."""
    out: dict[str, tuple[str, ...]] = {}
    waiting: list[tuple[Element, tuple[str, ...]]] = [(control, ())]
    while waiting:
        element, path = waiting.pop()
        if element.tag == "choice":
            value, alias = element.attributes.get("value", ""), element.attributes.get("alias", "")
            path = (*path, alias or value)
            for name in filter(None, (alias, value)):
                out.setdefault(name, path)
        waiting.extend((below, path) for below in reversed(element.inside))
    return out


def parse_xml(text: str) -> Element:
    """Return the tree of an XML text; documents with a DOCTYPE, and so with entities, are refused unread.

    >>> parse_xml("<!DOCTYPE x [<!ENTITY a 'b'>]><x>&a;</x>")
    Traceback (most recent call last):
    ...
    longtail.errors.DataError: the labeling configuration must have no DOCTYPE.
    """
    if len(text) > MOST_CHARACTERS:
        raise DataError(f"the labeling configuration must have at most {MOST_CHARACTERS} characters; got {len(text)}.")
    reader = _Reader()
    parser = expat.ParserCreate("utf-8")
    parser.StartElementHandler, parser.EndElementHandler = reader.start, reader.end
    parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = reader.refuse
    try:
        parser.Parse(text.encode("utf-8", "surrogatepass"), True)
    except expat.ExpatError as error:
        raise DataError(f"the labeling configuration is no XML: {error}.") from None
    return reader.root.inside[0]


class _Reader:
    """Builds the tree while XML is parsed."""

    def __init__(self) -> None:
        self.root = Element("", {})
        self.open, self.count = [self.root], 0

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        self.count += 1
        if self.count > MOST_ELEMENTS or len(self.open) > MOST_DEPTH:
            raise DataError(
                f"the labeling configuration must have at most {MOST_ELEMENTS} elements, at most {MOST_DEPTH} deep."
            )
        made = Element(tag.lower(), {name.lower(): value for name, value in attributes.items()})
        self.open[-1].inside.append(made)
        self.open.append(made)

    def end(self, tag: str) -> None:
        self.open.pop()

    def refuse(self, *what: object) -> None:
        raise DataError("the labeling configuration must have no DOCTYPE.")


def without_tags(markup: str) -> str:
    """Return the words of a piece of HTML, in a time that only its length decides.

    >>> without_tags("<p>red <b>apple</b> &amp; co<script>x()</script></p>")
    'red apple & co'
    """
    words: list[str] = []
    inside = ""  # the tag whose contents are no words
    for piece in TAG.split(markup):
        if not piece.startswith("<") or not piece.endswith(">"):
            if not inside:
                words.append(piece)
            continue
        name = TAG_NAME.match(piece.lower())
        if name is not None and inside and name[1] == f"/{inside}":
            inside = ""
        elif name is not None and not inside and name[1] in UNREAD:
            inside = name[1]
    return " ".join(html.unescape(NUMBERED.sub("\ufffd", " ".join(words))).split())
