import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright
from starlette.testclient import TestClient

from dntm.reader.reader import Reader
from dntm.web.app import create_app
from tests.web.tiny import PATIENCE, PausingReader, save_tiny_model, served

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), ""
)
MILLISECONDS = 1000 * PATIENCE
expect.set_options(timeout=MILLISECONDS)


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_model(tmp_path_factory.mktemp("tiny") / "model")


@pytest.fixture(scope="session")
def reader(checkpoint: Path) -> Reader:
    return Reader.from_pretrained(checkpoint)


@pytest.fixture
def client(reader: Reader) -> Iterator[TestClient]:
    with TestClient(create_app(reader), base_url="http://127.0.0.1") as client:
        yield client


@pytest.fixture
def pausing(reader: Reader) -> Iterator[PausingReader]:
    pausing = PausingReader(reader.models)
    yield pausing
    pausing.gate.set()


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    if not CHROMIUM:
        pytest.skip("no chromium on this machine")
    with sync_playwright() as playwright:
        flags = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        chromium = playwright.chromium.launch(
            executable_path=CHROMIUM, args=flags, timeout=MILLISECONDS
        )
        yield chromium
        chromium.close()


@pytest.fixture(scope="package")
def address(reader: Reader) -> Iterator[str]:
    """One server for all tests that want nothing special of it."""
    with served(create_app(reader)) as where:
        yield where


@pytest.fixture
def visit(browser: Browser) -> Iterator[Callable[[str], Page]]:
    """Opens pages on a server; whatever goes wrong in one of them fails the test."""
    contexts: list[BrowserContext] = []
    problems: list[str] = []
    hosts: set[str] = set()
    addresses: set[str] = set()

    def opened(address: str, place: str = "/#own") -> Page:
        context = browser.new_context(viewport={"width": 1280, "height": 900})
        context.set_default_timeout(MILLISECONDS)
        page = context.new_page()
        contexts.append(context)
        addresses.add(address)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on(
            "console", lambda said: problems.append(said.text) if said.type == "error" else None
        )
        page.on("dialog", lambda dialog: problems.append(dialog.message))
        page.on("request", lambda request: hosts.add(re.sub(r"(?<=\w)/.*", "", request.url)))
        page.goto(f"{address}{place}")
        return page

    yield opened
    for context in contexts:
        for page in context.pages:  # a handler may still wait for the server
            page.unroute_all(behavior="ignoreErrors")
        context.close()
    assert not [problem for problem in problems if "status of 4" not in problem]
    assert {host for host in hosts if not host.startswith("blob")} == addresses


@pytest.fixture
def page(address: str, visit: Callable[[str], Page]) -> Page:
    """The page, just opened, without an example."""
    return visit(address)


@pytest.fixture
def slow_page(pausing: PausingReader, visit: Callable[[str], Page]) -> Iterator[Page]:
    """The same with a reader that can be made to wait."""
    with served(create_app(pausing)) as address:
        yield visit(address)
        pausing.gate.set()
