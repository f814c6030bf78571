import json
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

from tests.cli.running import Capture, fails
from tests.web.tiny import TEXT, save_tiny_model


def test_a_busy_port_is_a_clear_error(capsys: Capture) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]

        error = fails(capsys, "serve", "--no-browser", "--port", str(port))

    assert error.startswith(f"dntm: error: cannot listen on 127.0.0.1 port {port}")
    assert "--port" in error


def test_an_odd_port_and_an_unknown_host_are_named(capsys: Capture) -> None:
    assert "port is 70000" in fails(capsys, "serve", "--port", "70000")
    assert "no such host" in fails(capsys, "serve", "--port", "0", "--host", "no such host")


def test_serve_prints_its_address_and_stops_when_interrupted(tmp_path: Path) -> None:
    model = save_tiny_model(tmp_path / "model")
    command = [sys.executable, "-m", "dntm", "serve", "--no-browser", "--port", "0"]
    process = subprocess.Popen(
        [*command, "--model", str(model), "--names", "reading.example"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    printed = process.stdout.readline()
    found = re.search(r"http://127\.0\.0\.1:\d+/", printed)
    assert found, printed

    request = urllib.request.Request(
        f"{found[0]}api/read",
        json.dumps({"text": TEXT}).encode(),
        {"Content-Type": "application/json", "Host": "reading.example"},
    )
    with urllib.request.urlopen(request, timeout=60) as response:
        lines = response.readlines()
        headers = response.headers
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)

    assert json.loads(lines[-1])["kind"] == "end"
    assert headers["server"] is None
    assert headers["x-content-type-options"] == "nosniff"
    assert "Traceback" not in errors
    assert process.returncode == 0
