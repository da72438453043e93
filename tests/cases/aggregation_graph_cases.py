"""Small aggregation networks, and all their answers one by one."""

from collections.abc import Iterator
from itertools import combinations, pairwise, product
from typing import Any

import numpy as np

from ddlopt.models.aggregation import AggregationTrees, GraphInstance, evaluate

Route = tuple[int, ...]


def star(**fields: Any) -> GraphInstance:
    """Three hosts and the server's host, 4, at switches 0 and 1; switch 2 joins them."""
    data = {
        "name": "star",
        "nodes": [
            {"name": "left", "slots": 1},
            {"name": "right", "slots": 1},
            {"name": "top", "slots": 1},
            {"name": "a", "forwards": False},
            {"name": "b", "forwards": False},
            {"name": "c", "forwards": False},
            {"name": "server", "forwards": False},
        ],
        "links": [
            {"ends": ends, "bandwidth_bytes_per_s": 10}
            for ends in [(3, 0), (4, 0), (5, 1), (0, 1), (0, 2), (1, 2), (1, 6)]
        ],
        "jobs": [{"name": "j", "workers": (3, 4, 5), "server": 6, "gradient_bytes": 20}],
        **fields,
    }
    return GraphInstance.from_data(data)


def random_instance(seed: int, **fields: Any) -> GraphInstance:
    """Four or five nodes with about a link more than a tree; one or two jobs of two or three workers."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(4, 6))
    links = {(int(rng.integers(v)), v) for v in range(1, count)}
    links |= {tuple(sorted(map(int, rng.choice(count, 2, replace=False)))) for _ in range(2)}
    nodes = [
        {
            "name": f"n{v}",
            "slots": int(rng.integers(0, 3)),
            "forwards": bool(rng.random() < 0.85),
            "aggregation_bytes_per_s": float(rng.integers(1, 5)) if rng.random() < 0.4 else None,
        }
        for v in range(count)
    ]
    jobs = []
    for j in range(int(rng.integers(1, 3))):
        server, *workers = map(int, rng.permutation(count)[: int(rng.integers(3, 5)) - j])
        size = float(rng.integers(1, 4))
        jobs.append({"name": f"j{j}", "workers": workers, "server": server, "gradient_bytes": size})
        jobs[-1]["slots"] = int(rng.integers(1, 3))
    data = {
        "name": f"random-{seed}",
        "nodes": nodes,
        "links": [{"ends": ends, "bandwidth_bytes_per_s": float(rng.integers(1, 5))} for ends in sorted(links)],
        "jobs": jobs,
        "aggregators": int(rng.integers(0, 4)) if rng.random() < 0.5 else None,
        "connections": int(rng.integers(1, 4)) if rng.random() < 0.3 else None,
        **fields,
    }
    return GraphInstance.from_data(data)


def answers(instance: GraphInstance) -> Iterator[AggregationTrees]:
    """Every answer whose routes visit no node twice, feasible or not, that uses no node without slots."""
    for trees in product(*(list(_trees(instance, j)) for j in range(len(instance.jobs)))):
        yield AggregationTrees(instance=instance.name, trees=trees)


def optimum(instance: GraphInstance) -> float | None:
    """The best objective of all feasible answers; None if there is none."""
    found = [evaluate(instance, answer) for answer in answers(instance)]
    values = [float(each.objective) for each in found if each.feasible and each.objective is not None]
    best = max if instance.sense == "maximize" else min
    return best(values, default=None)


def _trees(instance: GraphInstance, j: int) -> Iterator[tuple[Route, ...]]:
    job = instance.jobs[j]
    able = [v for v, node in enumerate(instance.nodes) if node.slots >= job.slots and v != job.server]
    for size in range(len(able) + 1):
        for chosen in combinations(able, size):
            starts = sorted({*job.workers, *chosen})
            options = [list(_routes(instance, start, {job.server, *chosen} - {start})) for start in starts]
            for routes in product(*options):
                if {route[-1] for route in routes} - {job.server} == set(chosen) and _ends(routes, job.server):
                    yield routes


def _ends(routes: tuple[Route, ...], server: int) -> bool:
    follows = {route[0]: route[-1] for route in routes}
    for start in follows:
        node = start
        for _ in range(len(follows)):
            node = follows.get(node, node)
        if node != server:
            return False
    return True


def _routes(instance: GraphInstance, start: int, ends: set[int]) -> Iterator[Route]:
    waiting: list[Route] = [(start,)]
    while waiting:
        route = waiting.pop()
        if len(route) > 1 and route[-1] in ends:
            yield route
        if len(route) > 1 and not instance.nodes[route[-1]].forwards:
            continue
        for one, other in instance.arcs:
            if one == route[-1] and other not in route:
                waiting.append((*route, other))


def plain_loads(instance: GraphInstance, answer: AggregationTrees) -> dict[tuple[int, int], float]:
    """Bytes on each arc, summed route by route."""
    found: dict[tuple[int, int], float] = {}
    for job, tree in zip(instance.jobs, answer.trees, strict=True):
        for route in tree:
            for arc in pairwise(route):
                found[arc] = found.get(arc, 0.0) + job.gradient_bytes
    return found
