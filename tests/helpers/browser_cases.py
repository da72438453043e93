"""Pages in a real browser, where there is one; nothing may complain or come from elsewhere."""

import os
import shutil
from contextlib import contextmanager
from pathlib import Path

import pytest

sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install playwright")

PHONE = {"width": 390, "height": 844}


@pytest.fixture(scope="module")
def browser():
    names = (shutil.which(name) for name in ("chromium", "chromium-browser", "google-chrome"))
    found = next((name for name in names if name), None)
    with sync_api.sync_playwright() as playwright:
        if found is None and not Path(playwright.chromium.executable_path).exists():
            pytest.skip("needs Chromium: apt-get install chromium, or playwright install chromium")
        flags = ["--no-sandbox"] if os.getuid() == 0 else []
        opened = playwright.chromium.launch(executable_path=found, args=flags)
        yield opened
        opened.close()


@contextmanager
def visiting(browser, address_of, viewport, only_errors):
    """A function that opens a page by its name; ``only_errors``: what else the console says is no complaint."""
    contexts, complaints, wide = [], [], viewport

    def visit(name, viewport=wide, colours="light", script=True):
        context = browser.new_context(viewport=viewport, color_scheme=colours, java_script_enabled=script)
        contexts.append(context)
        page = context.new_page()
        heard = ("error",) if only_errors else ("error", "warning", "log", "info", "debug")
        page.on("console", lambda message: message.type in heard and complaints.append(message.text))
        page.on("pageerror", lambda problem: complaints.append(str(problem)))
        page.on("requestfailed", lambda request: complaints.append(request.url))
        page.on("dialog", lambda dialog: complaints.append(dialog.message))
        page.on("request", lambda asked: asked.url.startswith(("file:", "data:")) or complaints.append(asked.url))
        page.goto(address_of(name))
        return page

    yield visit
    for context in contexts:
        context.close()
    assert complaints == []
