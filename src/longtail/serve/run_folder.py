"""The private folder that the processes of one server share: a secret, numbers, batches; removed at the end."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import tempfile
from pathlib import Path

ENDED_KEPT = 1000  # sessions that were ended by hand, of the last hours


class RunFolder:
    """A folder that only this user can read; one that was not given is made, and removed when the server ends."""

    def __init__(self, path: Path | None) -> None:
        self._own = path is None
        self.path: Path = Path(tempfile.mkdtemp(prefix="longtail-serve-")) if path is None else path

    def secret(self) -> bytes:
        """Return the secret of this server, made by the first process that asks."""
        file, made = self.path / "secret", self.path / f"secret.{secrets.token_hex(8)}"
        with os.fdopen(os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as opened:
            opened.write(secrets.token_bytes(32))
        with contextlib.suppress(FileExistsError):
            os.link(made, file)  # whole, or not there: half a secret could be guessed
        made.unlink()
        return file.read_bytes()

    def end_session(self, nonce: str) -> None:
        """Note for all processes that a session has ended."""
        ended = self.path / "ended"
        ended.mkdir(mode=0o700, exist_ok=True)
        (ended / nonce).touch()
        files = sorted(((file.stat().st_mtime, file) for file in ended.iterdir()), reverse=True)
        for _, file in files[ENDED_KEPT:]:
            file.unlink(missing_ok=True)

    def has_ended(self, nonce: str) -> bool:
        """Say whether a session has ended."""
        return (self.path / "ended" / nonce).exists()

    def ask_to_look(self) -> None:
        """Leave word for all processes to look at the folders of models."""
        (self.path / "look").touch()

    def asked_to_look(self) -> float:
        """Return when somebody last left word to look at the folders; 0 for never."""
        try:
            return (self.path / "look").stat().st_mtime
        except OSError:
            return 0.0

    def close(self) -> None:
        """Remove the folder if it was made here."""
        if self._own:
            self.remove()

    def remove(self) -> None:
        """Remove the folder and all in it."""
        shutil.rmtree(self.path, ignore_errors=True)
