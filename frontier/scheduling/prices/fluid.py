"""The linear relaxation over shares of offers where accelerators are of several types, for its multipliers.

What is proven at the multipliers does not rest on the linear program: any of them give a bound.
"""

import itertools
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import linprog
from scipy.sparse import csr_array

from ddlopt.frontier.scheduling.prices.offers import Offers, offers_of, typed_pool
from ddlopt.models.errors import SolverError
from ddlopt.models.scheduling.concave.piecewise import outer_pieces
from ddlopt.models.scheduling.fastest import upper_envelope
from ddlopt.models.scheduling.instance import SchedulingInstance
from ddlopt.models.scheduling.utility import DONE, AllOrNothing

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_MOST_COLUMNS = 20_000
"""Some seconds of the linear program; with more of them neighbouring intervals get the same prices."""
_TANGENTS = 12
"""Of a utility: prices that are off by a per cent are good prices."""


class Fluid(NamedTuple):
    """Multipliers of the relaxation in which jobs take offers for parts of slots.

    ``firsts`` (B + 1,): slots with which B blocks begin, and the end; ``prices`` (B, K, R) of a slot's resources;
    ``times`` (I, B): of a slot of a job's own time; ``progress`` (I,): of all that a job wants. For ``makespan`` in
    slots, for ``max_min`` in parts of the smallest.
    """

    firsts: Ints
    prices: Floats
    times: Floats
    progress: Floats


def fluid(instance: SchedulingInstance) -> Fluid:
    r"""Multipliers of the relaxation for ``utility``, ``max_min`` or ``makespan``.

    With :math:`x_{iob}` slots of block b in which job i has offer o, and :math:`y_{ikb}` worker-slots on type k,

    .. math::
        \sum_o x_{iob} \le L_{ib},\quad \sum_k y_{ikb} = \sum_o w_o x_{iob},\quad
        \sum_i l_{ir} y_{ikb} \le C_{kr} L_b,\quad p_i \le \sum_{ob} \frac{\varphi_o}{F_i} x_{iob} ,

    and the most utility, the largest smallest p, or all :math:`p_i = 1` with the last block as short as can be. It
    begins with the last arrival, and deadlines after it are left out. Where there is one offer of a width for each
    share this is Gavel's program, with arrivals.

    Raises
    ------
    SolverError
        If the linear program is not solved.
    """
    return _Program(instance).solved()


class _Rows:
    """Rows of a sparse matrix as they come."""

    def __init__(self) -> None:
        self.columns: list[int] = []
        self.values: list[float] = []
        self.ends = [0]
        self.limits: list[float] = []

    def add(self, terms: list[tuple[int, float]], limit: float) -> int:
        self.columns += [column for column, _ in terms]
        self.values += [value for _, value in terms]
        self.ends.append(len(self.columns))
        self.limits.append(limit)
        return len(self.limits) - 1

    def matrix(self, columns: int) -> csr_array:
        return csr_array((self.values, self.columns, self.ends), shape=(len(self.limits), columns))


class _Program:
    def __init__(self, instance: SchedulingInstance) -> None:
        self.instance = instance
        self.cluster = typed_pool(instance)
        self.makespan = instance.goal.counts_last_end
        jobs = range(len(instance.jobs))
        self.offers = [_corners(offers_of(instance, self.cluster, place)) for place in jobs]
        self.last = [instance.slots if self.makespan else instance.last_slot(place) for place in jobs]
        self.firsts = self._blocks(sum(len(each.widths) for each in self.offers))
        self.cost: list[float] = []
        self.rows = _Rows()

    def _blocks(self, offers: int) -> Ints:
        arrivals = sorted({job.arrival for job in self.instance.jobs})
        events = arrivals if self.makespan else sorted({*arrivals, *self.last})
        most = max(1, _MOST_COLUMNS // (2 * offers))
        if self.makespan:
            # The last block is the one whose length is to be found.
            events = [0, *_spread(arrivals[:-1], most - 1), arrivals[-1]] if arrivals[-1] else [0]
            return np.array([*sorted(set(events)), self.instance.slots])
        return np.array(sorted({0, *_spread(events, most), self.instance.slots}))

    def _column(self, cost: float = 0.0) -> int:
        self.cost.append(cost)
        return len(self.cost) - 1

    def solved(self) -> Fluid:
        instance, rows = self.instance, self.rows
        blocks = list(itertools.pairwise(self.firsts.tolist()))
        types, resources = self.cluster.capacity.shape
        used: dict[tuple[int, int, int], list[tuple[int, float]]] = {}
        done: list[list[tuple[int, float]]] = [[] for _ in instance.jobs]
        own_time: dict[tuple[int, int], int] = {}
        end = self._column(1.0) if self.makespan else -1
        smallest = self._column(-1.0) if instance.goal.counts_least_part else -1
        for i, job in enumerate(instance.jobs):
            for b, (first, last) in enumerate(blocks):
                length = min(last, self.last[i]) - max(first, job.arrival)
                if length > 0:
                    terms = self._job_in_block(i, b, used, done[i])
                    open_ended = self.makespan and b == len(blocks) - 1
                    own_time[i, b] = rows.add(
                        [*terms, (end, -1.0)] if open_ended else terms, 0.0 if open_ended else length
                    )
        capacity_row = {}
        for (b, k, r), terms in used.items():
            first, last = blocks[b]
            most = float(self.cluster.capacity[k, r])
            open_ended = self.makespan and b == len(blocks) - 1
            length = 0.0 if open_ended else most * (last - first)
            capacity_row[b, k, r] = rows.add([*terms, (end, -most)] if open_ended else terms, length)
        progress = [self._progress(i, terms, smallest) for i, terms in enumerate(done)]
        duals = self._duals()
        prices = np.zeros((len(blocks), types, resources))
        for (b, k, r), row in capacity_row.items():
            prices[b, k, r] = duals[row]
        times = np.zeros((len(instance.jobs), len(blocks)))
        for (i, b), row in own_time.items():
            times[i, b] = duals[row]
        return Fluid(self.firsts, prices, times, duals[progress])

    def _job_in_block(
        self, i: int, b: int, used: dict[tuple[int, int, int], list[tuple[int, float]]], done: list[tuple[int, float]]
    ) -> list[tuple[int, float]]:
        """Columns of a job's offers in a block; their parts are noted in ``used`` and ``done``."""
        offers, job = self.offers[i], self.instance.jobs[i]
        found = []
        for place, types in enumerate(offers.types):
            mine = np.flatnonzero(offers.of_class == place).tolist()
            if not mine:
                continue
            columns = [(self._column(), float(offers.widths[o])) for o in mine]
            found += [(column, 1.0) for column, _ in columns]
            gains = np.minimum(offers.gains[mine] / job.minibatches, 1.0).tolist()
            done += [(column, gain) for (column, _), gain in zip(columns, gains, strict=True)]
            if len(types) > 1:
                workers = [(self._column(float(self.cluster.worker_cost[k])), k) for k in types]
                self.rows.add([*columns, *((column, -1.0) for column, _ in workers)], 0.0)
                for column, k in workers:
                    self._use(i, b, k, [(column, 1.0)], used)
            else:
                for column, width in columns:
                    self.cost[column] += float(self.cluster.worker_cost[types[0]]) * width
                self._use(i, b, types[0], columns, used)
        return found

    def _use(
        self,
        i: int,
        b: int,
        k: int,
        columns: list[tuple[int, float]],
        used: dict[tuple[int, int, int], list[tuple[int, float]]],
    ) -> None:
        for r, each in enumerate(self.cluster.demand[i].tolist()):
            if each:
                used.setdefault((b, k, r), []).extend((column, width * each) for column, width in columns)

    def _progress(self, i: int, terms: list[tuple[int, float]], smallest: int) -> int:
        """The row by which a job's progress is counted."""
        taken = [(column, -value) for column, value in terms]
        if self.makespan:
            return self.rows.add(taken, -float(DONE))
        if smallest >= 0:
            return self.rows.add([*taken, (smallest, 1.0)], 0.0)
        utility = self.instance.jobs[i].utility
        if isinstance(utility, AllOrNothing):
            pieces = [(1.0, utility.value)]
        else:
            found = outer_pieces(utility, 0.0, 1.0, tangents=_TANGENTS)
            pieces = list(zip(found.lengths.tolist(), found.slopes.tolist(), strict=True))
        fills = [(self._column(-slope), 1.0) for _, slope in pieces]
        for (column, _), (length, _) in zip(fills, pieces, strict=True):
            self.rows.add([(column, 1.0)], length)
        return self.rows.add([*taken, *fills], 0.0)

    def _duals(self) -> Floats:
        matrix = self.rows.matrix(len(self.cost))
        answer = linprog(self.cost, A_ub=matrix, b_ub=self.rows.limits, bounds=(0, None), method="highs")
        if answer.status != 0:
            told = " ".join(answer.message.split())
            raise SolverError(f"'{self.instance.name}': shares of {len(self.instance.jobs)} jobs: {told}")
        found: Floats = np.maximum(0.0, -answer.ineqlin.marginals)
        return found


def _corners(offers: Offers) -> Offers:
    """Those on the concave envelope of their class."""
    kept: list[int] = []
    for place in range(len(offers.types)):
        mine = np.flatnonzero(offers.of_class == place)
        corners = upper_envelope(np.append(0, offers.widths[mine]), np.append(0.0, offers.gains[mine]))
        kept += mine[corners[1:] - 1].tolist()
    return offers._replace(of_class=offers.of_class[kept], widths=offers.widths[kept], gains=offers.gains[kept])


def _spread(events: list[int], most: int) -> list[int]:
    """At most ``most`` of the events, evenly spread."""
    if len(events) <= most:
        return events
    return [events[place * len(events) // max(1, most)] for place in range(most)]
