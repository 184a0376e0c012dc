"""Sign model folders and refuse those that nobody trusted has signed: Ed25519, by the package cryptography.

The signature is one of the manifest, which holds the digests of all other files; it stands beside it in `manifest.sig`.
A private key is a file that only its owner reads; a public key may be given to anyone. Both are PEM files, as openssl
makes them too.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from longtail.errors import MissingExtraError, ModelError, ParameterError
from longtail.storage.manifest import MANIFEST, SIGNATURE, RepeatedKey, load_json, manifest_bytes, parse_manifest
from longtail.storage.open_file import model_path, open_regular, short_path
from longtail.storage.values import Choice, Text, Value, fields_problem

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

MESSAGE = b"longtail model folder, manifest:\n"  # goes before what is signed: no other signature means the same
ALGORITHM = "ed25519"
LARGEST_KEY = 1 << 16  # bytes of its file
LARGEST_SIGNATURE = 1 << 12  # bytes of its file
DIGITS = {"key": 32, "signature": 128}
FIELDS: dict[str, Value] = {"algorithm": Choice((ALGORITHM,)), "key": Text(32), "signature": Text(128)}
Key = str | Path | bytes


def make_keys(private: str | Path) -> tuple[Path, Path]:
    """Write a new private key, readable by its owner only, and its public half beside it (`.pub`); return both.

    A file that is there already is never replaced.
    """
    _require()
    from cryptography.hazmat.primitives import serialization as form
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    private = Path(private)
    public = private.with_name(private.name + ".pub")
    for file in (private, public):
        if file.exists() or file.is_symlink():
            raise ParameterError(f"{file} exists already; a key is never replaced.")
    new = Ed25519PrivateKey.generate()
    secret = new.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption())
    shared = new.public_key().public_bytes(form.Encoding.PEM, form.PublicFormat.SubjectPublicKeyInfo)
    for file, raw, mode in ((private, secret, 0o600), (public, shared, 0o644)):
        try:
            with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as f:
                f.write(raw)
        except FileExistsError as error:
            raise ParameterError(f"{file} exists already; a key is never replaced.") from error
        except OSError as error:
            raise ModelError(f"{file} cannot be written: {error.strerror}.") from error
    return private, public


def sign_folder(path: str | Path, key: Key) -> Path:
    """Sign a model folder with a private key, or the file of one; return the file of the signature."""
    path, private = model_path(path), _private_key(key)
    raw = manifest_bytes(path)
    parse_manifest(path, raw)
    record = {
        "algorithm": ALGORITHM,
        "key": fingerprint(private.public_key()),
        "signature": private.sign(MESSAGE + raw).hex(),
    }
    file, temporary = path / SIGNATURE, path / f"{SIGNATURE}.tmp"
    try:
        temporary.unlink(missing_ok=True)
        with temporary.open("x", encoding="ascii") as f:
            f.write(json.dumps(record, indent=1) + "\n")
        temporary.replace(file)
    except OSError as error:
        raise ModelError(f"{file} cannot be written: {error.strerror}.") from error
    return file


def check_signature(path: Path, manifest: bytes, key: Key) -> None:
    """Refuse a folder whose manifest was not signed with the other half of a public key, or of the file of one."""
    public = _public_key(key)
    record = _read_signature(path)
    from cryptography.exceptions import InvalidSignature

    try:
        public.verify(bytes.fromhex(record["signature"]), MESSAGE + manifest)
    except InvalidSignature as error:
        if record["key"] != fingerprint(public):
            raise ModelError(f"{path} was signed with another key than the one given.") from error
        raise ModelError(f"{path / MANIFEST} was changed after it was signed.") from error


def _read_signature(path: Path) -> dict[str, str]:
    """Return the signature of a folder: an object of JSON with exactly the fields that `sign_folder` writes."""
    file = path / SIGNATURE
    if not os.path.lexists(file):
        raise ModelError(f"{path} is not signed: it has no {SIGNATURE}.")
    try:
        with open_regular(file) as f:
            raw = f.read(LARGEST_SIGNATURE + 1)
    except OSError as error:
        raise ModelError(f"{file} cannot be read: {error.strerror}.") from error
    if len(raw) > LARGEST_SIGNATURE:
        raise ModelError(f"{file} is damaged: it is larger than a signature may be, {LARGEST_SIGNATURE} bytes.")
    try:
        record = load_json(raw.decode("ascii"))
    except RepeatedKey as error:
        raise ModelError(f"{file} is damaged: {error}.") from error
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{file} is damaged: it is no signature in JSON.") from error
    if not isinstance(record, dict):
        raise ModelError(f"{file} is damaged: it is no signature.")
    problem = fields_problem(record, FIELDS, frozenset(), "")
    if problem is not None:
        raise ModelError(f"{file} is damaged: {problem}.")
    for name, digits in DIGITS.items():
        if not re.fullmatch(f"[0-9a-f]{{{digits}}}", record[name]):
            raise ModelError(f"{file} is damaged: '{name}' must be {digits} hexadecimal digits.")
    return record


def fingerprint(public: Ed25519PublicKey) -> str:
    """Return the beginning of the SHA-256 of a public key, by which people tell keys apart."""
    return hashlib.sha256(public.public_bytes_raw()).hexdigest()[:32]


def checked_key(key: Key | None) -> Key | None:
    """Return a key, or the path of its file, as it was given; anything else is refused."""
    if key is not None and (not isinstance(key, str | os.PathLike | bytes) or not key):
        raise ParameterError(name="key", allowed="a key in PEM, as bytes, or the path of its file", got=key)
    return key


def _private_key(key: Key) -> Ed25519PrivateKey:
    raw, name = _key_bytes(key)
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        found = load_pem_private_key(raw, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise _refused(f"{name} is no private key in PEM without a password{_half(raw, 'PUBLIC')}") from error
    if not isinstance(found, Ed25519PrivateKey):
        raise _refused(f"{name} is a private key of another kind than Ed25519")
    return found


def _public_key(key: Key) -> Ed25519PublicKey:
    raw, name = _key_bytes(key)
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    try:
        found = load_pem_public_key(raw)
    except (ValueError, UnsupportedAlgorithm) as error:
        raise _refused(f"{name} is no public key in PEM{_half(raw, 'PRIVATE')}") from error
    if not isinstance(found, Ed25519PublicKey):
        raise _refused(f"{name} is a public key of another kind than Ed25519")
    return found


def _refused(why: str) -> ParameterError:
    """Return the error about a key that cannot be used."""
    return ParameterError("{name} cannot be used: {why}.", name="key", why=why)


def _half(raw: bytes, word: str) -> str:
    """Return words for a sentence where what was given is the other half of a key, by the first line of its PEM."""
    return f", but a {word.lower()} one" if f"{word} KEY-----".encode("ascii") in raw else ""


def _key_bytes(key: Key) -> tuple[bytes, str]:
    """Return a key and what to call it in a sentence."""
    _require()
    checked_key(key)
    if isinstance(key, bytes):
        return key, "it"
    try:
        with Path(key).open("rb") as f:  # a pipe too: secrets may come from another program
            return f.read(LARGEST_KEY), str(key)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise _refused(f"{short_path(Path(key))} cannot be read: {why}") from error


def _require() -> None:
    try:
        import cryptography  # noqa: F401
    except ImportError as error:
        raise MissingExtraError("Signing models", "cryptography", "sign") from error
