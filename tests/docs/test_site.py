"""The built documentation in a real browser: mathematics, pictures, search, and nothing from elsewhere."""

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install playwright")
pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
WIDE, PHONE = {"width": 1400, "height": 900}, {"width": 390, "height": 844}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of the site, built without a warning; DDLOPT_SITE names one that is there already."""
    if "DDLOPT_SITE" in os.environ:
        return Path(os.environ["DDLOPT_SITE"])
    if any(find_spec(name) is None for name in ("sphinx", "furo", "myst_nb", "sphinx-mathjax-offline")):
        pytest.skip("needs Sphinx and its extensions: make docs, or pip install 'ddlopt[docs]'")
    folder = tmp_path_factory.mktemp("site")
    words = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-d", folder / "trees", ROOT / "docs"]
    run = subprocess.run([*words, folder / "html"], capture_output=True, text=True, cwd=folder)
    assert run.returncode == 0, run.stderr
    return folder / "html"


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


@pytest.fixture
def visit(browser, site):
    """Opens a page; at the end nothing may have complained or come from elsewhere."""
    complaints, contexts = [], []

    def open_(name, viewport=WIDE, colours="light"):
        context = browser.new_context(viewport=viewport, color_scheme=colours)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: message.type == "error" and complaints.append(message.text))
        page.on("pageerror", lambda problem: complaints.append(str(problem)))
        page.on("requestfailed", lambda request: complaints.append(request.url))
        page.on("request", lambda asked: asked.url.startswith(("file:", "data:")) or complaints.append(asked.url))
        page.goto((site / name).as_uri() if "?" not in name else f"{(site / 'search.html').as_uri()}?{name[1:]}")
        return page

    yield open_
    for context in contexts:
        context.close()
    assert complaints == []


def pages(site):
    return sorted(path.relative_to(site).as_posix() for path in site.rglob("*.html") if "_static" not in path.parts)


def test_every_page_opens_with_its_mathematics_and_pictures(visit, site):
    formulas = pictures = 0
    for name in pages(site):
        page = visit(name)
        page.evaluate("window.MathJax && MathJax.startup ? MathJax.startup.promise : null")
        asked = page.locator(".math").count()
        assert page.locator("mjx-container").count() >= asked, name
        assert page.locator("mjx-merror, [data-mjx-error], mjx-container [data-mml-node='merror']").count() == 0, name
        loaded = page.evaluate(
            "[...document.images].map(i => { i.loading = 'eager'; return i.decode().then(() => true, () => false) })"
            " && Promise.all([...document.images].map(i => i.decode().then(() => true, () => false)))"
        )
        assert all(loaded), name
        formulas, pictures = formulas + asked, pictures + len(loaded)
    assert formulas > 1000
    assert pictures > 10


PHONED = ("index", "families/compression/index", "results/scheduling_gap", "reference/api/topology")


@pytest.mark.parametrize("name", [f"{page}.html" for page in PHONED])
def test_pages_fit_a_phone_in_the_dark(visit, name):
    page = visit(name, PHONE, "dark")
    page.evaluate("window.MathJax && MathJax.startup ? MathJax.startup.promise : null")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    lightness = "getComputedStyle(document.body).backgroundColor.match(/[0-9]+/g).slice(0, 3).map(Number)"
    assert max(page.evaluate(lightness)) < 64


def test_search_needs_no_server(visit):
    page = visit("?q=sufficient+factors")
    page.wait_for_selector("ul.search li a")
    assert any("compression" in href for href in page.eval_on_selector_all("ul.search li a", "a => a.map(x => x.href)"))
