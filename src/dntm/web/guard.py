"""Guard: who may ask, how much, and which headers every answer carries.

The page is for the person at this machine. Another site that is open in the same browser must not
reach it, neither directly (Origin, Sec-Fetch-Site) nor by a name of its own that resolves to this
address (DNS rebinding: such a name is neither an IP address nor `localhost`, so Host tells).
"""

import ipaddress
from collections.abc import Collection
from dataclasses import dataclass

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_POLICY = (
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
)
_FEATURES = (
    *("accelerometer", "autoplay", "camera", "display-capture", "encrypted-media", "fullscreen"),
    *("geolocation", "gyroscope", "magnetometer", "microphone", "midi", "payment"),
    *("picture-in-picture", "publickey-credentials-get", "screen-wake-lock", "usb"),
    "xr-spatial-tracking",
)
HEADERS = {
    "Content-Security-Policy": "; ".join(_POLICY),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Embedder-Policy": "require-corp",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": ", ".join(f"{feature}=()" for feature in _FEATURES),
    "X-Permitted-Cross-Domain-Policies": "none",
    "Cache-Control": "no-store",
}


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What is refused, with a message that says the limit."""

    characters: int = 20_000
    """Characters of a text (413)."""
    sentences: int = 1_000
    """Sentences of a text (422)."""
    words: int = 500
    """Words of a sentence (422)."""
    seconds: float = 60.0
    """How long one request may be worked on; then a reading ends with a message."""
    sending: float = 10.0
    """How long a request may take to arrive (408)."""
    readings: int = 32
    """Requests that are worked on at the same time (503)."""
    threads: int = 2
    """Worker threads that run the model."""
    remembered: int = 1_000
    """Sentences whose state is kept, of all texts together, so that an edit need not start from
    the beginning; with 50 entities of 256 numbers each takes 0.1 MiB."""

    @property
    def body(self) -> int:
        """Bytes of a request (413): room for every character escaped, and for the other fields."""
        return 12 * self.characters + 100_000


class Refused(Exception):  # noqa: N818  (it is an answer, not a failure)
    """A request the server does not carry out: the status and one sentence for the reader."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


LEFT = 499, "whoever asked has left"
"""Nobody sees this answer."""
ENDING = 503, "the server is being stopped"


class Guard:
    """Refuses foreign hosts and origins, and adds the headers to whatever is answered."""

    def __init__(self, app: ASGIApp, hosts: Collection[str]) -> None:
        self._app = app
        self._hosts = {host.lower() for host in hosts} | {"localhost"}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        problem = self._problem(Headers(scope=scope), scope["method"])
        if problem:
            refused = JSONResponse({"message": problem}, status_code=403)
            await refused(scope, receive, send_with_headers)
        else:
            await self._app(scope, receive, send_with_headers)

    def _problem(self, headers: Headers, method: str) -> str | None:
        host = headers.get("host", "")
        if not self._is_ours(host):
            return f"this server does not answer to {host!r} (see dntm serve --names)"
        origin = headers.get("origin")
        if origin is not None and origin not in (f"http://{host}", f"https://{host}"):
            return f"requests from {origin!r} are refused"
        site = headers.get("sec-fetch-site", "same-origin")
        if method not in ("GET", "HEAD") and site not in ("same-origin", "none"):
            return "requests from another site are refused"
        return None

    def _is_ours(self, host: str) -> bool:
        name, bracket, rest = host.lower().partition("]")
        name = f"{name}]" if bracket else name
        if not bracket:
            name, _, rest = name.partition(":")
        else:
            rest = rest.removeprefix(":")
        if rest and not rest.isdecimal():
            return False
        return name in self._hosts or _is_address(name.removeprefix("[").removesuffix("]"))


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
