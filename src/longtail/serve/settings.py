"""Everything that can be set of a server."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from longtail.errors import Keyword, Parameter, ParameterError
from longtail.validate import check_integer, check_real

MODEL_ID = re.compile(r"[a-z0-9._-]{1,64}")
LOOPBACK = ("127.0.0.1", "::1", "localhost")
PORT = 8383
PATHS = ("tokens", "reviews", "key", "log", "run_folder")
HOST_NAME = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9._-]{0,251}[A-Za-z0-9_])?|[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*")


@dataclass(frozen=True)
class ServeSettings:
    """What a server serves, to whom, and within which limits.

    Parameters
    ----------
    models : dict of str to Path or str
        Model folders by the ids that callers use; the first one is the default.
    host : str, default="127.0.0.1"
        Address to listen at. Beyond this machine only with `tokens`, or with `open`.
    port : int, default=8383
        Port to listen at; 0 for any free one.
    tokens : Path or None, default=None
        File of tokens (`longtail tokens`). None: only callers on this machine, who may do everything.
    open : bool, default=False
        Without tokens, let anyone who can reach the address ask for suggestions, and do nothing else.
    hosts : tuple of str
        Names under which the server may be asked for, besides its own address: what stands in the header `Host`.
    https : bool, default=False
        Browsers reach the server by https (a proxy in front): cookies are marked so, and origins must be https.
    workers : int, default=1
        Processes that answer.
    reviews : Path or None, default=None
        SQLite file of reviews; None for no reviewing.
    learn : bool, default=False
        Keep what other programs send to learn from (Annif's `learn`) as reviewed rows; needs `reviews`.
    key : Path or None, default=None
        Public key: models that were not signed with its other half are refused.
    copy_models : bool, default=False
        Serve from a private copy of each folder, so that files overwritten in place do no harm.
    watch_seconds : float, default=2.0
        How often folders are looked at for a new model.
    log : Path or None, default=None
        File of the access log, in JSON lines; None for standard error.
    log_requests : bool, default=True
        Write the access log to standard error where no file is named.
    log_texts : bool, default=False
        Write the texts of requests to the access log.
    run_folder : Path or None, default=None
        Private folder that the processes of one server share; made and removed where it is None.
    body_bytes, upload_bytes : int
        Largest body of a request; largest upload of a batch.
    result_bytes : int, default=1 GiB
        Largest result of a batch.
    rows : int, default=1000
        Most texts of one request.
    text_characters : int, default=200000
        Longest text.
    most_labels : int, default=1000
        Most labels per text that can be asked for.
    most_tags : int, default=100000
        Most labels of all texts of a request together.
    queue_rows : int, default=4096
        Texts that may wait to be scored; beyond that callers are asked to come back.
    batch_rows, batch_characters : int
        What is scored at once, at most.
    requests_at_once, connections : int
        Requests that are being answered, and connections that are open, at most, per process.
    seconds : float, default=30.0
        Time for an answer.
    body_seconds : float, default=20.0
        Time in which a body must have come; and, of streams, in which the next line must come.
    send_seconds : float, default=60.0
        Time in which a caller must take the next piece of an answer.
    rate : float or None, default=None
        Requests per second of one caller, on average; None for no limit.
    jobs : int, default=20
        Batches kept, running and finished.
    """

    models: Mapping[str, Path]
    host: str = "127.0.0.1"
    port: int = PORT
    tokens: Path | None = None
    open: bool = False
    hosts: tuple[str, ...] = ()
    https: bool = False
    workers: int = 1
    reviews: Path | None = None
    learn: bool = False
    key: Path | None = None
    copy_models: bool = False
    watch_seconds: float = 2.0
    log: Path | None = None
    log_requests: bool = True
    log_texts: bool = False
    run_folder: Path | None = None
    body_bytes: int = 4 << 20
    upload_bytes: int = 256 << 20
    result_bytes: int = 1 << 30
    rows: int = 1000
    text_characters: int = 200_000
    most_labels: int = 1000
    most_tags: int = 100_000
    queue_rows: int = 4096
    batch_rows: int = 128
    batch_characters: int = 200_000
    requests_at_once: int = 512
    connections: int = 1024
    seconds: float = 30.0
    body_seconds: float = 20.0
    send_seconds: float = 60.0
    rate: float | None = None
    jobs: int = 20
    extra: Mapping[str, str] = field(default_factory=dict)  # settings of protocols, by name

    def __post_init__(self) -> None:
        object.__setattr__(self, "models", {id: Path(folder) for id, folder in self.models.items()})
        for name in PATHS:
            if getattr(self, name) is not None:
                object.__setattr__(self, name, Path(getattr(self, name)))
        if not self.models:
            raise ParameterError(name="models", problem="must hold at least one model folder; got 0.")
        for id in self.models:
            if not MODEL_ID.fullmatch(id):
                allowed = "1 to 64 of the letters a-z, digits, dots, hyphens and underscores"
                raise ParameterError(name="the id of a model", allowed=allowed, got=id)
        check_integer("port", self.port, low=0, high=65535)
        for name in (
            "body_bytes",
            "upload_bytes",
            "result_bytes",
            "rows",
            "text_characters",
            "most_labels",
            "most_tags",
        ):
            check_integer(name, getattr(self, name), low=1)
        for name in (
            "queue_rows",
            "batch_rows",
            "batch_characters",
            "requests_at_once",
            "connections",
            "jobs",
            "workers",
        ):
            check_integer(name, getattr(self, name), low=1)
        for name in ("seconds", "body_seconds", "send_seconds", "watch_seconds"):
            check_real(name, getattr(self, name), low=0, open_low=True)
        if self.rate is not None:
            check_real("rate", self.rate, low=0, open_low=True)
        if self.learn and self.reviews is None:
            raise ParameterError(name="learn", problem="needs a file of reviews: what is to be learned is kept there.")
        for name in self.hosts:
            if not HOST_NAME.fullmatch(name):
                allowed = "the name of a host such as 'tags.example.org', without http:// and without a port"
                raise ParameterError(name="hosts", allowed=allowed, got=name)
        if self.open:
            self._check_open()
        if self.tokens is None and not self.open and not self.is_loopback:
            raise ParameterError(
                "host {host!r} can be reached from other machines; {tokens} with a file of tokens, or {open} to let "
                "anyone ask for suggestions.",
                host=self.host,
                tokens=Keyword("tokens", verb="pass"),
                open=Keyword("open", True, verb="pass"),
            )

    def _check_open(self) -> None:
        """Refuse what nobody could use where anyone may ask for suggestions, and for nothing else."""
        beside = {
            "tokens": "lets anyone in without a token; give one of the two",
            "reviews": "lets anyone ask for suggestions and nobody review; people who review need tokens",
        }
        for name, why in beside.items():
            if getattr(self, name) is not None:
                raise ParameterError(
                    "{open} cannot be used with {other}: it {why}.",
                    open=Parameter("open"),
                    other=Parameter(name),
                    why=why,
                )

    @property
    def is_loopback(self) -> bool:
        """Whether only programs on this machine can reach the server."""
        return self.host in LOOPBACK

    def paths(self) -> list[Path]:
        """Return the files and folders of a server."""
        own = (self.tokens, self.reviews, self.key, self.log, self.run_folder)
        return [*self.models.values(), *(path for path in own if path is not None)]

    @property
    def default_model(self) -> str:
        """The id of the first model."""
        return next(iter(self.models))


def model_id(folder: Path) -> str:
    """Return the id of a model folder, made of its name.

    >>> model_id(Path("models/My Model")), model_id(Path("."))[:1] != "."
    ('my-model', True)
    """
    name = folder.resolve().name.lower()
    return re.sub(r"[^a-z0-9._-]+", "-", name).strip("-.")[:64] or "model"
