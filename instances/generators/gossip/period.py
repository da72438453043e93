"""Instances of the problem ``period``."""

from typing import Any

import networkx as nx
import numpy as np

from ddlopt.instances.generators.gossip.graphs import SHAPES, network_of
from ddlopt.instances.options import at_least, one_of, part, positive
from ddlopt.models.errors import OptionError
from ddlopt.models.gossip.network import Network
from ddlopt.models.gossip.period.instance import PeriodInstance, Rounds
from ddlopt.models.gossip.period.stragglers import Stragglers

_SLOWDOWN = 10.0
"""Of a slow step, where only its probability is given: an order of magnitude."""


def period(
    rng: np.random.Generator,
    workers: int = 8,
    ratio: float = 4.0,
    target: float = 0.05,
    mixing: float = 0.2,
    step_size: float | None = None,
    whole: bool = False,
    shape: str | None = None,
    degree: int = 4,
    uneven: float = 0.0,
    spread: float | None = None,
    slow_chance: float | None = None,
    slowdown: float | None = None,
) -> PeriodInstance:
    """A step of computation in one second, and constants Δ, L, σ² of 1.

    Parameters
    ----------
    workers : int
    ratio : float
        Seconds of a communication; of each matching where there is a graph.
    target : float
    mixing : float
        ρ, without a graph.
    step_size : float, optional
        Free where none is given.
    whole : bool
    shape : str, optional
        A graph as for kind ``weights``, whose edges are coloured greedily to make matchings.
    degree : int
        Of a drawn graph.
    uneven : float
        The times of matchings are ratio · (1 + uneven · u) with u uniform in 0..1.
    spread : float, optional
        Worker i of m takes 1 + spread · i / (m − 1) seconds for a step.
    slow_chance : float, optional
        A step of a worker takes ``slowdown`` times as long with this probability; periods are whole then.
    slowdown : float, optional
        10 unless given.
    """
    at_least("workers", workers, 2)
    positive("ratio", ratio)
    positive("target", target)
    at_least("spread", spread or 0.0, 0.0)
    part("slow_chance", slow_chance or 0.0)
    at_least("slowdown", 1.0 if slowdown is None else slowdown, 1.0)
    if slowdown is not None and slow_chance is None:
        raise OptionError("slowdown is given without slow_chance; say how often a step is slow")
    constants: dict[str, Any] = {
        "workers": workers,
        "compute_s": 1.0,
        "target": target,
        "step_size": step_size,
        "whole": whole or slow_chance is not None,
    }
    if spread is not None or slow_chance is not None:
        factors = tuple(1.0 + (spread or 0.0) * place / (workers - 1) for place in range(workers))
        slow = (
            {}
            if slow_chance is None
            else {"chance": slow_chance, "slowdown": _SLOWDOWN if slowdown is None else slowdown}
        )
        constants["stragglers"] = Stragglers(factors=factors, **slow)
    if shape is None:
        return PeriodInstance(name=f"period-m{workers}", communication_s=ratio, mixing=mixing, **constants)
    one_of("shape", shape, tuple(SHAPES))
    network = network_of(rng, shape, workers, degree)
    matchings = matchings_of(network)
    times = ratio * (1.0 + uneven * rng.random(len(matchings)))
    rounds = Rounds(network=network, matchings=matchings, times_s=tuple(times.tolist()))
    return PeriodInstance(name=f"{shape}-m{workers}", rounds=rounds, **constants)


def matchings_of(network: Network) -> tuple[tuple[int, ...], ...]:
    """Classes of a greedy colouring of the edges, by first edges."""
    numbers = {frozenset(edge): place for place, edge in enumerate(network.edges)}
    colours = nx.greedy_color(nx.line_graph(network.graph), "DSATUR")
    classes: dict[int, list[int]] = {}
    for edge, colour in colours.items():
        classes.setdefault(colour, []).append(numbers[frozenset(edge)])
    return tuple(sorted(tuple(sorted(members)) for members in classes.values()))
