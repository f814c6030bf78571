"""The server: requests are checked before anything is computed, and uvicorn serves them.

A text that is too long is refused with status 413, a malformed field with 422; the message names
the field.

The page is meant for the user of this machine. `Guard` keeps out other sites that are open in the
same browser: it checks Origin and Sec-Fetch-Site, and it refuses unknown host names, since a
foreign name can be made to resolve to this address (DNS rebinding).
"""

import ipaddress
import json
import re
import socket
import threading
import webbrowser
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Self
from urllib.parse import urlsplit

import uvicorn
from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dntm.reader.text import Kind

ENTITIES: dict[str, tuple[str, tuple[Kind, ...]]] = {
    "both": ("names and unknown words", ("names", "unknown")),
    "names": ("names", ("names",)),
    "unknown": ("unknown words", ("unknown",)),
    "inline": ("words marked as [1], [2]", ("inline",)),
}
"""What counts as an entity: the page's label and the reader's kinds."""
CONNECTIONS = 100
"""Concurrent connections; uvicorn answers 503 to more."""
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Embedder-Policy": "require-corp",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_PARAGRAPH_END = re.compile(r"\n\s*\n")


@dataclass(frozen=True, kw_only=True)
class Limits:
    """How much the server does for a request."""

    characters: int = 20_000
    """Length of a text."""
    seconds: float = 60.0
    """Computing time of a request."""
    threads: int = 2
    """Worker threads that run the model."""
    remembered: int = 1_000
    """Sentences whose states are kept, over all texts, so that an edited text is read from the edit
    on; with 50 entities of 256 numbers a sentence takes 0.1 MiB."""

    @property
    def body(self) -> int:
        """Bytes of a request: every character escaped, and the other fields."""
        return 12 * self.characters + 100_000


class Refused(HTTPException):
    """A request that is refused: the status and a message for the user."""


@dataclass(frozen=True, kw_only=True)
class ReadRequest:
    """Read a text. Sentences that an earlier reading shares with it are not read again."""

    text: str
    """White space is normalized as the page does when it joins sentences."""
    kinds: tuple[Kind, ...]
    reading: str
    """The id of the earlier reading, or an empty string."""
    have: int
    """How many of its sentences the page has."""

    @classmethod
    def parse(cls, body: dict[str, Any], limits: Limits) -> Self:
        """Check the fields."""
        kind = body.get("entities", "both")
        if not isinstance(kind, str) or kind not in ENTITIES:
            raise Refused(422, f"entities must be one of {', '.join(ENTITIES)}")
        reading = body.get("reading", "")
        if not isinstance(reading, str):
            raise Refused(422, "reading must be the id of a reading")
        have = body.get("have", 0)
        if type(have) is not int or have < 0:
            raise Refused(422, "have must be a number of sentences")
        text = body.get("text")
        if not isinstance(text, str):
            raise Refused(422, "text must be a string")
        if (length := len(text)) > limits.characters:
            problem = f"the text has {length:,} characters; the limit is {limits.characters:,}"
            raise Refused(413, problem)
        lines = text.replace("\r\n", "\n").replace("\r", "\n").strip()
        joined = "\n\n".join(" ".join(part.split()) for part in _PARAGRAPH_END.split(lines))
        if not joined:
            raise Refused(422, "the text is empty: paste or open a text, or choose an example")
        return cls(text=joined, kinds=ENTITIES[kind][1], reading=reading, have=have)


@dataclass(frozen=True, kw_only=True)
class PredictRequest(ReadRequest):
    """What the models predicted at a token of a text."""

    sentence: int
    position: int

    @classmethod
    def parse(cls, body: dict[str, Any], limits: Limits) -> Self:
        """Check the fields."""
        place: dict[str, Any] = {name: body.get(name) for name in ("sentence", "position")}
        for name, number in place.items():
            if type(number) is not int or number < 0:
                raise Refused(422, f"{name} must be a number, from 0")
        return cls(**vars(ReadRequest.parse(body, limits)), **place)


async def body_of(request: Request, limits: Limits) -> dict[str, Any]:
    """The request's JSON object; reading stops at the size limit."""
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise Refused(415, "the request must be application/json")
    content = bytearray()
    try:
        async for chunk in request.stream():
            content += chunk
            if len(content) > limits.body:
                raise Refused(413, f"the request is larger than {limits.body:,} bytes")
    except ClientDisconnect:
        raise Refused(499, "the client disconnected") from None
    try:
        body = json.loads(content)
    except (ValueError, RecursionError):
        raise Refused(422, "the request is not JSON") from None
    if not isinstance(body, dict):
        raise Refused(422, "the request must be a JSON object")
    return body


class Server(uvicorn.Server):
    """uvicorn's server, which ends open readings with a message when it stops."""

    def __init__(self, app: Starlette) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                http="h11",
                ws="none",
                log_level="error",
                server_header=False,
                date_header=False,
                limit_concurrency=CONNECTIONS,
                timeout_graceful_shutdown=5,
            )
        )
        self._readings = app.state.readings

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop the readings, then the server."""
        self._readings.close()
        await super().shutdown(sockets)


class Guard:
    """Refuses unknown hosts and foreign origins, and adds `HEADERS` to every response."""

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

        app = self._app
        if problem := self._problem(Headers(scope=scope), scope["method"]):
            app = JSONResponse({"message": problem}, status_code=403)
        await app(scope, receive, send_with_headers)

    def _problem(self, headers: Headers, method: str) -> str | None:
        host = headers.get("host", "")
        if not self._is_known(host):
            return f"unknown host {host!r} (see dntm serve --names)"
        origin = headers.get("origin")
        if origin is not None and origin not in (f"http://{host}", f"https://{host}"):
            return f"requests from {origin!r} are refused"
        site = headers.get("sec-fetch-site", "same-origin")
        if method not in ("GET", "HEAD") and site not in ("same-origin", "none"):
            return "requests from another site are refused"
        return None

    def _is_known(self, host: str) -> bool:
        try:
            parts = urlsplit(f"//{host}")
            name, _ = parts.hostname or "", parts.port  # a port that is not a number raises
            return name in self._hosts or bool(ipaddress.ip_address(name))
        except ValueError:
            return False


def bind(host: str, port: int) -> socket.socket:
    """Listen on a port, any free one if it is 0; ValueError if that is not possible."""
    if not 0 <= port <= 65535:
        raise ValueError(f"port is {port}, expected 0 to 65535")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        hint = "is another server running? choose another with --port" if port else "check --host"
        raise ValueError(f"cannot listen on {host} port {port}: {error}; {hint}") from None


def address(listening: socket.socket) -> str:
    """The URL of the page for a browser on this machine."""
    host, port = listening.getsockname()[:2]
    if host in ("0.0.0.0", "::"):
        host = "127.0.0.1"
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


def serve(app: Starlette, listening: socket.socket, *, browser: bool) -> None:
    """Serve until interrupted."""
    if browser:
        # The socket listens already, so the browser's request waits until the server has started.
        opening = threading.Thread(target=webbrowser.open, args=(address(listening),), daemon=True)
        opening.start()
    Server(app).run(sockets=[listening])
