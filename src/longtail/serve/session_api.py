"""The routes of sessions: a browser signs in with a token, and out."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from longtail.serve import schemas
from longtail.serve.longtail_api import ROOT
from longtail.serve.operations import Described, Gives, Operation, Takes
from longtail.serve.problems import Refused, json_answer
from longtail.serve.requests import Fields, read_json
from longtail.serve.server import Server
from longtail.serve.sessions import Session, cookie_of, set_cookie
from longtail.serve.tokens import Caller


def routes(server: Server) -> list[BaseRoute]:
    """Return the routes."""
    https = server.settings.https

    def session_of(request: Request) -> Session | None:
        """Return the session by which a caller is known; None where it is something else."""
        caller: Caller | None = request.scope.get("longtail.caller")
        cookie = cookie_of(request.headers.get("cookie", ""), https=https)
        return None if cookie is None or caller is None or caller.by != "session" else server.sessions.find(cookie)

    async def sign_in(request: Request) -> Response:
        fields = Fields(await read_json(request))
        given = fields.string("token", most=200, needed=True) or ""
        fields.finish()
        token = None if server.tokens is None else server.tokens.find(given)
        if token is None:
            raise Refused(401, "this token is not known here.")
        session = server.sessions.begin(token)
        facts = {"name": token.name, "role": token.role, "csrf": server.sessions.csrf(session)}
        return json_answer(facts, headers={"Set-Cookie": set_cookie(session.cookie, https=https)})

    async def sign_out(request: Request) -> Response:
        session = session_of(request)
        if session is not None:
            server.sessions.end(session)
        return Response(status_code=204, headers={"Set-Cookie": set_cookie("", https=https, lifetime=0)})

    async def who_am_i(request: Request) -> Response:
        caller: Caller | None = request.scope.get("longtail.caller")
        if caller is None and request.scope.get("longtail.token_unknown"):
            raise Refused(401, "this token is not known here.")
        if caller is None:
            raise Refused(401, "nobody has signed in; send a token.")
        session = session_of(request)
        csrf = None if session is None else server.sessions.csrf(session)
        return json_answer({"name": caller.name, "role": caller.role, "csrf": csrf})

    path = f"{ROOT}/session"
    return [
        Operation(
            "POST",
            path,
            sign_in,
            Described(
                "Sign in with a token; the answer sets a cookie.",
                None,
                takes=[Takes(schemas.SIGN_IN)],
                gives=Gives(schemas.SESSION),
                errors=[401, 415, 422],
            ),
        ),
        Operation("DELETE", path, sign_out, Described("Sign out.", None, gives=Gives(status=204))),
        Operation(
            "GET", path, who_am_i, Described("Who is calling.", None, gives=Gives(schemas.SESSION), errors=[401])
        ),
    ]
