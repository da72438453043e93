"""What the page says of rings on the links of designs, and on all networks of a degree, is what is calculated."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from volume import slow

from benchmarks.topology import collective_designs

PAGE = Path(__file__).parents[2] / "docs" / "families" / "topology" / "collective" / "findings.md"
ASKED = SimpleNamespace(largest=12, most=100, time_limit=300.0)


def rows_of(first):
    """Rows of the page's table whose heading begins with these words, by heading."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    start = next(place for place, line in enumerate(lines) if line.startswith(f"| {first} |"))
    heading, found = cells(lines[start]), []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            return found
        found.append(dict(zip(heading, cells(line), strict=True)))
    return found


def cells(line):
    return [each.strip() for each in line.strip("|").split("|")]


@pytest.mark.parametrize("job", ["danoint", slow("random"), slow("tiny"), slow("hybrid"), slow("bert")])
def test_rings_on_the_links_of_designs(monkeypatch, job):
    every = collective_designs.jobs(ASKED.largest)
    monkeypatch.setattr(collective_designs, "jobs", lambda largest: {job: every[job]})
    (row,) = collective_designs.designs(ASKED)
    told = next(each for each in rows_of("job | instances | TopologyFinder, direct") if each["job"] == job)
    assert {name: str(value) for name, value in row.items()} == told


def test_all_kinds_of_jobs_are_on_the_page():
    every = collective_designs.jobs(ASKED.largest)
    told = rows_of("job | instances | TopologyFinder, direct")
    assert {each["job"]: each["instances"] for each in told} == {job: str(len(names)) for job, names in every.items()}


@pytest.mark.parametrize("most", [2, slow(5)])
def test_all_networks_of_a_degree(most):
    asked = SimpleNamespace(most=most, time_limit=60.0)
    told = rows_of("servers | links a server")
    for row, known in zip(collective_designs.exhaustive(asked), told, strict=False):
        assert {name: str(value) for name, value in row.items()} == known
