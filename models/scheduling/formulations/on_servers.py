"""Workers of jobs on servers, in one slot or in many: what servers hold, and what their energy costs."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyomo.environ as pyo

from ddlopt.models.errors import SolverError
from ddlopt.models.linear import linear
from ddlopt.models.scheduling.formulations.tree_cuts import Moment, Terms
from ddlopt.models.scheduling.instance import SchedulingInstance
from ddlopt.models.scheduling.pool import Workers
from ddlopt.models.tolerances import INTEGRALITY_TOL, let_pass

Key = tuple[int, ...]
"""A job and, in a model of many slots, one of them."""


@dataclass(frozen=True)
class OnServers:
    """``workers[i, s]`` of job i on server s, and ``awake[s]`` of servers that cost energy by themselves.

    In a model of many slots both end with the slot.

    Parameters
    ----------
    instance : SchedulingInstance
    room : mapping or (I, S) array
        Workers of a job that each server holds, at most its largest width.
    moments : mapping
        Job -> when it may run.
    """

    instance: SchedulingInstance
    room: Any
    moments: Mapping[int, Sequence[Moment]]

    def add_workers(self, block: pyo.Block, width_of: Callable[[int, Moment, float], Terms]) -> None:
        """Add workers, as many as jobs are wide.

        Parameters
        ----------
        width_of : callable
            Terms of how wide a job is at a moment, times a factor.
        """
        servers = range(self.instance.server_count)
        index = [
            (i, s, *moment) for i, own in self.moments.items() for s in servers if self.room[i][s] for moment in own
        ]
        block.PLACES = pyo.Set(initialize=index, doc="job, server that holds a worker of it")
        block.workers = pyo.Var(
            block.PLACES,
            domain=pyo.NonNegativeIntegers,
            bounds=lambda _, i, s, *moment: (0, int(self.room[i][s])),
            doc="workers of the job on the server",
        )

        @block.Constraint(
            [(i, *moment) for i, own in self.moments.items() for moment in own], doc="all workers are somewhere"
        )
        def workers_make_the_width(b: Any, i: int, *moment: int) -> Any:
            placed = [(1.0, b.workers[i, s, *moment]) for s in servers if self.room[i][s]]
            return linear(placed + width_of(i, moment, -1.0)) == 0

    def add_limits(self, block: pyo.Block) -> Terms:
        """Add what servers hold, and which are awake; gives what energy costs."""
        costs = self._add_energy(block)
        self._add_capacities(block)
        return costs

    @cached_property
    def _present(self) -> dict[Moment, list[int]]:
        """Jobs that may run, by moment."""
        found: dict[Moment, list[int]] = defaultdict(list)
        for i, own in self.moments.items():
            for moment in own:
                found[moment].append(i)
        return found

    def _add_energy(self, block: pyo.Block) -> Terms:
        """Which servers are awake, where their own power has a price; gives what energy costs."""
        price = self.instance.energy_price_per_j * self.instance.slot_s
        each, idle = (price * self.instance.worker_w).tolist(), (price * self.instance.idle_w).tolist()
        costs = [(each[s], block.workers[i, s, *moment]) for i, s, *moment in block.PLACES if each[s]]
        if not any(idle):
            return costs
        paid = [(s, moment) for s in np.flatnonzero(idle).tolist() for moment in self._present]
        block.awake = pyo.Var([_key(*pair) for pair in paid], domain=pyo.Binary, doc="somebody is on the server")

        @block.Constraint(
            [(i, s, *moment) for i, s, *moment in block.PLACES if idle[s]], doc="workers keep their server awake"
        )
        def workers_wake_the_server(b: Any, i: int, s: int, *moment: int) -> Any:
            return linear([(1.0, b.workers[i, s, *moment]), (-float(self.room[i][s]), b.awake[_key(s, moment)])]) <= 0

        return costs + [(idle[s], block.awake[_key(s, moment)]) for s, moment in paid]

    def _add_capacities(self, block: pyo.Block) -> None:
        demand, capacity = self.instance.demand.tolist(), let_pass(self.instance.capacity).tolist()
        awake, present = block.component("awake") or {}, self._present
        resources = range(len(self.instance.resources))
        index = [(s, r, *moment) for s in range(self.instance.server_count) for r in resources for moment in present]

        @block.Constraint(index, doc="a server gives no more than it has")
        def capacity_is_respected(b: Any, s: int, r: int, *moment: int) -> Any:
            here = [i for i in present[moment] if demand[i][r] and self.room[i][s]]
            row = [(demand[i][r], b.workers[i, s, *moment]) for i in here]
            if not row:
                return pyo.Constraint.Skip
            if _key(s, moment) in awake:
                return linear([*row, (-capacity[s][r], awake[_key(s, moment)])]) <= 0
            return linear(row) <= capacity[s][r]

    def start(self, block: pyo.Block, places: Mapping[Key, Mapping[int, int]]) -> None:
        """Values from ``places[job, *moment][server]``."""
        for i, s, *moment in block.PLACES:
            count = places.get((i, *moment), {}).get(s, 0)
            block.workers[i, s, *moment].set_value(count, skip_validation=True)
        used = {_key(s, moment) for (_, *moment), here in places.items() for s in here}
        for key, variable in (block.component("awake") or {}).items():
            variable.set_value(int(key in used), skip_validation=True)

    def read(self, block: pyo.Block) -> dict[Key, Workers]:
        """Workers of every job at every moment at which it has some.

        Raises
        ------
        SolverError
            If a server has a worker in part.
        """
        found: dict[Key, list[tuple[int, int]]] = defaultdict(list)
        for i, s, *moment in block.PLACES:
            if count := whole(block.workers[i, s, *moment]):
                found[i, *moment].append((s, count))
        return {key: tuple(sorted(there)) for key, there in found.items()}


def _key(server: int, moment: Sequence[int]) -> Any:
    """The index of a server at a moment: Pyomo has none of one entry in brackets."""
    return (server, *moment) if moment else server


def whole(variable: Any) -> int:
    """The whole number that a variable has.

    Raises
    ------
    SolverError
        If it has none.
    """
    value = variable.value or 0.0
    if abs(value - round(value)) > INTEGRALITY_TOL:
        raise SolverError(f"variable '{variable.name}' is {value:g}, which is not whole")
    return round(value)
