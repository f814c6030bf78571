"""Makes reader.png from the real page.

dntm serve --no-browser --port 8321
python docs/images/make_reader.py http://127.0.0.1:8321 docs/images/reader.png
"""

import shutil
import sys

from playwright.sync_api import sync_playwright


def main(address: str, target: str) -> None:
    """Read an example, choose a mention, and take the picture."""
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        page = chromium.new_page(viewport={"width": 1280, "height": 1120}, color_scheme="light")
        page.goto(address)
        page.get_by_label("Example").select_option(label="A legend: Ulveth and the river")
        page.get_by_text("sentences in").wait_for()
        page.locator(".token.entity", has_text="Ninwe").nth(2).click()
        page.locator(".candidates").first.wait_for()
        page.mouse.move(0, 0)
        page.wait_for_timeout(500)
        page.screenshot(path=target)
        chromium.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
