"""Strategy instances in the format of the ASPLOS/EuroSys 2025 contest on intra-operator parallelism.

A JSON object whose ``problem`` has ``name``, ``nodes`` (lists ``intervals``, ``costs``, ``usages``), ``edges`` (lists
``nodes`` and ``costs``, row by row) and ``usage_limit``. A cost of 10^18 or more stands for forbidden. The public
instances are in google/iopddl (Apache-2.0), benchmarks/asplos-2025-iopddl-A.json.gz and so on.
"""

import reprlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ddlopt.instances.options import checked
from ddlopt.instances.readers.text_files import object_of
from ddlopt.models.deployment.strategies.instance import StrategyInstance
from ddlopt.models.errors import InstanceError

FORBIDDEN = 10**18
"""Costs from here on stand for forbidden."""


@checked
def read_iopddl(
    path: str | Path, *, usage_limit: float | None = None, no_limit: bool = False, name: str | None = None
) -> StrategyInstance:
    """Which strategy every node takes.

    Parameters
    ----------
    path : str or Path
        ``.json`` or ``.json.gz``.
    usage_limit : float, optional
        In place of the file's.
    no_limit : bool
        Leave the limit of memory out.
    name : str, optional
        None: from the file.

    Raises
    ------
    InstanceError
        If the file cannot be read or is no such problem.
    """
    path = Path(path)
    problem = _read(path)
    nodes, edges = _part(path, problem, "nodes"), _part(path, problem, "edges")
    tables: dict[tuple[float | None, ...], int] = {}
    table_of = [
        tables.setdefault(tuple(_costs(path, f"edges.costs[{e}]", row)), len(tables))
        for e, row in enumerate(_list(path, edges, "edges", "costs"))
    ]
    ends = [_pair(path, f"edges.nodes[{e}]", pair) for e, pair in enumerate(_list(path, edges, "edges", "nodes"))]
    if len(ends) != len(table_of):
        raise InstanceError(f"{path}: edges.costs has {len(table_of)} lists, but edges.nodes has {len(ends)} edges")
    for e, (i, j) in enumerate(ends):
        if i == j:
            raise InstanceError(f"{path}: edges.nodes[{e}] joins node {i} with itself")
    intervals = [_interval(path, i, each) for i, each in enumerate(_list(path, nodes, "nodes", "intervals"))]
    costs = [_costs(path, f"nodes.costs[{i}]", row) for i, row in enumerate(_list(path, nodes, "nodes", "costs"))]
    limit = problem.get("usage_limit") if usage_limit is None else usage_limit
    return StrategyInstance.from_data(
        {
            "name": name or str(problem.get("name") or path.name.split(".")[0]),
            "source": f"{path.name}, in the format of the ASPLOS/EuroSys 2025 contest on intra-operator parallelism",
            "costs": costs,
            "usages": _list(path, nodes, "nodes", "usages"),
            "intervals": intervals,
            "edges": ends,
            "tables": [list(table) for table in tables],
            "table_of": table_of,
            "usage_limit": None if no_limit else limit,
        },
        str(path),
    )


def _read(path: Path) -> Mapping[str, Any]:
    expected = "an object with a problem"
    found = object_of(path, expected).get("problem")
    if not isinstance(found, Mapping):
        raise InstanceError(f"{path}: expected {expected}")
    return found


def _part(path: Path, problem: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    part = problem.get(key)
    if not isinstance(part, Mapping):
        raise InstanceError(f"{path}: problem.{key} is {reprlib.repr(part)}; expected an object")
    return part


def _list(path: Path, part: Mapping[str, Any], owner: str, key: str) -> list[Any]:
    found = part.get(key)
    if not isinstance(found, list):
        raise InstanceError(f"{path}: {owner}.{key} is {reprlib.repr(found)}; expected a list")
    return found


def _costs(path: Path, place: str, row: Any) -> list[Any]:
    """The costs, with None for forbidden."""
    if not isinstance(row, list):
        raise InstanceError(f"{path}: {place} is {reprlib.repr(row)}; expected a list of numbers")
    if not set(map(type, row)) <= {int, float}:
        bad = next(each for each in row if type(each) not in (int, float))
        raise InstanceError(f"{path}: {place} has {reprlib.repr(bad)}; expected numbers")
    return [None if each >= FORBIDDEN else each for each in row]


def _interval(path: Path, node: int, interval: Any) -> list[int]:
    """An empty list stands for never."""
    return [0, 0] if interval == [] else _pair(path, f"nodes.intervals[{node}]", interval)


def _pair(path: Path, place: str, pair: Any) -> list[int]:
    if not (isinstance(pair, list) and len(pair) == 2 and all(type(each) is int for each in pair)):
        raise InstanceError(f"{path}: {place} is {reprlib.repr(pair)}; expected two whole numbers")
    return pair
