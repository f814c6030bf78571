import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from dntm.web.server import HEADERS, Guard


async def answer(_: Request) -> PlainTextResponse:
    return PlainTextResponse("yes")


@pytest.fixture
def client() -> TestClient:
    app = Starlette(
        routes=[Route("/", answer, methods=["GET", "POST"])],
        middleware=[Middleware(Guard, hosts=["reading.example"])],
    )
    return TestClient(app, base_url="http://127.0.0.1:8321")


@pytest.mark.parametrize("path", ["/", "/missing"])
@pytest.mark.parametrize("host", ["127.0.0.1:8321", "evil.example"])
def test_every_response_has_the_security_headers(client: TestClient, path: str, host: str) -> None:
    response = client.get(path, headers={"Host": host})

    assert {name: response.headers.get(name) for name in HEADERS} == HEADERS


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "localhost:99", "LOCALHOST", "[::1]:8321", "10.0.0.7:1", "reading.example"],
)
def test_addresses_localhost_and_given_names_are_accepted(client: TestClient, host: str) -> None:
    assert client.get("/", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "host",
    ["evil.example:8321", "localhost.evil.example", "127.0.0.1.evil.example", "", "127.0.0.1:x",
     "[::1", "localhost:80:80"],
)  # fmt: skip
def test_other_host_names_are_refused(client: TestClient, host: str) -> None:
    response = client.get("/", headers={"Host": host})

    assert response.status_code == 403
    assert "yes" not in response.text


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("Origin", f"http://{name}") for name in ("evil.example", "127.0.0.1:9999")),
        *(("Origin", "null"), ("Origin", "http://localhost:8321")),
        *(("Sec-Fetch-Site", site) for site in ("cross-site", "same-site")),
    ],
)
def test_posts_of_other_sites_are_refused(client: TestClient, name: str, value: str) -> None:
    assert client.post("/", headers={name: value}).status_code == 403
