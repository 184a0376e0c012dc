"""`longtail sign`: sign a model folder, so that others can refuse models that were not made by those they trust."""

from __future__ import annotations

from pathlib import Path

import click

from longtail.cli.options import json_option
from longtail.cli.output import print_json
from longtail.errors import ModelError, ParameterError


@click.command()
@click.argument("model", type=click.Path(path_type=Path), required=False)
@click.option("--key", type=click.Path(path_type=Path), default=None, help="Private key (PEM, Ed25519) to sign with.")
@click.option(
    "--new-key",
    type=click.Path(path_type=Path),
    default=None,
    metavar="FILE",
    help="Make a key: the private half in FILE, the public half in FILE.pub.",
)
@json_option
def sign(model: Path | None, key: Path | None, new_key: Path | None, as_json: bool) -> None:
    """Sign MODEL with a private key; `longtail verify MODEL --key PUBLIC` then refuses it if anything was changed.

    The signature is stored in the folder, beside the manifest. Saving the model again removes it. Needs the extra
    [sign].
    """
    from longtail.pipeline import folder_schemas
    from longtail.storage import make_keys, sign_folder, verify_folder

    if (model is None) != (key is None) or (model is None and new_key is None):
        raise ParameterError("give MODEL and --key to sign a model, or --new-key to make a key.")
    facts: dict[str, str | None] = dict.fromkeys(("private_key", "public_key", "model_folder", "signature"))
    if new_key is not None:
        private, public = make_keys(new_key)
        facts |= {"private_key": str(private), "public_key": str(public)}
        if not as_json:
            click.echo(f"wrote {private} (keep it to yourself) and {public} (for those who verify)")
    if model is not None and key is not None:
        damaged = [record for record in verify_folder(model, folder_schemas()) if not record["ok"]]
        if damaged:
            raise ModelError(f"{model / damaged[0]['name']} {damaged[0]['problem']}; it was not signed.")
        facts |= {"model_folder": str(model), "signature": str(sign_folder(model, key))}
        if not as_json:
            click.echo(f"wrote {facts['signature']}")
    if as_json:
        print_json(facts)
