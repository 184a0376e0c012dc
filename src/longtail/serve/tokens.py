"""Who is calling: bearer tokens with roles, stored as digests only."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import secrets
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from starlette.requests import HTTPConnection

from longtail.errors import ParameterError
from longtail.serve.problems import Refused
from longtail.validate import check_choice

ROLES = ("suggest", "review", "admin")  # each may do what those before it may
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
PREFIX = "lt_"
HEAD = '{"longtail": "tokens", "version": 1}\n'


@dataclass(frozen=True)
class Caller:
    """Someone who calls: name, role, and how this was shown ("token", "session", "local" or "open")."""

    name: str
    role: str
    by: str


def may(role: str, needed: str) -> bool:
    """Say whether a role includes another.

    >>> may("admin", "review"), may("suggest", "review")
    (True, False)
    """
    return ROLES.index(role) >= ROLES.index(needed)


@dataclass(frozen=True)
class Token:
    """What is stored of a token: who it was made for, what it may do, and the SHA-256 of it.

    A token is 256 random bits, which nobody can guess from its digest: a slow hash, which protects passwords that
    people choose, would only make every request slow.
    """

    name: str
    role: str
    digest: str

    @property
    def session_key(self) -> str:
        """What the cookie of a browser names the token by."""
        return hashlib.sha256(f"session:{self.digest}".encode()).hexdigest()[:32]


class Tokens:
    """The tokens of a file, read again when it changes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._state: tuple[int, int, int] | None = None
        self._by_digest: dict[str, Token] = {}
        self._by_session_key: dict[str, Token] = {}
        self.refresh()

    def refresh(self) -> None:
        """Read the file again if it has changed; raises ParameterError where it cannot be read.

        The tokens stay as they were then; of a file that was removed, none is left.
        """
        try:
            found = self.path.stat()
        except OSError as error:
            if isinstance(error, FileNotFoundError):  # who removes the file wants nobody to come in
                with self._lock:
                    self._by_digest, self._by_session_key, self._state = {}, {}, None
            raise ParameterError(f"{self.path} cannot be read: {error.strerror}.") from error
        state = (found.st_ino, found.st_mtime_ns, found.st_size)
        with self._lock:
            if state != self._state:
                tokens = read_tokens(self.path)
                self._by_digest = {token.digest: token for token in tokens}
                self._by_session_key = {token.session_key: token for token in tokens}
                self._state = state

    def find(self, token: str) -> Token | None:
        """Return what is known of a token."""
        return self._by_digest.get(digest_of(token))

    def by_session_key(self, key: str) -> Token | None:
        """Return the token that a cookie names, as long as it stands in the file."""
        return self._by_session_key.get(key)


def digest_of(token: str) -> str:
    """Return the digest by which a token is stored."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def read_tokens(path: Path) -> list[Token]:
    """Return the tokens of a file; raises ParameterError."""
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ParameterError(f"{path} cannot be read: {why}.") from error
    if not lines or lines[0] != HEAD.strip():
        raise ParameterError(f"{path} is not a file of tokens; make one with longtail tokens.")
    tokens = []
    for number, line in enumerate(lines[1:], 2):
        try:
            record = json.loads(line)
            token = Token(record["name"], record["role"], record["sha256"])
            sound = NAME.fullmatch(token.name) and token.role in ROLES and re.fullmatch(r"[0-9a-f]{64}", token.digest)
        except (ValueError, KeyError, TypeError):
            sound = None
        if not sound:
            raise ParameterError(f"{path} line {number} is no token.")
        tokens.append(token)
    return tokens


def write_tokens(path: Path, tokens: list[Token]) -> None:
    """Write a file of tokens in one step, readable by its owner only."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        number = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:  # which names the temporary file
        why = error.strerror if path.parent.is_dir() else f"the folder {path.parent} does not exist"
        raise ParameterError(f"{path} cannot be written: {why}.") from error
    try:
        with os.fdopen(number, "w", encoding="utf-8") as file:
            file.write(HEAD)
            for token in tokens:
                file.write(json.dumps({"name": token.name, "role": token.role, "sha256": token.digest}) + "\n")
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def add_token(path: Path, name: str, role: str) -> str:
    """Add a token for someone to a file, which is made if need be; returns the token, which is stored nowhere."""
    if not NAME.fullmatch(name):
        allowed = "1 to 64 letters, digits, dots, hyphens, underscores or @, the first a letter or digit"
        raise ParameterError(name="the name of a token", allowed=allowed, got=name)
    check_choice("role", role, ROLES)
    token = PREFIX + secrets.token_urlsafe(32)
    with _changing(path):
        tokens = read_tokens(path) if path.exists() else []
        if any(token.name == name for token in tokens):
            raise ParameterError(f"{path} has a token of {name!r} already; remove it first.")
        write_tokens(path, [*tokens, Token(name, role, digest_of(token))])
    return token


def remove_token(path: Path, name: str) -> None:
    """Remove the token of someone from a file; servers refuse it within a second."""
    with _changing(path):
        tokens = read_tokens(path)
        kept = [token for token in tokens if token.name != name]
        if len(kept) == len(tokens):
            raise ParameterError(f"{path} has no token of {name!r}.")
        write_tokens(path, kept)


@contextlib.contextmanager
def _changing(path: Path) -> Iterator[None]:
    """Hold the right to change a file of tokens: two changes at once could bring a removed token back."""
    try:
        import fcntl

        handle = os.open(path.absolute().parent, os.O_RDONLY)
    except (ImportError, OSError):  # no locks on this system; no such folder, which is told when it is written
        yield
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def require(request: HTTPConnection, role: str) -> str:
    """Return the name of the caller; raises Refused where nobody is known (401) or the role is too small (403)."""
    caller: Caller | None = request.scope.get("longtail.caller")
    if caller is None and request.scope.get("longtail.token_unknown"):
        raise Refused(401, "this token is not known here.")
    if caller is None:
        raise Refused(401, "this needs a token: send it in the header 'Authorization: Bearer TOKEN', or sign in.")
    if not may(caller.role, role):
        raise Refused(403, f"this needs the role {role!r}; {caller.name!r} has the role {caller.role!r}.")
    return caller.name
