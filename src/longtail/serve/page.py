"""The page for people: files that are read once, sent with a policy under which nothing but them can run."""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from longtail.serve.problems import Problem
from longtail.serve.server import Server

FOLDER = Path(__file__).parent / "page"
MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {  # beside those that every answer gets
    "Content-Security-Policy": POLICY,
    "Cache-Control": "no-cache",  # asked for again each time, and answered with 304 while it is the same
    "Vary": "Accept-Encoding",
}


@dataclass(frozen=True)
class PageFile:
    """One file of the page, as it is sent."""

    body: bytes
    compressed: bytes
    media_type: str
    tag: str

    def answer(self, request: Request) -> Response:
        """Return the file, or that the browser has it already."""
        headers = {**HEADERS, "ETag": self.tag}
        if self.tag in [tag.strip().removeprefix("W/") for tag in request.headers.get("if-none-match", "").split(",")]:
            return Response(status_code=304, headers=headers)
        accepted = [one.partition(";")[0].strip() for one in request.headers.get("accept-encoding", "").split(",")]
        if "gzip" in accepted:
            return Response(
                self.compressed, headers={**headers, "Content-Encoding": "gzip"}, media_type=self.media_type
            )
        return Response(self.body, headers=headers, media_type=self.media_type)


def page_files(folder: Path = FOLDER) -> dict[str, PageFile]:
    """Return the files of the page by the path below `/static/` at which they are asked for."""
    files = {}
    for path in sorted(folder.rglob("*")):
        if path.suffix in MEDIA_TYPES:
            body = path.read_bytes()
            tag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
            files[path.relative_to(folder).as_posix()] = PageFile(
                body, gzip.compress(body, mtime=0), MEDIA_TYPES[path.suffix], tag
            )
    return files


def routes(server: Server) -> list[BaseRoute]:
    """Return the routes of the page; they need no token, since signing in is a part of it."""
    files = page_files()

    async def page(request: Request) -> Response:
        return files["index.html"].answer(request)

    async def static(request: Request) -> Response:
        file = files.get(request.path_params["path"])
        if file is None:
            raise Problem(404, f"there is nothing at {request.url.path!r:.200}.")
        return file.answer(request)

    return [Route("/", page), Route("/static/{path:path}", static)]
