"""Lines by storey: what the page says is about what there is."""

from types import SimpleNamespace

import pytest
from doc_blocks import ROOT

from benchmarks.suite import lines

PAGE = ROOT / "docs" / "reference" / "house.md"


def told():
    """The table of the page, by problem."""
    rows = [line.strip("| \n").split(" | ") for line in PAGE.read_text(encoding="utf-8").splitlines() if "|" in line]
    head, _, *rows = [row for row in rows if len(row) == 6 or row[0].startswith("---")]
    return {row[0]: dict(zip(head[1:], map(int, row[1:]), strict=True)) for row in rows}


@pytest.fixture(scope="module")
def counted():
    return {row.pop("problem"): row for row in lines.storeys(SimpleNamespace(root=ROOT))}


def test_the_page_is_not_stale(counted):
    """A storey of a problem within a tenth or so; a problem that is new may not be there yet."""
    page = told()
    assert len(page) > 20
    for path, row in page.items():
        for storey, said in row.items():
            assert abs(counted[path][storey] - said) <= 500 + 0.15 * said, f"{path}, {storey}: write the table anew"


def test_rows_add_up(counted):
    everything = counted["all"]
    for storey in lines.STOREYS:
        here = sum(len(file.read_text(encoding="utf-8").splitlines()) for file in (ROOT / storey).rglob("*.py"))
        assert everything[storey] == here == sum(row[storey] for path, row in counted.items() if path != "all")
    assert everything["core"] == everything["models"] + everything["solvers"]
