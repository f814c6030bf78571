"""The application: a page and its files, and four questions it may ask.

GET  /              the page
GET  /static/NAME   its files, from memory
GET  /api/about     the model, the limits, the example texts
POST /api/read      a text -> its reading, an event a line (`events`)
POST /api/maps      the beginning of a text -> the maps of its entities, where a reading was stopped
POST /api/predict   a place in a text -> what both models expected there

The page's files are all read when the server starts: no request ever reaches the disk. The export
is the same page as one file: style and scripts stand inside it, and a slot for the reading, which
the browser fills. Its policy allows these scripts alone, by their hash.
"""

import base64
import hashlib
import json
import re
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from dntm.reader.engine import ModelPair
from dntm.reader.reader import Reader
from dntm.web.events import line
from dntm.web.readings import OpenReading, Readings
from dntm.web.requests import ENTITIES, Limits, Refused, body_of
from dntm.web.server import Guard

_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_MODULES = (
    *("dom", "shade", "trail", "map", "predictions", "text", "stream", "export"),
    *("show", "reading", "editing", "app"),
)
"""In an order in which each comes after what it imports."""
_IMPORT = re.compile(r"^import [^;]*;\n", re.MULTILINE)
_EXPORT = re.compile(r"^export ", re.MULTILINE)
_LINKS = re.compile(r"^ *<(?:link|script)\b.*\n", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class File:
    """What is sent, and as what."""

    content: bytes
    type: str


@dataclass(frozen=True, slots=True)
class Example:
    """A short text to begin with."""

    title: str
    text: str
    edit: tuple[int, str]
    """A sentence (from 1) and what to put in its place, to see what that does to the meanings."""


def create_app(
    reader: Reader, limits: Limits | None = None, hosts: Collection[str] = ()
) -> Starlette:
    """The application around a reader; `hosts` are names it may be called by."""
    limits = limits or Limits()
    readings = Readings(reader, limits)
    page = page_files()
    about = _about(reader, limits)

    async def index(_: Request) -> Response:
        return _file(page["index.html"])

    async def static(request: Request) -> Response:
        found = page.get(request.path_params["name"])
        return _problem(404, "there is no such file") if found is None else _file(found)

    async def about_page(_: Request) -> Response:
        return JSONResponse(about)

    async def read(request: Request) -> Response:
        return _ReadingResponse(await readings.open(await body_of(request, limits)))

    async def maps(request: Request) -> Response:
        asked = await body_of(request, limits)
        return JSONResponse(await readings.maps(asked, request.is_disconnected))

    async def predict(request: Request) -> Response:
        asked = await body_of(request, limits)
        return JSONResponse(await readings.predictions(asked, request.is_disconnected))

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        readings.workers.close()

    app = Starlette(
        routes=[
            Route("/", index),
            Route("/static/{name}", static),
            Route("/api/about", about_page),
            Route("/api/read", read, methods=["POST"]),
            Route("/api/maps", maps, methods=["POST"]),
            Route("/api/predict", predict, methods=["POST"]),
        ],
        exception_handlers={Refused: _refused},
        lifespan=lifespan,
    )
    app.state.readings = readings
    # Outside of all that Starlette adds, so that its own answer to a failure has the headers too.
    app.middleware_stack = Guard(app.build_middleware_stack(), hosts)
    return app


class _ReadingResponse(StreamingResponse):
    """Sends a reading as it is made; ends it when all is sent or the reader has left."""

    def __init__(self, reading: OpenReading) -> None:
        async def lines() -> AsyncIterator[bytes]:
            async for event in reading.events():
                yield line(event)

        super().__init__(lines(), media_type="application/x-ndjson")
        self._reading = reading

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._reading.close()


def _about(reader: Reader, limits: Limits) -> dict[str, Any]:
    return {
        "model": _called(reader.models),
        "static": _beside(reader.models),
        "characters": limits.characters,
        "entities": [{"value": value, "title": title} for value, (title, _) in ENTITIES.items()],
        "examples": [asdict(example) for example in examples()],
    }


def _called(models: ModelPair) -> str:
    words = f"{len(models.vocabulary.words):,} words"
    config = models.dynamic.config
    if config.variant == "baseline":
        return f"A baseline without dynamic representations, {words}"
    layers = "input and output" if config.variant == "both" else config.variant
    return f"Model with dynamic {layers}, {config.merging} merging, {words}"


def _beside(models: ModelPair) -> str:
    if models.static.x.weight is models.dynamic.x.weight:
        return "the same weights without a memory"
    name = Path(models.static_is).name
    return "its static twin" if name == "static" else f"the baseline {name}"


def _file(file: File) -> Response:
    return Response(file.content, media_type=file.type)


def _problem(status: int, message: str) -> Response:
    headers = {"Retry-After": "2"} if status == 503 else None
    return JSONResponse({"message": message}, status_code=status, headers=headers)


async def _refused(_: Request, error: Exception) -> Response:
    assert isinstance(error, Refused)
    return _problem(error.status, error.message)


def page_files() -> dict[str, File]:
    """The files of the page by their name; the page itself is `index.html`."""
    found = {}
    for entry in (files("dntm.web") / "static").iterdir():
        suffix = entry.name[entry.name.rfind(".") :]
        if suffix in _TYPES:
            found[entry.name] = File(entry.read_bytes(), _TYPES[suffix])
    found["export.html"] = File(_export_page(found).encode(), "text/plain; charset=utf-8")
    return found


def examples() -> list[Example]:
    """The texts that come with the package: the first line is the title."""
    folder = files("dntm.web") / "texts"
    edits = json.loads((folder / "edits.json").read_text(encoding="utf-8"))
    found = []
    for name, (sentence, instead) in sorted(edits.items()):
        title, _, text = (folder / f"{name}.txt").read_text(encoding="utf-8").partition("\n")
        found.append(Example(title, text.strip(), (sentence, instead)))
    return found


def _export_page(page: Mapping[str, File]) -> str:
    def text(name: str) -> str:
        return page[name].content.decode()

    script = "\n".join(_EXPORT.sub("", _IMPORT.sub("", text(f"{m}.js"))) for m in _MODULES)
    style = text("style.css")
    icon = "data:image/svg+xml;base64," + base64.b64encode(page["icon.svg"].content).decode()
    policy = (
        f"default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'; "
        f"script-src '{_hash(script)}'; style-src '{_hash(style)}'"
    )
    head = (
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f'<link rel="icon" href="{icon}">\n'
        f"<style>{style}</style>\n"
    )
    body = (
        '<script type="application/json" id="reading-data"></script>\n'
        f'<script type="module">{script}</script>\n'
    )
    html = _LINKS.sub("", text("index.html"))
    return html.replace("</head>", f"{head}</head>").replace("</body>", f"{body}</body>")


def _hash(inline: str) -> str:
    digest = hashlib.sha256(inline.encode()).digest()
    return "sha256-" + base64.b64encode(digest).decode()
