"""The page's files, all read when the server starts: no request ever reaches the disk.

The export is the same page as one file: style and scripts stand inside it, and a slot for the
reading, which the browser fills. Its policy allows these scripts alone, by their hash.
"""

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files

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
