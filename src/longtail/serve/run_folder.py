"""The private folder that the processes of one server share: a secret, numbers, batches; removed at the end."""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
from pathlib import Path


class RunFolder:
    """A folder that only this user can read; one that was not given is made, and removed when the server ends."""

    def __init__(self, path: Path | None) -> None:
        self._own = path is None
        self.path = Path(tempfile.mkdtemp(prefix="longtail-serve-")) if path is None else path

    def secret(self) -> bytes:
        """Return the secret of this server, made by the first process that asks."""
        file = self.path / "secret"
        try:
            number = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            return file.read_bytes()
        made = secrets.token_bytes(32)
        with os.fdopen(number, "wb") as opened:
            opened.write(made)
        return made

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
