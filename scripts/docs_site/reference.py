"""The reference: which public names there are, and the pages that list them.

A folder's public names are those in its front door, `__init__.pyi`. The pages in docs/reference/ arrange the names that
users need, each as a line `::: longtail.Tagger`. Names that no page arranges come to a page of their folder, made here,
so that every public name has its entry without anybody listing it. Nothing is imported: torch need not be there.
"""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "longtail"
PAGES = ROOT / "docs" / "reference"
ENTRY = re.compile(r"^::: (longtail[\w.]*)[ \t]*$", re.M)
LIST_MARK = "<!-- the list of all names is made here -->"


class Name(NamedTuple):
    """A public name."""

    path: str  # where users find it: `longtail.Tagger`, `longtail.data.read`
    home: str  # where it is defined: `longtail.pipeline.tagger.Tagger`
    kind: str  # "class", "function" or "constant"
    summary: str  # the first sentence of its docstring


# --- what is public ---------------------------------------------------------------------------------------------------


def folders() -> list[str]:
    """Return the folders that have a front door."""
    return sorted(door.parent.name for door in SOURCE.glob("*/__init__.pyi"))


@functools.cache
def names_of(folder: str) -> tuple[Name, ...]:
    """Return the names that a folder offers, in the order of their letters."""
    return tuple(
        name_at(f"longtail.{folder}.{name}", home)
        for name, home in sorted(imports(SOURCE / folder / "__init__.pyi").items())
    )


@functools.cache
def top_names() -> tuple[Name, ...]:
    """Return the names of `longtail` and of `longtail.nn` that are not modules."""
    out = []
    for file, prefix in ((SOURCE / "__init__.py", "longtail"), (SOURCE / "nn.py", "longtail.nn")):
        for name, home in sorted(imports(file).items()):
            if not is_module(f"{home}.{name}"):
                out.append(name_at(f"{prefix}.{name}", home))
    return tuple(out)


def imports(file: Path) -> dict[str, str]:
    """Return the names that a file imports from longtail, also for type checkers only, with their modules."""
    package = ".".join(["longtail", *file.parent.relative_to(SOURCE).parts])
    found: dict[str, str] = {}
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom):
            module = f"{package}.{node.module}" if node.level else node.module or ""
            if module.split(".")[0] == "longtail":
                found |= {alias.asname or alias.name: module for alias in node.names}
    offered = offered_names(file)
    return {name: home for name, home in found.items() if name in offered} if offered else found


def offered_names(file: Path) -> list[str]:
    """Return `__all__` of a file, empty where it has none."""
    for node in ast.parse(file.read_text("utf-8")).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "__all__":
            return list(ast.literal_eval(node.value))
    return []


def name_at(path: str, module: str) -> Name:
    """Return what is known of the name at `path`, which is defined in `module` or imported there."""
    name = path.rpartition(".")[2]
    file = file_of(module)
    nodes = definitions(file)
    if name in nodes:
        node = nodes[name]
        home = f"{module}.{name}"
        if isinstance(node, ast.ClassDef):
            return Name(path, home, "class", first_sentence(ast.get_docstring(node)))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            return Name(path, home, "function", first_sentence(ast.get_docstring(node)))
        return Name(path, home, "constant", "")
    further = imports(file.with_suffix(".pyi") if file.with_suffix(".pyi").exists() else file)
    return name_at(path, further[name])


@functools.cache
def definitions(file: Path) -> dict[str, ast.stmt]:
    """Return the classes, functions and constants that a file defines, by name."""
    found: dict[str, ast.stmt] = {}
    for node in ast.parse(file.read_text("utf-8")).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            found[node.name] = node
        elif isinstance(node, ast.Assign):
            found |= {target.id: node for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found[node.target.id] = node
    return found


def file_of(module: str) -> Path:
    """Return the file of a module or package."""
    path = SOURCE.parent.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def is_module(path: str) -> bool:
    """Say whether a dotted path is that of a module."""
    return file_of(path).is_file()


def first_sentence(docstring: str | None) -> str:
    """Return the first paragraph of a docstring, in one line."""
    return " ".join((docstring or "").partition("\n\n")[0].split())


# --- which page has a name --------------------------------------------------------------------------------------------


@functools.cache
def arranged() -> dict[str, str]:
    """Return the entries that the pages in docs/reference/ write down, each with the name of its page."""
    return {path: page.stem for page in sorted(PAGES.glob("*.md")) for path in ENTRY.findall(page.read_text("utf-8"))}


@functools.cache
def entries() -> dict[str, str]:
    """Return the page, below docs/reference/, of every name; keys are where names are defined."""
    by_path = {name.path: name.home for name in (*top_names(), *(n for folder in folders() for n in names_of(folder)))}
    found = {by_path.get(path, path): page for path, page in arranged().items()}
    for folder in folders():
        for name in names_of(folder):
            found.setdefault(name.home, f"inside/{folder}")
    return found


def remaining(folder: str) -> list[Name]:
    """Return the names of a folder that no written page arranges."""
    return [name for name in names_of(folder) if entries()[name.home] == f"inside/{folder}"]


def inside_pages() -> dict[str, str]:
    """Return the pages that are made: the names of every folder that no other page has."""
    return {folder: inside_page(folder, left) for folder in folders() if (left := remaining(folder))}


def inside_page(folder: str, names: list[Name]) -> str:
    """Return the page of a folder."""
    about = first_sentence(ast.get_docstring(ast.parse((SOURCE / folder / "__init__.py").read_text("utf-8"))))
    constants = [name for name in names if name.kind == "constant"]
    others = [name for name in names if name.kind != "constant"]
    lines = [
        "---\nsearch:\n  boost: 0.3\n---\n",
        f"# longtail.{folder}\n",
        f"{about}\n",
        f"These names of `longtail.{folder}` serve longtail's other folders and those who extend it; the names that",
        "most programs need are on [the other pages of the reference](../index.md).\n",
        *(f"::: longtail.{folder}.{name.path.rpartition('.')[2]}\n" for name in others),
    ]
    if constants:
        lines += ["## Constants and types\n"]
        lines += [f"::: {name.path}\n" for name in constants]
    return "\n".join(lines)


def with_levels(text: str) -> str:
    """Return a page of the reference whose entries below a heading are one level lower.

    >>> with_levels("# Data\\n\\n## Files\\n\\n::: longtail.data.read")
    '# Data\\n\\n## Files\\n\\n::: longtail.data.read\\n    options:\\n      heading_level: 3'
    """
    before, heading, below = text.partition("\n## ")
    return before + heading + ENTRY.sub(r"::: \1\n    options:\n      heading_level: 3", below)


# --- the list of all names --------------------------------------------------------------------------------------------


def name_list() -> str:
    """Return tables of the names that the written pages arrange, page by page, with a sentence each."""
    known = {name.path: name for name in (*(n for folder in folders() for n in names_of(folder)), *top_names())}
    titles: dict[str, list[str]] = {}
    for path, page in arranged().items():
        name = known.get(path) or name_at(path, path.rpartition(".")[0])
        titles.setdefault(page, []).append(f"| [`{shown(path)}`]({page}.md#{path}) | {escaped(name.summary)} |")
    blocks = []
    for page in page_order():
        if page in titles:
            title = (PAGES / f"{page}.md").read_text("utf-8").partition("\n")[0].lstrip("# ")
            blocks.append(f"### [{title}]({page}.md)\n\n| name | what it is |\n|---|---|\n" + "\n".join(titles[page]))
    inside = "The names that longtail's folders offer each other are listed [inside longtail](inside/index.md)."
    return "\n\n".join([*blocks, inside])


def folder_list() -> str:
    """Return a list of the pages that are made, with what each folder is about."""
    lines = []
    for folder in inside_pages():
        about = first_sentence(ast.get_docstring(ast.parse((SOURCE / folder / "__init__.py").read_text("utf-8"))))
        lines.append(f"| [`longtail.{folder}`]({folder}.md) | {escaped(about)} |")
    return "| folder | what it is about |\n|---|---|\n" + "\n".join(lines)


def page_order() -> list[str]:
    """Return the written pages as the list of docs/reference/index.md has them."""
    return re.findall(r"\]\(([\w-]+)\.md\)", (PAGES / "index.md").read_text("utf-8"))


def shown(path: str) -> str:
    """Return a name as people write it after `import longtail as lt`."""
    return path.replace("longtail.", "lt.", 1) if path.split(".")[1] in offered_names(SOURCE / "__init__.py") else path


def escaped(text: str) -> str:
    """Return words as they stand in a cell of a table."""
    return text.replace("|", "\\|")
