"""Sessions of browsers: a signed cookie that stands for a token, and a second secret against forged requests."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie

from longtail.serve.problems import Refused
from longtail.serve.run_folder import RunFolder
from longtail.serve.tokens import Token, Tokens

LIFETIME = 12 * 3600  # seconds


@dataclass(frozen=True)
class Session:
    """A browser that has signed in: its token, and what its cookie says."""

    token: Token
    cookie: str


class Sessions:
    """Makes and reads the cookies of one server: signed, they fall with their token, and when someone signs out."""

    def __init__(self, tokens: Tokens | None, folder: RunFolder) -> None:
        self._tokens, self._folder, self._secret = tokens, folder, folder.secret()

    def begin(self, token: Token) -> Session:
        """Return a new session of someone who has shown a token."""
        said = f"{token.session_key}.{int(time.time()) + LIFETIME}.{secrets.token_urlsafe(12)}"
        return Session(token, f"{said}.{self._signed('session', said)}")

    def find(self, cookie: str) -> Session | None:
        """Return the session of a cookie; None where it is not ours, too old, or its token was removed."""
        said, _, signature = cookie.rpartition(".")
        if not hmac.compare_digest(signature.encode(), self._signed("session", said).encode()) or self._tokens is None:
            return None
        key, until, nonce = said.split(".")
        token = self._tokens.by_session_key(key)
        if token is None or int(until) < time.time() or self._folder.has_ended(nonce):
            return None
        return Session(token, cookie)

    def end(self, session: Session) -> None:
        """End a session: its cookie, if somebody has a copy of it, opens nothing any more."""
        self._folder.end_session(session.cookie.split(".")[2])

    def csrf(self, session: Session) -> str:
        """Return what a page must send in the header `X-CSRF-Token` with every change."""
        return self._signed("csrf", session.cookie)

    def check_csrf(self, session: Session, given: str) -> None:
        """Refuse a change that comes with a cookie alone, as a page of someone else could send it."""
        if not hmac.compare_digest(given.encode(), self.csrf(session).encode()):
            raise Refused(
                403, "changes with a cookie need the header X-CSRF-Token, as GET /v1/longtail/session tells it."
            )

    def _signed(self, purpose: str, said: str) -> str:
        return hmac.new(self._secret, f"{purpose}:{said}".encode(), hashlib.sha256).hexdigest()


def cookie_name(https: bool) -> str:
    """Return the name of our cookie; with https one that browsers bind to this host."""
    return "__Host-longtail" if https else "longtail"


def cookie_of(header: str, *, https: bool) -> str | None:
    """Return our cookie out of a header `Cookie`."""
    if not header:
        return None
    try:
        found = SimpleCookie(header).get(cookie_name(https))
    except CookieError:
        return None
    return None if found is None else found.value


def set_cookie(value: str, *, https: bool, lifetime: int = LIFETIME) -> str:
    """Return the header that sets our cookie; with an empty value and no lifetime the one that removes it."""
    secure = "; Secure" if https else ""
    return f"{cookie_name(https)}={value}; Path=/; Max-Age={lifetime}; HttpOnly; SameSite=Strict{secure}"
