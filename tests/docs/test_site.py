"""The built documentation in a real browser: mathematics, pictures, search, and nothing from elsewhere."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import browser_cases
import pytest
from browser_cases import PHONE, visiting

pytestmark = pytest.mark.slow
browser = browser_cases.browser

ROOT = Path(__file__).resolve().parents[2]
WIDE = {"width": 1400, "height": 900}


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


@pytest.fixture
def visit(browser, site):
    def address_of(name):
        return (site / name).as_uri() if "?" not in name else f"{(site / 'search.html').as_uri()}?{name[1:]}"

    with visiting(browser, address_of, WIDE, only_errors=True) as visited:
        yield visited


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
        page.context.close()  # a thousand open pages are more than there is memory for
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
