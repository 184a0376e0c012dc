"""Sign model folders and refuse those that nobody trusted has signed: Ed25519, by the package cryptography.

The signature is one of the manifest, which holds the digests of all other files; it stands beside it in `manifest.sig`.
A private key is a file that only its owner reads; a public key may be given to anyone. Both are PEM files, as openssl
makes them too.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from longtail.errors import MissingExtraError, ModelError
from longtail.storage.manifest import MANIFEST, SIGNATURE, manifest_bytes, parse_manifest

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

MESSAGE = b"longtail model folder, manifest:\n"  # goes before what is signed: no other signature means the same
ALGORITHM = "ed25519"
LARGEST_FILE = 1 << 16  # bytes of a key or a signature


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
            raise ModelError(f"{file} exists already; a key is never replaced.")
    new = Ed25519PrivateKey.generate()
    secret = new.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption())
    shared = new.public_key().public_bytes(form.Encoding.PEM, form.PublicFormat.SubjectPublicKeyInfo)
    for file, raw, mode in ((private, secret, 0o600), (public, shared, 0o644)):
        try:
            with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as f:
                f.write(raw)
        except FileExistsError as error:
            raise ModelError(f"{file} exists already; a key is never replaced.") from error
        except OSError as error:
            raise ModelError(f"{file} cannot be written: {error.strerror}.") from error
    return private, public


def sign_folder(path: str | Path, key: str | Path | bytes) -> Path:
    """Sign a model folder with a private key, or the file of one; return the file of the signature."""
    path, private = Path(path), _private_key(key)
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


def check_signature(path: Path, manifest: bytes, key: str | Path | bytes) -> None:
    """Refuse a folder whose manifest was not signed with the other half of a public key, or of the file of one."""
    public = _public_key(key)
    file = path / SIGNATURE
    if not file.is_file():
        raise ModelError(f"{path} is not signed: it has no {SIGNATURE}.")
    try:
        with file.open("rb") as f:
            record = json.loads(f.read(LARGEST_FILE))
        algorithm, signature = record["algorithm"], bytes.fromhex(record["signature"])
    except OSError as error:
        raise ModelError(f"{file} cannot be read: {error.strerror}.") from error
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise ModelError(f"{file} is damaged: it is no signature.") from error
    if algorithm != ALGORITHM:
        raise ModelError(f"{file} is damaged: the algorithm must be {ALGORITHM!r}.")
    from cryptography.exceptions import InvalidSignature

    try:
        public.verify(signature, MESSAGE + manifest)
    except InvalidSignature as error:
        if record.get("key") != fingerprint(public):
            raise ModelError(f"{path} was signed with another key than the one given.") from error
        raise ModelError(f"{path / MANIFEST} was changed after it was signed.") from error


def fingerprint(public: Ed25519PublicKey) -> str:
    """Return the beginning of the SHA-256 of a public key, by which people tell keys apart."""
    return hashlib.sha256(public.public_bytes_raw()).hexdigest()[:32]


def _private_key(key: str | Path | bytes) -> Ed25519PrivateKey:
    raw, name = _key_bytes(key)
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        found = load_pem_private_key(raw, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise ModelError(f"{name} is no private key in PEM without a password.") from error
    if not isinstance(found, Ed25519PrivateKey):
        raise ModelError(f"{name} is a private key of another kind than Ed25519.")
    return found


def _public_key(key: str | Path | bytes) -> Ed25519PublicKey:
    raw, name = _key_bytes(key)
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    try:
        found = load_pem_public_key(raw)
    except (ValueError, UnsupportedAlgorithm) as error:
        raise ModelError(f"{name} is no public key in PEM.") from error
    if not isinstance(found, Ed25519PublicKey):
        raise ModelError(f"{name} is a public key of another kind than Ed25519.")
    return found


def _key_bytes(key: str | Path | bytes) -> tuple[bytes, str]:
    """Return a key and what to call it in a sentence."""
    _require()
    if isinstance(key, bytes):
        return key, "the key"
    try:
        with Path(key).open("rb") as f:
            return f.read(LARGEST_FILE), str(key)
    except (OSError, ValueError) as error:
        raise ModelError(f"the key {key} cannot be read: {getattr(error, 'strerror', None) or error}.") from error


def _require() -> None:
    try:
        import cryptography  # noqa: F401
    except ImportError as error:
        raise MissingExtraError("Signing models", "cryptography", "sign") from error
