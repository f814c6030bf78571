"""The server: uvicorn on one address of this machine, with its own limits.

The page is meant for the person at this machine. `Guard` keeps other sites that are open in the
same browser away: it checks Origin and Sec-Fetch-Site, and it refuses host names that it does not
know, since a foreign name can be made to resolve to this address (DNS rebinding).
"""

import ipaddress
import socket
import threading
import webbrowser
from collections.abc import Collection
from urllib.parse import urlsplit

import uvicorn
from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

CONNECTIONS = 100
"""Concurrent connections; uvicorn answers 503 to more."""
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
HEADERS = {
    "Content-Security-Policy": "; ".join(_POLICY),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Embedder-Policy": "require-corp",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Server(uvicorn.Server):
    """uvicorn's server, which ends open readings with a message when it stops."""

    def __init__(self, app: Starlette) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                http="h11",
                ws="none",
                log_level="error",
                access_log=False,
                server_header=False,
                date_header=False,
                limit_concurrency=CONNECTIONS,
                backlog=128,
                h11_max_incomplete_event_size=64 * 1024,
                timeout_keep_alive=30,
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
    """Listen on a port, any free one if it is 0; ValueError if it is taken."""
    if not 0 <= port <= 65535:
        raise ValueError(f"port is {port}, expected 0 to 65535")
    listening = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen()
    except OSError as error:
        listening.close()
        hint = "is another server running? choose another with --port" if port else "check --host"
        raise ValueError(
            f"cannot listen on {host} port {port}: {error.strerror or error}; {hint}"
        ) from None
    return listening


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
