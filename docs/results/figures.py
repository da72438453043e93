"""What expressions in pages are made of: figures of the library's records, of kept runs, and of tables.

An instance is named as everywhere, ``"codesign/ncf-n128-d4"``; several by patterns, ``"codesign/*-n12-d4"``. Gaps and
losses are parts, 0.01 being one percent.
"""

import fnmatch
import functools
import json
import re
import statistics
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks import quoted
from benchmarks.suite import gaps as tables_of_gaps
from ddlopt import instances
from ddlopt.analysis import tables
from ddlopt.instances import index
from ddlopt.instances.index import PROVEN
from ddlopt.solvers.contracts import relative_gap

DOCS = Path(__file__).resolve().parents[1]
OPEN = DOCS / "results" / "open.toml"
ONCE_OPEN = DOCS / "results" / "open_2026-11-22.json"
"""The gaps of the 99 instances of 437 that were not proven on that day."""
_UNITS = {"%": 1e-2, "ms": 1e-3, "µs": 1e-6}


class FigureError(LookupError):
    """There are no data for a figure."""


def best(name: str) -> float:
    """The best known objective of an instance."""
    return _there(_known(name)[0], f"{name} has no solution on record")


def bound(name: str) -> float:
    """The best known bound of an instance."""
    return _there(_known(name)[1], f"{name} has no bound on record")


def gap(name: str) -> float:
    """How far the best known solution of an instance is from the best known bound."""
    found, limit = _known(name)
    return _there(relative_gap(found, limit, _listed(name).sense), f"{name} has no gap on record")


def gaps(*patterns: str) -> list[float]:
    """The gaps of instances."""
    return [gap(name) for name in names(*patterns)]


def proven(*patterns: str) -> int:
    """How many instances are solved to optimality."""
    return sum(each <= PROVEN for each in gaps(*patterns))


def unproven(*patterns: str) -> list[str]:
    """The instances that are not solved to optimality, by name."""
    known = {name: each.gap for name, each in index.read().instances.items()}
    return [name for name in names(*patterns) if known[name] is None or known[name] > PROVEN]


def open_instances(*patterns: str) -> str:
    """A table of them: what is known, who found it, and why it is open, which ``open.toml`` says."""
    reasons = open_reasons()
    rows = []
    for name in unproven(*patterns):
        record, unit = instances.record(name), _listed(name).unit
        found, limit = record.found, record.bound
        rows.append(
            {
                "instance": f"`{name}`",
                "best known": tables.objective_text(found and found.objective, unit),
                "bound": tables.objective_text(limit and limit.value, unit, like=found and found.objective),
                "gap": tables.gap_text(gap(name)),
                "found by": found.method if found else tables.NONE,
                "bound by": limit.method if limit else tables.NONE,
                "why it is open": reasons.get(name) or _there(None, f"docs/results/open.toml has no line for {name}"),
            }
        )
    if not rows:
        return "All are proven."
    return tables_of_gaps.markdown(list(rows[0]), rows, texts=["why it is open"]).rstrip()


def problem_table(*patterns: str) -> str:
    """Every problem: what is decided, how many instances there are and are proven, and the largest one."""
    known, rows = index.read(), list[dict[str, str]]()
    wanted = set(names(*patterns))
    for path, problem in known.problems.items():
        own = [each for name, each in known.instances.items() if each.problem == path and name in wanted]
        if own:
            largest = f"{max(each.size for each in own)} {problem.counts}"
            proofs = str(sum(each.proven for each in own))
            row = {"problem": path, "decides": problem.title, "instances": str(len(own)), "proven": proofs}
            rows.append(row | {"largest": largest})
    return tables_of_gaps.markdown(list(rows[0]), rows, texts=["problem", "decides", "largest"]).rstrip()


def loss_table(*methods: str) -> str:
    """How far from the best known methods are, ``FAMILY/METHOD`` each, over all instances that they were run on."""
    rows = []
    for asked in methods:
        family, _, method = asked.partition("/")
        lost = {name: loss(method, name) for name in names(f"{family}/*") if _has_run(name, method) and best(name)}
        if not lost:
            raise FigureError(f"no run of {asked} is kept; see benchmarks suite/gaps")
        worst = max(lost, key=lost.__getitem__)
        rows.append(
            {
                "family": family,
                "method": f"`{method}`",
                "instances": str(len(lost)),
                "best known reached": str(sum(each <= PROVEN for each in lost.values())),
                "median loss": f"{statistics.median(lost.values()):.1%}",
                "largest loss": f"{lost[worst]:.1%}",
                "on": worst.partition("/")[2],
            }
        )
    return tables_of_gaps.markdown(list(rows[0]), rows, texts=["family", "method", "on"]).rstrip()


def open_reasons() -> dict[str, str]:
    """Why an instance is open, by name."""
    data = tomllib.loads(OPEN.read_text(encoding="utf-8"))
    return {f"{family}/{name}": reason for family, lines in data.items() for name, reason in lines.items()}


def once_open(*patterns: str) -> str:
    """What became of the instances that were not proven when this was first looked at, the widest gaps first."""
    then: dict[str, float] = json.loads(ONCE_OPEN.read_text(encoding="utf-8"))
    rows = []
    for name in sorted((each for each in names(*patterns) if each in then), key=lambda each: -then[each]):
        record = instances.record(name)
        dates = [each.date for each in (record.found, record.bound) if each is not None]
        rows.append(
            {
                "instance": f"`{name}`",
                "gap then": tables.gap_text(then[name]),
                "gap now": tables.gap_text(gap(name)),
                "solution by": record.found.method if record.found else tables.NONE,
                "bound by": record.bound.method if record.bound else tables.NONE,
                "since": f"{max(dates)}" if dates else tables.NONE,
            }
        )
    return tables_of_gaps.markdown(list(rows[0]), rows).rstrip()


def closed() -> int:
    """How many of them are proven now."""
    then = json.loads(ONCE_OPEN.read_text(encoding="utf-8"))
    return len(set(then) - set(unproven("*")))


def names(*patterns: str) -> list[str]:
    """The instances that patterns mean."""
    found = [name for name in instances.names() if any(fnmatch.fnmatchcase(name, each) for each in patterns)]
    return found if found else _there(None, f"no instance is called {', '.join(patterns)}")


def run(name: str, method: str) -> float:
    """The objective that a method reached, the median over its seeds."""
    family, _, stem = name.partition("/")
    found = _runs(family).get((stem, method))
    return _there(found, f"no run of {method} on {name} is kept; see benchmarks suite/gaps")


def loss(method: str, name: str) -> float:
    """How much worse than the best known a method's solution is."""
    return _there(tables_of_gaps.loss(run(name, method), best(name), _listed(name)), f"{name}: the best known is 0")


def kept_losses() -> dict[tuple[str, str], float]:
    """How much worse than the best known the solution of every kept run is, by instance and method."""
    found = {}
    for name in names("*"):
        family, _, stem = name.partition("/")
        for (other, method), objective in _runs(family).items():
            lost = tables_of_gaps.loss(objective, _known(name)[0], _listed(name)) if other == stem else None
            if lost is not None:
                found[name, method] = lost
    return found


def switched(name: str) -> float:
    """The iteration of a topology instance if all interfaces hung on a switch that is never full."""
    instance = quoted.instance_of(name)
    return float(instance.iteration_time_s(instance.node_bytes.max() / instance.degree))


def losses(method: str, *patterns: str) -> list[float]:
    """The losses of a method on all of the instances that it has a run of."""
    met = [name for name in names(*patterns) if _has_run(name, method)]
    return [loss(method, name) for name in met] or _there(None, f"no run of {method} on {', '.join(patterns)} is kept")


def cell(page: str, column: str, row: Mapping[str, str], under: str = "", which: int = 0) -> float:
    """A figure of a table on a page of ``docs``: the column, in the one row that has these cells.

    ``under`` begins the paragraph above the table, where several tables have such a row; ``which`` is 1 for the
    figure in brackets behind another one.
    """
    found = _cells(page, column, row, under)
    if len(found) != 1:
        raise FigureError(f"{page}: {len(found)} rows have {dict(row)} and a column {column}")
    return _figure(found[0], which)


def column(page: str, name: str, row: Mapping[str, str] | None = None, under: str = "", which: int = 0) -> list[float]:
    """The figures of a column, in the rows that have these cells; rows without a figure are left out."""
    found = [_figure(each, which) for each in _cells(page, name, row or {}, under) if each not in ("", "–")]
    return _there(found or None, f"{page}: no row has {dict(row or {})} and a figure in a column {name}")


def _cells(page: str, column: str, row: Mapping[str, str], under: str) -> list[str]:
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    found = []
    for above, table in re.findall(r"([^\n]*)\n\n((?:\|.*\n)+)", text):
        lines = [[_plain(each) for each in line.strip("|").split("|")] for line in table.splitlines()]
        head = lines[0]
        if above.startswith(under) and column in head and set(row) <= set(head):
            rows = (dict(zip(head, line, strict=True)) for line in lines[2:])
            found += [each[column] for each in rows if all(each[name] == value for name, value in row.items())]
    return found


def _figure(text: str, which: int) -> float:
    figures = re.findall(r"([\d.]+)(?: (%|(?:ms|µs|s)\b))?", text.replace("%", " % ").replace("  ", " "))
    figure, unit = figures[which]
    return float(figure) * _UNITS.get(unit, 1.0)


def bandwidth(method: str, job: str, gbps: int = 100, servers: int = 128) -> float:
    """Milliseconds of an iteration in the sweep of bandwidths, ``codesign_bandwidth.md``."""
    return cell("results/codesign_bandwidth", method, {"job": job, "Gb/s": str(gbps)}, f"n = {servers}")


def attribution(instance: str, column: str, which: int = 0) -> float:
    """How many times as long TopoOpt takes as with an ingredient exchanged; 1 for communication alone."""
    return cell("results/topoopt_attribution", column, {"instance": instance}, which=which)


def over_fat_tree(job: str, gbps: int, servers: int = 128, which: int = 0) -> float:
    """Time on the fat-tree of similar cost over that of the joint plan; 1: over that of the ideal switch."""
    under = f"n = {servers}: time on the fat-tree"
    return cell("results/codesign_bandwidth", f"{gbps} Gb/s", {"job": job}, under, which)


def times(name: str, method: str, by: str) -> float:
    """How many times as long (or as much) as ``by`` a method's solution takes."""
    return run(name, method) / run(name, by)


def _plain(text: str) -> str:
    return text.strip().strip("`*")


def _listed(name: str) -> index.Listed:
    """What the index says of an instance: hundreds of them need not be read for their sense."""
    return index.read().instances[instances.full_name(name)]


@functools.cache
def _known(name: str) -> tuple[float | None, float | None]:
    listed = _listed(name)
    return listed.objective, listed.bound


def _has_run(name: str, method: str) -> bool:
    family, _, stem = name.partition("/")
    return (stem, method) in _runs(family)


@functools.cache
def _runs(family: str) -> dict[tuple[str, str], float]:
    return quoted.objectives(quoted.read(family))


def _there(figure: Any, problem: str) -> Any:
    if figure is None:
        raise FigureError(problem)
    return figure


FIGURES: dict[str, Callable[..., Any]] = {
    each.__name__: each
    for each in (
        *(best, bound, gap, gaps, proven, unproven, closed, names, run, loss, losses, times),
        switched,
        *(cell, column, bandwidth, attribution, over_fat_tree, statistics.median),
    )
}
"""By the names that expressions use."""
