"""The server: one address of this machine, a page on it, until it is interrupted.

uvicorn answers; here is what it leaves open. A connection that says nothing, or whose request never
ends, is dropped after a while, and one that does not read what it is sent as well: neither can keep
others out. Where there are too many connections the one that has been idle longest makes room. When
the server ends, so do open readings, with a message and without a traceback.

The page is for the person at this machine, which `Guard` sees to. Another site that is open in the
same browser must not reach it, neither directly (Origin, Sec-Fetch-Site) nor by a name of its own
that resolves to this address (DNS rebinding: such a name is neither an IP address nor `localhost`,
so Host tells).
"""

import asyncio
import ipaddress
import socket
import threading
import time
import webbrowser
from collections.abc import Collection
from typing import Any

import h11
import uvicorn
from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

GRACE = 3
"""Seconds that open answers have to end when the server does."""
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


class Connection(H11Protocol):
    """A connection that cannot stall the server."""

    patience = 10.0
    """Seconds for the head of a request to arrive, and for an answer to be taken."""
    most = 512
    """Connections at the same time."""

    def __init__(self, *settings: Any, **more: Any) -> None:
        super().__init__(*settings, **more)
        self._silent: asyncio.TimerHandle | None = None
        self._stalled: asyncio.TimerHandle | None = None
        self._last = time.monotonic()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request; who has been idle longest may have to make room."""
        super().connection_made(transport)
        self._silent = self.loop.call_later(self.patience, transport.abort)
        if len(self.connections) > self.most:
            ours = (one for one in self.connections if isinstance(one, Connection))
            longest = min((one for one in ours if one.is_idle), key=lambda one: one._last)
            longest.transport.abort()

    def data_received(self, data: bytes) -> None:
        """Wait no more once the head of a request is complete."""
        super().data_received(data)
        self._last = time.monotonic()
        if self.conn.their_state is not h11.IDLE:
            self._silent = _ended(self._silent)
        elif self._silent is None:
            self._silent = self.loop.call_later(self.patience, self.transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait for nothing."""
        self._silent, self._stalled = _ended(self._silent), _ended(self._stalled)
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Begin to wait for what was sent to be taken."""
        super().pause_writing()
        self._stalled = self.loop.call_later(self.patience, self.transport.abort)

    def resume_writing(self) -> None:
        """It was taken."""
        self._stalled = _ended(self._stalled)
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP, with the headers that every answer has."""
        headers = {**HEADERS, "Content-Type": "text/plain; charset=utf-8", "Connection": "close"}
        refusal = h11.Response(status_code=400, headers=list(headers.items()))
        for event in (refusal, h11.Data(data=msg.encode()), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    @property
    def is_idle(self) -> bool:
        """Whether nothing that came over it is being worked on."""
        return self.cycle is None or self.cycle.response_complete


class Server(uvicorn.Server):
    """uvicorn's, which tells those who wait for an answer when it ends."""

    def __init__(self, app: Starlette) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                http=Connection,
                ws="none",
                log_level="error",
                access_log=False,
                server_header=False,
                date_header=False,
                timeout_graceful_shutdown=2 * GRACE,
                timeout_keep_alive=30,
            )
        )
        self._readings = app.state.readings

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop the readings; who does not take the message is cut off."""
        self._readings.workers.close()
        for_the_rest = asyncio.get_running_loop().call_later(GRACE, self._cut_off)
        await super().shutdown(sockets)
        for_the_rest.cancel()

    def _cut_off(self) -> None:
        for connection in list(self.server_state.connections):
            assert isinstance(connection, Connection)
            connection.transport.abort()


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


def bind(host: str, port: int) -> socket.socket:
    """Take the port, or say clearly that it is taken; port 0 takes any free one."""
    if not 0 <= port <= 65535:
        raise ValueError(f"port is {port}, expected 0 to 65535")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    taken = socket.socket(family, socket.SOCK_STREAM)
    try:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind((host, port))
        taken.listen(128)
    except OSError as error:
        taken.close()
        hint = "is another server running? choose another with --port" if port else "check --host"
        raise ValueError(
            f"cannot listen on {host} port {port}: {error.strerror or error}; {hint}"
        ) from None
    return taken


def address(taken: socket.socket) -> str:
    """Where a browser on this machine finds the page."""
    host, port = taken.getsockname()[:2]
    if host in ("0.0.0.0", "::"):
        host = "127.0.0.1"
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


def serve(app: Starlette, taken: socket.socket, *, browser: bool) -> None:
    """Serve until interrupted."""
    server = Server(app)
    if browser:
        threading.Thread(target=_open_browser, args=(server, address(taken)), daemon=True).start()
    server.run(sockets=[taken])


def _open_browser(server: uvicorn.Server, where: str) -> None:
    while not server.started:
        time.sleep(0.05)
    webbrowser.open(where)


def _ended(timer: asyncio.TimerHandle | None) -> asyncio.TimerHandle | None:
    """No timer, after this one has been cancelled."""
    if timer is not None:
        timer.cancel()
    return None
