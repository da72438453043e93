"""The tables of gaps say what the library's records say, and so does what is quoted from them."""

import pytest
from doc_blocks import ROOT
from volume import slow, spread

import ddlopt
from benchmarks.suite.gaps_refresh import refreshed, refreshed_row
from ddlopt.instances import record

PAGES = sorted((ROOT / "docs/results").glob("*_gap.md"))


@pytest.mark.parametrize("page", spread(PAGES, 4), ids=lambda page: page.stem)
def test_tables_have_the_best_that_is_known(page):
    text = page.read_text(encoding="utf-8")
    family = page.stem.removesuffix("_gap")
    assert refreshed(text, family) == text, "run: python benchmarks suite/gaps_refresh"


def test_a_better_solution_makes_methods_lose_more():
    row = {
        "instance": "danoint",
        "best known": "70 s",
        "bound": "60 s",
        "gap left": "14.29 %",
        "x": "10.00 %",
        "y": "–",
    }
    new = refreshed_row(row, "topology/danoint")
    assert new == row | {
        "best known": "65.6667 s",
        "bound": "65.6601 s",
        "gap left": "0.01 %",
        "x": "17.26 %",
        "y": "–",
    }


@pytest.mark.parametrize(
    ("job", "milliseconds", "times"), [slow("dlrm", "50.64", "1.08"), slow("ncf", "27.08", "1.23")]
)
def test_the_guide_compares_the_best_known_plans_with_a_switch(job, milliseconds, times):
    name = f"codesign/{job}-n128-d4"
    best = float(record(name).found.objective)
    assert f"{1e3 * best:.2f}" == milliseconds
    assert f"{best / ddlopt.solve(name, 'ideal-switch').objective:.2f}" == times
    guide = (ROOT / "docs/families/codesign.md").read_text(encoding="utf-8")
    assert f"{name}`: {milliseconds} ms" in guide
    assert times in guide
