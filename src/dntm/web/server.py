"""The server: one address of this machine, a page on it, until it is interrupted."""

import socket
import threading
import time
import webbrowser

import uvicorn
from starlette.applications import Starlette

GRACE = 3
"""Seconds that open answers have to end when the server does."""


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
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        date_header=False,
        timeout_graceful_shutdown=GRACE,
        timeout_keep_alive=30,
        limit_concurrency=256,
    )
    server = uvicorn.Server(config)
    if browser:
        threading.Thread(target=_open_browser, args=(server, address(taken)), daemon=True).start()
    server.run(sockets=[taken])


def _open_browser(server: uvicorn.Server, where: str) -> None:
    while not server.started:
        time.sleep(0.05)
    webbrowser.open(where)
