"""How many lines each storey has, by problem: models and solvers are what a newcomer reads.

Lines of Python, with docstrings and blank ones. What several problems of a family share is counted with the family, and
what all share is in the row ``shared``.
"""

from collections import Counter
from pathlib import Path

from benchmarks.harness import ROOT, Benchmark, Option
from ddlopt.models.catalogue import problems

STOREYS = ("models", "certificates", "solvers", "frontier")


def storeys(asked):
    """Lines by problem, and the reading core: models and solvers together."""
    found = {storey: lines_of(asked.root / storey) for storey in STOREYS}
    for path in sorted({path for counted in found.values() for path in counted}):
        yield row(path, {storey: found[storey][path] for storey in STOREYS})
    yield row("all", {storey: sum(found[storey].values()) for storey in STOREYS})


def row(path, lines):
    """A line of the table."""
    return {"problem": path, **lines, "core": lines["models"] + lines["solvers"]}


def lines_of(folder: Path) -> Counter:
    """Lines by problem, family or ``shared``."""
    paths = {*problems(), *(path.partition("/")[0] for path in problems())}
    lines = Counter()
    for file in folder.rglob("*.py"):
        parents = [parent.as_posix() for parent in file.relative_to(folder).parents]
        room = next((parent for parent in parents if parent in paths), "shared")
        lines[room] += len(file.read_text(encoding="utf-8").splitlines())
    return lines


BENCH = Benchmark(storeys, in_all=False, root=Option(ROOT, "a checkout", type=Path))
