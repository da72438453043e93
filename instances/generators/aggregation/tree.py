"""Trees of switches with jobs whose messages travel to the destination: kinds ``tree-random`` and ``tree-complete``."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from ddlopt.instances.options import at_least, one_of, part, positive
from ddlopt.models.aggregation.tree.instance import TreeInstance
from ddlopt.models.errors import OptionError

LOADS = ("uniform", "power")
RATES = ("constant", "linear", "exponential", "random")
_GOALS = ("utilization", "congestion")
_LARGEST = 200_000
"""Switches beyond which an option is taken for a mistake."""
_HIGHEST = 60
"""Levels beyond which rates that double are no rates."""


def random_tree(
    rng: np.random.Generator,
    nodes: int = 50,
    depth: float = 0.0,
    jobs: int = 1,
    loads: str = "uniform",
    loaded: float = 0.5,
    rates: str = "random",
    message_s: float = 1e-3,
    budget: int | None = 5,
    memory: int | None = None,
    capable: float = 1.0,
    goal: str = "utilization",
) -> TreeInstance:
    """A tree that grows by one switch at a time.

    Parameters
    ----------
    rng : numpy.random.Generator
    nodes : int
    depth : float
        The parent of a switch is drawn from those before it, the later the larger this is: 0 takes any of them, which
        gives a depth that grows with the logarithm of ``nodes``; 1 takes the last one, which gives a path.
    jobs : int
        With several, messages are 0.5 to 2 times as large as ``message_s`` says.
    loads : {"uniform", "power"}
        Messages that enter at a loaded switch: uniform from 1 to 9; or a power law with exponent 1.5 from 2 to 63.
    loaded : float
        Part of the switches at which messages of a job enter; leaves are taken first.
    rates : {"constant", "linear", "exponential", "random"}
        Of the link above a switch with h levels below it: 1, 1 + h, 2 to the power of h, or random from 0.5 to 2.
    message_s : float
        Seconds that a message takes at rate 1.
    budget : int, optional
    memory : int, optional
        Jobs for which a switch has memory; without, all of them.
    capable : float
        Part of the switches that can aggregate.
    goal : {"utilization", "congestion"}

    Returns
    -------
    TreeInstance
    """
    at_least("nodes", nodes, 1)
    part("depth", depth)
    part("loaded", loaded)
    if nodes > _LARGEST:
        raise OptionError(f"nodes is {nodes}; at most {_LARGEST} are made")
    parents: list[int | None] = [None]
    for node in range(1, nodes):
        first = min(node - 1, int(depth * node))
        parents.append(int(rng.integers(first, node)))
    inner = {above for above in parents if above is not None}
    leaves = [node for node in range(nodes) if node not in inner]
    others = sorted(inner)

    def places() -> list[int]:
        count = max(1, round(loaded * nodes))
        pool = rng.permutation(leaves).tolist() + rng.permutation(others).tolist()
        return [int(node) for node in pool[:count]]

    name = f"tree-random-n{nodes}"
    common = (jobs, loads, rates, message_s, budget, memory, capable, goal)
    return _instance(rng, name, parents, places, *common)


def complete(
    rng: np.random.Generator,
    arity: int = 2,
    levels: int = 5,
    jobs: int = 1,
    loads: str = "uniform",
    loaded: float = 1.0,
    rates: str = "constant",
    message_s: float = 1e-3,
    budget: int | None = 4,
    memory: int | None = None,
    capable: float = 1.0,
    goal: str = "utilization",
) -> TreeInstance:
    """A complete tree, at whose leaves messages enter.

    Parameters
    ----------
    rng : numpy.random.Generator
    arity : int
        Children of each switch.
    levels : int
        The root's included.
    jobs, loads, rates, message_s, budget, memory, capable, goal
        As for :func:`random_tree`.
    loaded : float
        Part of the leaves at which messages of a job enter.

    Returns
    -------
    TreeInstance
    """
    at_least("arity", arity, 1)
    at_least("levels", levels, 1)
    part("loaded", loaded)
    count = sum(arity**level for level in range(min(levels, _LARGEST + 1)))
    if count > _LARGEST:
        raise OptionError(f"arity {arity} and levels {levels} give {count} switches; at most {_LARGEST} are made")
    parents: list[int | None] = [None, *((node - 1) // arity for node in range(1, count))]
    leaves = arity ** (levels - 1)

    def places() -> list[int]:
        chosen = rng.permutation(leaves)[: max(1, round(loaded * leaves))]
        return [int(count - leaves + leaf) for leaf in chosen]

    name = f"tree-complete-a{arity}-n{count}"
    common = (jobs, loads, rates, message_s, budget, memory, capable, goal)
    return _instance(rng, name, parents, places, *common)


def _instance(
    rng: np.random.Generator,
    name: str,
    parents: list[int | None],
    places: Callable[[], list[int]],
    jobs: int,
    loads: str,
    rates: str,
    message_s: float,
    budget: int | None,
    memory: int | None,
    capable: float,
    goal: str,
) -> TreeInstance:
    at_least("jobs", jobs, 1)
    one_of("loads", loads, LOADS)
    one_of("rates", rates, RATES)
    one_of("goal", goal, _GOALS)
    positive("message_s", message_s)
    part("capable", capable)
    for option, value in (("budget", budget), ("memory", memory)):
        if value is not None:
            at_least(option, value, 0)
    seconds = _seconds(rng, parents, rates, message_s)
    described = []
    for job in range(jobs):
        entering = [0] * len(parents)
        for node in places():
            entering[node] = _load(rng, loads)
        size = 1.0 if jobs == 1 else round(float(rng.uniform(0.5, 2.0)), 2)
        described.append({"name": f"job{job}", "loads": entering, "message_size": size})
    room: list[int] | None = None
    if memory is not None or capable < 1:
        room = [0] * len(parents)
        for node in rng.permutation(len(parents))[: round(capable * len(parents))]:
            room[node] = jobs if memory is None else memory
    return TreeInstance.from_data(
        {
            "name": name if budget is None else f"{name}-k{budget}",
            "parents": parents,
            "seconds_per_message": seconds,
            "jobs": described,
            "memory": room,
            "budget": budget,
            "goal": goal,
        }
    )


def _load(rng: np.random.Generator, loads: str) -> int:
    if loads == "uniform":
        return int(rng.integers(1, 10))
    return min(63, int(2.0 * (1.0 - rng.random()) ** (-2 / 3)))


def _seconds(rng: np.random.Generator, parents: list[int | None], rates: str, message_s: float) -> list[float]:
    """Seconds per message of every link, to five digits."""
    rate: npt.NDArray[np.float64] = np.ones(len(parents))
    if rates == "random":
        rate = rng.uniform(0.5, 2.0, len(parents))
    elif rates != "constant":
        height = [0] * len(parents)
        for node in range(len(parents) - 1, 0, -1):
            above = parents[node]
            assert above is not None
            height[above] = max(height[above], height[node] + 1)
        if rates == "exponential" and max(height) > _HIGHEST:
            raise OptionError(f"rates is 'exponential', but the tree has {max(height)} levels; at most {_HIGHEST} do")
        rate = 1.0 + np.array(height) if rates == "linear" else 2.0 ** np.array(height)
    return [float(f"{message_s / each:.5g}") for each in rate]
