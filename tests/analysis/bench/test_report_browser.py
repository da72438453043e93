"""The report in a real browser, by mouse and by keyboard; skipped where there is none."""

import browser_cases
import pytest
from browser_cases import PHONE, visiting
from report_cases import SCRIPT, make_store

from ddlopt.analysis.bench import Store
from ddlopt.analysis.bench.report import cells, write_report

pytestmark = pytest.mark.slow
browser = browser_cases.browser

WIDE = {"width": 1280, "height": 900}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("browser")
    store = make_store(place / "r.sqlite", seeds=150)
    plain, cells.LARGEST_PLAIN = cells.LARGEST_PLAIN, 120
    try:
        with Store(store, write=False) as opened:
            return write_report(opened, place / "out").parent
    finally:
        cells.LARGEST_PLAIN = plain


@pytest.fixture
def visit(browser, folder):
    with visiting(browser, lambda name: (folder / name).as_uri(), WIDE, only_errors=False) as visited:
        yield visited


def names(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.html"))


def first_column(page, table):
    return page.locator(f"#{table} tbody tr td:first-child").all_text_contents()


def column(page, table, title):
    titles = page.locator(f"#{table} th").all_text_contents()
    return page.locator(f"#{table} tbody tr td:nth-child({titles.index(title) + 1})").all_text_contents()


@pytest.mark.parametrize(("viewport", "colours"), [(WIDE, "light"), (PHONE, "dark")])
def test_every_page_opens_fits_and_has_all_its_pictures(visit, folder, viewport, colours):
    pictures = 0
    for name in names(folder):
        page = visit(name, viewport, colours)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
        loaded = page.evaluate("[...document.images].map((image) => image.complete && image.naturalWidth > 0)")
        assert all(loaded), name
        pictures += len(loaded)
        assert page.locator("nav a[aria-current]").count() == (0 if name.startswith("instances/") else 1)
    assert pictures == 1


def test_sorting_by_mouse(visit):
    page = visit("family-topology.html")
    assert first_column(page, "methods") == ["exact", "greedy", "crash"]
    head = page.get_by_role("columnheader", name="time to target (PAR-10)")
    assert head.get_attribute("aria-sort") == "none"
    head.get_by_role("button").click()
    assert head.get_attribute("aria-sort") == "ascending"
    assert first_column(page, "methods") == ["exact", "greedy", "crash"]
    head.get_by_role("button").click()
    assert head.get_attribute("aria-sort") == "descending"
    assert first_column(page, "methods") == ["crash", "greedy", "exact"]
    gap = page.locator("#methods th").filter(has_text="mean gap to best").get_by_role("button")
    gap.click()
    assert first_column(page, "methods") == ["exact", "greedy", "crash"]  # what has no figure is last
    gap.click()
    assert first_column(page, "methods") == ["greedy", "exact", "crash"]
    assert head.get_attribute("aria-sort") == "none"


def test_sorting_and_filtering_by_keyboard_alone(visit):
    page = visit("instances/topology--b-odd.html")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    box = page.locator(":focus").bounding_box()
    assert box["x"] >= 0
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    page.locator("#runs input").focus()
    page.keyboard.type("alert error")
    assert column(page, "runs", "message") == [SCRIPT]
    page.keyboard.press("Control+a")
    page.keyboard.press("Delete")
    while page.evaluate("document.activeElement.textContent") != "status":
        page.keyboard.press("Tab")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.keyboard.press("Space")
    found = column(page, "runs", "status")
    assert len(found) == 5
    assert found == sorted(found)


def test_menus_narrow_a_table_down(visit):
    page = visit("index.html")
    assert page.locator("#summary [role=status]").text_content() == "6 rows"
    page.get_by_label("family", exact=True).select_option("scheduling")
    assert set(first_column(page, "summary")) == {"scheduling"}
    assert page.locator("#summary [role=status]").text_content() == "3 of 6 rows"
    page.locator("#summary").get_by_label("Filter").fill("liar")
    assert column(page, "summary", "method") == ["liar"]
    page.locator("#summary").get_by_label("Filter").fill("nothing of the kind")
    assert first_column(page, "summary") == []


def test_large_tables_are_shown_page_by_page(visit):
    page = visit("instances/scheduling--most.html")
    told = page.locator("#runs [role=status]")
    assert told.text_content() == "1 to 100 of 153 rows"
    assert len(first_column(page, "runs")) == 100
    page.get_by_role("button", name="Next rows of All runs").click()
    assert told.text_content() == "101 to 153 of 153 rows"
    assert len(first_column(page, "runs")) == 53
    assert page.get_by_role("button", name="Next rows of All runs").is_disabled()
    seed = page.locator("#runs th").filter(has_text="seed").get_by_role("button")
    seed.click()
    seed.click()
    assert column(page, "runs", "seed")[:3] == ["150", "149", "148"]
    page.locator("#runs").get_by_label("status", exact=True).select_option("optimal (floating point)")
    assert sorted(first_column(page, "runs")) == ["exact", "liar"]


def test_without_a_script_all_is_there_but_what_is_too_large(visit):
    page = visit("instances/scheduling--most.html", script=False)
    assert page.locator("#runs tbody tr").count() == 120
    assert "the first 120 of 153 rows" in page.locator("#runs").inner_text()


def test_colours_follow_the_system_and_the_button(visit):
    def paper(page):
        return page.evaluate("getComputedStyle(document.body).backgroundColor")

    page = visit("index.html", colours="dark")
    dark = paper(page)
    page.get_by_role("button", name="Light colours").click()
    light = paper(page)
    assert dark != light
    page.locator("nav a", has_text="topology").click()
    page.wait_for_url("**/family-topology.html")  # waits until it is loaded
    assert paper(page) == light  # it is remembered
    assert paper(visit("index.html", colours="light")) == light
    page.emulate_media(color_scheme="light")
    page.get_by_role("button", name="Dark colours").click()
    assert paper(page) == dark


def test_a_legend_hides_lines(visit):
    page = visit("family-topology.html")
    button = page.locator("#quality .legend").get_by_role("button", name="greedy")
    line = page.locator("#quality .line[data-line='1']")
    assert line.is_visible()
    button.click()
    assert button.get_attribute("aria-pressed") == "false"
    assert not line.is_visible()
    button.press("Enter")
    assert line.is_visible()
