"""The application: the page, its files, and the questions it asks.

GET  /              the page
GET  /static/NAME   its files
GET  /api/about     the model, the limits, the example texts
POST /api/read      a text -> its reading, one event per line (`readings`)
POST /api/predict   a place in a text -> what both models predicted there

All files of the page are loaded when the server starts: no request reaches the disk. The export is
the same page as one file, with style and scripts inline and a slot for the reading, which the
browser fills. Its security policy allows only these scripts, by their hash.
"""

import base64
import hashlib
import json
import re
from collections.abc import Collection, Mapping
from importlib.resources import files
from typing import Any, NamedTuple

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from dntm.reader.reader import Reader
from dntm.web.readings import Readings, line
from dntm.web.server import ENTITIES, Guard, Limits, PredictRequest, ReadRequest, Refused, body_of

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
"""Each after the modules that it imports."""
_IMPORT = re.compile(r"^import [^;]*;\n", re.MULTILINE)
_EXPORT = re.compile(r"^export ", re.MULTILINE)
_LINKS = re.compile(r"^ *<(?:link|script)\b.*\n", re.MULTILINE)


class Example(NamedTuple):
    """A text about an unknown word."""

    word: str
    text: str
    edit: tuple[int, str]
    """A sentence number (from 1) and a new sentence, which changes the best guess for the word."""


def create_app(
    reader: Reader, limits: Limits | None = None, hosts: Collection[str] = ()
) -> Starlette:
    """The application around a reader; it answers to the host names `hosts`."""
    limits = limits or Limits()
    readings = Readings(reader, limits)
    page = page_files()

    async def read(request: Request) -> Response:
        asked = ReadRequest.parse(await body_of(request, limits), limits)
        events = readings.read(asked, await readings.prepare(asked))
        lines = (line(event) async for event in events)
        return StreamingResponse(lines, media_type="application/x-ndjson")

    async def predict(request: Request) -> Response:
        asked = PredictRequest.parse(await body_of(request, limits), limits)
        return JSONResponse(await readings.predictions(asked))

    app = Starlette(
        routes=[
            Route("/", page["index.html"], methods=["GET"]),
            *(Route(f"/static/{name}", file, methods=["GET"]) for name, file in page.items()),
            Route("/api/about", JSONResponse(_about(reader, limits)), methods=["GET"]),
            Route("/api/read", read, methods=["POST"]),
            Route("/api/predict", predict, methods=["POST"]),
        ],
        exception_handlers={Refused: _refused},
    )
    app.state.readings = readings
    # Outermost, so that Starlette's own answer to an error has the headers too.
    app.middleware_stack = Guard(app.build_middleware_stack(), hosts)
    return app


def _about(reader: Reader, limits: Limits) -> dict[str, Any]:
    config, words = reader.models.dynamic.config, f"{len(reader.vocabulary.words):,} words"
    layers = "input and output" if config.variant == "both" else config.variant
    model = f"Model with dynamic {layers} embeddings, {config.merging} merging, {words}"
    if config.variant == "baseline":
        model = f"Baseline without dynamic embeddings, {words}"
    return {
        "model": model,
        "static": reader.models.static_name,
        "characters": limits.characters,
        "entities": [{"value": value, "title": title} for value, (title, _) in ENTITIES.items()],
        "examples": [example._asdict() for example in examples()],
    }


async def _refused(_: Request, error: Exception) -> Response:
    assert isinstance(error, Refused)
    return JSONResponse({"message": error.detail}, status_code=error.status_code)


def page_files() -> dict[str, Response]:
    """The files of the page by name; the page itself is `index.html`."""
    found = {}
    for entry in (files("dntm.web") / "static").iterdir():
        suffix = entry.name[entry.name.rfind(".") :]
        if suffix in _TYPES:
            found[entry.name] = Response(entry.read_bytes(), media_type=_TYPES[suffix])
    found["export.html"] = PlainTextResponse(_export_page(found))
    return found


def examples() -> list[Example]:
    """The example texts; tests check their edits with the bundled model."""
    text = (files("dntm.web") / "examples.json").read_text(encoding="utf-8")
    return [Example(**example) for example in json.loads(text)]


def _export_page(page: Mapping[str, Response]) -> str:
    def text(name: str) -> str:
        return bytes(page[name].body).decode()

    script = "\n".join(_EXPORT.sub("", _IMPORT.sub("", text(f"{m}.js"))) for m in _MODULES)
    style = text("style.css")
    icon = "data:image/svg+xml;base64," + base64.b64encode(page["icon.svg"].body).decode()
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
