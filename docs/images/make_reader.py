"""Makes reader.png, a picture of the page: python docs/images/make_reader.py."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

TARGET = Path(__file__).with_name("reader.png")
SERVE = [sys.executable, "-m", "dntm", "serve", "--no-browser", "--port", "0"]


def main() -> None:
    """Start a server, take the picture, end the server."""
    with subprocess.Popen(SERVE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        found = re.search(r"http://\S+", server.stdout.readline())
        assert found, "the server did not start"
        try:
            take_picture(found[0])
        finally:
            server.terminate()


def take_picture(address: str) -> None:
    """Read the first example, try its edit, and show what that did to the meanings."""
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        page = chromium.new_page(
            viewport={"width": 1280, "height": 680},
            device_scale_factor=2,
            color_scheme="light",
            reduced_motion="reduce",
        )
        page.goto(address)
        page.get_by_role("button", name="Try it").click()
        page.locator(".compare").wait_for()
        page.mouse.move(0, 0)
        page.wait_for_timeout(500)
        page.screenshot(path=TARGET)
        chromium.close()


if __name__ == "__main__":
    main()
