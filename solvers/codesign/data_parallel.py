"""Data parallelism on links made for it: what a job gets whose strategies nobody searches."""

from dataclasses import dataclass
from typing import Any, ClassVar

import pyomo.environ as pyo

from ddlopt.models.codesign.formulations.rows.coupling import plan_of
from ddlopt.models.codesign.formulations.rows.strategy_choice import add_strategies, read_choices
from ddlopt.models.codesign.instance import CodesignInstance, Layer
from ddlopt.models.codesign.iteration_time import time_unit_s
from ddlopt.models.codesign.solution import CodesignPlan
from ddlopt.models.codesign.tables import tables_of
from ddlopt.models.errors import NoSolutionError
from ddlopt.solvers.backends.highs import Highs
from ddlopt.solvers.codesign.half_rounds import TopologyPlane, links_for
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.heuristic import Answer, Clock, Heuristic

_SHARE = 0.2
"""Of the time that is left, for a choice to begin with."""


@dataclass(frozen=True)
class DataParallel(Heuristic, uses=("seed",)):
    """Every layer data parallel, embedding tables on their owners, and links for the traffic that this makes.

    :func:`data_parallel` says which strategies these are. With ``topology="topology-finder"`` the links are
    TopologyFinder's; with ``"exact"`` those of the best method that the family ``topology`` has for the size.

    Parameters
    ----------
    topology : {"topology-finder", "exact"}
    """

    topology: TopologyPlane = "topology-finder"

    kernels: ClassVar[tuple[str, ...]] = ("ddlopt.solvers.topology.routing",)

    @property
    def name(self) -> str:
        """``data-parallel``."""
        return "data-parallel"

    def answer(self, instance: CodesignInstance, seed: int, clock: Clock, start: Any) -> Answer[CodesignPlan]:
        """The plan, and in the details how many layers memory makes take other strategies."""
        choices = data_parallel(instance, clock)
        design = links_for(instance, choices, self.topology, clock, seed)
        changed = sum(a != b for a, b in zip(usual(instance), choices, strict=True))
        return plan_of(instance, choices, design), {"layers_changed_for_memory": changed}


def data_parallel(instance: CodesignInstance, clock: Clock | None = None) -> tuple[int, ...]:
    """The choice of strategies from which a search begins: every layer's :func:`usual` one.

    Where these do not fit into memory, it is the choice of the least :func:`evenly_spread` time that fits (an integer
    program), which may have little of data parallelism left; with hundreds of layers the best that the program, which
    has a fifth of what the ``clock`` has left, and a greedy rule find (:func:`thrifty`).

    Raises
    ------
    NoSolutionError
        If no choice of strategies fits, or none is found in that time.
    """
    wanted = usual(instance)
    if tables_of(instance).fits(wanted):
        return wanted
    model = pyo.ConcreteModel()
    add_strategies(model, instance, time_unit_s(instance))
    reduced, moved = evenly_spread(instance)
    model.spread = pyo.Objective(
        expr=model.compute
        + pyo.quicksum(part * model.reduced[q] for q, part in enumerate(reduced))
        + pyo.quicksum(part * model.moved[p] for p, part in enumerate(moved))
    )
    outcome = Highs().solve(model, Limits(None if clock is None else clock.part(_SHARE)))
    if outcome.status is Status.INFEASIBLE:
        raise NoSolutionError(f"'{instance.name}': no choice of strategies fits into the memory of the servers")
    if outcome.objective is not None:
        return read_choices(model, instance)
    found = thrifty(instance)
    if found is None:
        raise NoSolutionError(f"'{instance.name}': no choice of strategies that fits into memory was found in time")
    return found


def thrifty(instance: CodesignInstance) -> tuple[int, ...] | None:
    """The leanest strategies over all servers, and then of layer after layer the usual one if it fits; None if not.

    Where the leanest lose too much by compression, it begins with those that lose least.
    """
    tables = tables_of(instance)
    keys = [
        [(bytes_ * len(servers), bytes_) for bytes_, servers in zip(own, on, strict=True)]
        for own, on in zip(tables.memory_bytes, tables.runs_on, strict=True)
    ]
    chosen = [min((*key, a) for a, key in enumerate(each))[-1] for each in keys]
    if tables.error_of(chosen) > instance.most_error:
        lost = [each.tolist() for each in tables.errors]
        chosen = [
            min((error, *key, a) for a, (error, key) in enumerate(zip(errors, each, strict=True)))[-1]
            for errors, each in zip(lost, keys, strict=True)
        ]
    if not tables.fits(chosen):
        return None
    taken, error = tables.memory_of(chosen), tables.error_of(chosen)
    for layer, wanted in enumerate(usual(instance)):
        other, lost_then = taken.copy(), error
        for a, sign in ((chosen[layer], -1.0), (wanted, 1.0)):
            other[tables.runs_on[layer][a]] += sign * tables.memory_bytes[layer][a]
            lost_then += sign * float(tables.errors[layer][a])
        if other.max() <= instance.most_memory_bytes and lost_then <= instance.most_error:
            chosen[layer], taken, error = wanted, other, lost_then
    return tuple(chosen) if tables.fits(chosen) else None


def evenly_spread(instance: CodesignInstance) -> tuple[list[float], list[float]]:
    """Bytes on each link, by group set and by pattern, for every byte of it that is spread over all links in one hop.

    The time of a choice is then its compute time and that of these bytes on one link.
    """
    links = instance.servers * instance.degree
    reduced = [sum(2 * (len(group) - 1) for group in groups) / links for groups in instance.group_sets]
    return reduced, [float(pattern.sent.sum()) / links for pattern in tables_of(instance).patterns]


def usual(instance: CodesignInstance) -> tuple[int, ...]:
    """Index of the strategy that data-parallel training gives each layer.

    That is the one named ``data``; for a table the one named ``owner``; of layers that any server may hold alone, the
    k-th goes to server k modulo n; else the first that reads nothing or what it writes, and writes one part of the
    batch on every server; else the first of all.
    """
    choices, spread = [], 0
    for layer in instance.layers:
        names = [strategy.name for strategy in layer.strategies]
        holders = _single_holders(layer, instance)
        if "data" in names or "owner" in names:
            choices.append(names.index("data" if "data" in names else "owner"))
        elif len(holders) == instance.servers:
            choices.append(holders[spread % instance.servers])
            spread += 1
        else:
            choices.append(_split_by_batch(layer, instance))
    return tuple(choices)


def _single_holders(layer: Layer, instance: CodesignInstance) -> dict[int, int]:
    """By server, the strategy that reads nothing and leaves the layer's output there alone."""
    written = [(instance.layouts[strategy.writes].servers, strategy.reads) for strategy in layer.strategies]
    return {servers[0]: a for a, (servers, reads) in enumerate(written) if len(servers) == 1 and reads is None}


def _split_by_batch(layer: Layer, instance: CodesignInstance) -> int:
    for place, strategy in enumerate(layer.strategies):
        layout = instance.layouts[strategy.writes]
        if layout.batch_parts == instance.servers and strategy.reads in (None, strategy.writes):
            return place
    return 0
