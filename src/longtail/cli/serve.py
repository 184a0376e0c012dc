"""`longtail serve` and `longtail tokens`: put models to work behind HTTP, and say who may use them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click

from longtail.cli.options import json_option, key_option
from longtail.cli.output import announce_compilation, print_json
from longtail.errors import MissingExtraError, ParameterError

NAMED = re.compile(r"([a-z0-9._-]{1,64})=(.+)")
FOLDER = click.Path(path_type=Path)


@click.command()
@click.argument("models", nargs=-1, required=True, metavar="MODEL...")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen at; 0.0.0.0 for all.")
@click.option("--port", type=int, default=8383, show_default=True, help="Port to listen at; 0 for any free one.")
@click.option("--tokens", type=FOLDER, default=None, metavar="FILE", help="Who may call: see `longtail tokens`.")
@click.option("--open", "open", is_flag=True, help="Without tokens: anyone may ask for suggestions, and nothing else.")
@click.option("--name", "hosts", multiple=True, help="Name by which it is reached, such as tags.example.org; repeat.")
@click.option("--https", is_flag=True, help="A proxy in front speaks https with browsers.")
@click.option("--workers", type=int, default=1, show_default=True, help="Processes that answer; models are shared.")
@click.option("--reviews", type=FOLDER, default=None, metavar="FILE", help="SQLite file of reviews; made if need be.")
@click.option("--learn", is_flag=True, help="Keep what Annif sends to learn from as reviewed rows; needs --reviews.")
@click.option("--copy-models", is_flag=True, help="Serve from private copies of the folders.")
@click.option("--watch", "watch_seconds", type=float, default=2.0, show_default=True, help="Seconds between two looks.")
@click.option("--log", type=FOLDER, default=None, metavar="FILE", help="Access log, JSON lines. [default: stderr]")
@click.option("--no-log", is_flag=True, help="No access log.")
@click.option("--log-texts", is_flag=True, help="Write texts to the access log too.")
@click.option("--rate", type=float, default=None, help="Requests per second that one caller may send.")
@click.option("--timeout", "seconds", type=float, default=30.0, show_default=True, help="Seconds for an answer.")
@click.option("--max-body", type=int, default=4, show_default=True, metavar="MB", help="Largest body of a request.")
@click.option("--max-upload", type=int, default=256, show_default=True, metavar="MB", help="Largest file of a batch.")
@click.option("--max-rows", "rows", type=int, default=1000, show_default=True, help="Texts of one request.")
@click.option("--max-text", "text_characters", type=int, default=200_000, show_default=True, help="Letters of a text.")
@click.option("--max-queue", "queue_rows", type=int, default=4096, show_default=True, help="Texts that may wait.")
@key_option
def serve(models: tuple[str, ...], no_log: bool, max_body: int, max_upload: int, **options: Any) -> None:
    """Serve MODEL to people and programs: a page in the browser, and HTTP for everything else.

    MODEL is a model folder, or NAME=FOLDER to give it a name; several may be given, and the first one is asked where
    none is named. Only this machine can reach the server, and may do everything, unless --host and --tokens say
    otherwise. A folder that is replaced on disk (`longtail train -o` again, or `mv`) is served from then on, without
    a pause; one that is broken is not, and the old model stays. Ctrl-C, or SIGTERM, ends the server when all requests
    that have begun are answered.
    """
    try:
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError:
        raise MissingExtraError("longtail serve", "starlette", "serve") from None
    from longtail.serve import ServeSettings, run_server
    from longtail.validate import check_integer

    check_integer("max_body", max_body, low=1)
    check_integer("max_upload", max_upload, low=1)
    announce_compilation()
    settings = ServeSettings(
        named_folders(models),
        body_bytes=max_body << 20,
        upload_bytes=max_upload << 20,
        log_requests=not no_log,
        **options,
    )
    code = run_server(settings, _tell)
    if code:
        raise click.exceptions.Exit(code)


def _tell(models: list[dict[str, Any]], address: str) -> None:
    """Say what is served, and where."""
    for model in models:
        click.echo(f"{model['id']}: {model['method']}, {model['n_labels']:,} labels")
    click.echo(f"The page is at {address} and the API at {address}v1/longtail/openapi.json. Ctrl-C ends the server.")


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


@click.group()
def tokens() -> None:
    """Say who may use a server: tokens with roles, kept as digests in a file."""


@tokens.command()
@click.argument("name")
@click.argument("file", type=FOLDER)
@click.option(
    "--role",
    type=click.Choice(["suggest", "review", "admin"]),
    default="suggest",
    show_default=True,
    help="What it may do; each role may do what those before it may.",
)
@json_option
def add(name: str, file: Path, role: str, as_json: bool) -> None:
    """Make a token for NAME and print it, once: FILE keeps a digest of it only."""
    from longtail.serve import add_token

    token = add_token(file, name, role)
    if as_json:
        print_json({"name": name, "role": role, "token": token})
    else:
        click.echo(token)


@tokens.command()
@click.argument("name")
@click.argument("file", type=FOLDER)
def remove(name: str, file: Path) -> None:
    """Remove the token of NAME from FILE; running servers refuse it within a second or two."""
    from longtail.serve import remove_token

    remove_token(file, name)


@tokens.command(name="list")
@click.argument("file", type=FOLDER)
@json_option
def list_(file: Path, as_json: bool) -> None:
    """List who has a token in FILE."""
    from longtail.serve import read_tokens

    found = [{"name": token.name, "role": token.role} for token in read_tokens(file)]
    if as_json:
        print_json(found)
    else:
        for token in found:
            click.echo(f"{token['name']}  {token['role']}")
