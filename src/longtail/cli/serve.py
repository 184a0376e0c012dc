"""`longtail serve`: put models to work behind HTTP."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click

from longtail.errors import MissingExtraError, ParameterError

NAMED = re.compile(r"([a-z0-9._-]{1,64})=(.+)")


@click.command()
@click.argument("models", nargs=-1, required=True, metavar="MODEL...")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen at.")
@click.option("--port", type=int, default=8383, show_default=True, help="Port to listen at; 0 for any free one.")
def serve(models: tuple[str, ...], host: str, port: int, **options: Any) -> None:
    """Serve MODEL to people and programs: a page in the browser, and HTTP for everything else.

    MODEL is a model folder, or NAME=FOLDER to give it a name; several may be given.
    """
    try:
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError:
        raise MissingExtraError("longtail serve", "starlette", "serve") from None
    from longtail.serve import ServeSettings, run_server

    run_server(ServeSettings(named_folders(models), host=host, port=port, **options))


def named_folders(models: tuple[str, ...]) -> dict[str, Path]:
    """Return folders by id: that before the equals sign, or one made of the folder's name."""
    from longtail.serve import model_id

    out: dict[str, Path] = {}
    for word in models:
        named = NAMED.fullmatch(word) if not Path(word).exists() else None
        folder = Path(word) if named is None else Path(named[2])
        id = model_id(folder) if named is None else named[1]
        if id in out:
            raise ParameterError(f"two models are called {id!r}; give one of them another name: NAME={folder}.")
        out[id] = folder
    return out
