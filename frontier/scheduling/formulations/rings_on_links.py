"""The rings of a schedule and the links that they share, as arrays."""

from collections import Counter, defaultdict
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from ddlopt.models.errors import SolutionError
from ddlopt.models.scheduling.instance import SchedulingInstance
from ddlopt.models.scheduling.solution import Run, Schedule

Floats = npt.NDArray[np.float64]
Arc = tuple[int, int]

_LEAST_SHARE = 1e-12
"""Of the most that a ring can have, where its bandwidth is no matter: in a schedule it is positive."""


class LinkRow(NamedTuple):
    """Rings that share an arc in slots ``start`` to ``end - 1``."""

    arc: Arc
    start: int
    end: int
    bandwidth_bytes_per_s: float


class RingsOnLinks:
    r"""Rings over several servers, their progress as a function of their bandwidth, and the links that limit it.

    With the share :math:`\beta_r` of the most that ring r could have if it were alone, its run does
    :math:`\hat p_r (1 - 1 / (1 + \rho_r \beta_r))` of the mini-batches that its job wants.

    Parameters
    ----------
    instance : SchedulingInstance
        With shared bandwidth.
    schedule : Schedule
        Whose bandwidths are not looked at.

    Raises
    ------
    SolutionError
        If a run over several servers has no ring, or one over arcs that there are not.
    """

    def __init__(self, instance: SchedulingInstance, schedule: Schedule) -> None:
        self.instance, self._schedule = instance, schedule
        self._passes = [_passes(instance, run, place) for place, run in enumerate(schedule.runs)]
        matters = [
            bool(one) and _moved_bytes(instance, run) > 0 for run, one in zip(schedule.runs, self._passes, strict=True)
        ]
        self.runs = [place for place, one in enumerate(matters) if one]
        """Places in ``schedule.runs`` of the R runs whose bandwidth matters."""
        self.bandwidth: Floats = np.array([self._alone(place) for place in self.runs])
        """(R,) bytes/s, the most that a ring could have if it were alone."""
        self.most: Floats = np.empty(len(self.runs))
        """(R,) part of the mini-batches wanted that the run does with unlimited bandwidth."""
        self.steepness: Floats = np.empty(len(self.runs))
        """(R,) rho: how soon more bandwidth is of no use."""
        self.job = np.array([schedule.runs[place].job for place in self.runs], dtype=np.int64)
        """(R,) whose runs they are."""
        self.fixed: Floats = np.zeros(len(instance.jobs))
        """(I,) part of the mini-batches wanted that bandwidth does not change."""
        self.of_job = sparse.csr_array(
            (np.ones(len(self.runs)), (self.job, np.arange(len(self.runs)))), shape=(len(instance.jobs), len(self.runs))
        )
        """(I, R) 1 where it is the job's run."""
        self._fill(matters)
        self.rows, self.loads = self._link_rows()
        """Rows of links, and (rows, R) the part of the arc that a ring takes with all the bandwidth it could have."""

    def _alone(self, place: int) -> float:
        network = self.instance.network
        assert network is not None
        return min(network.arcs[arc] / times for arc, times in self._passes[place].items())

    def _fill(self, matters: list[bool]) -> None:
        ring = 0
        for place, run in enumerate(self._schedule.runs):
            job = self.instance.jobs[run.job]
            seconds = run.slots * self.instance.slot_s
            if matters[place]:
                fixed_s = float(job.timing.iteration_s(run.width, np.inf))
                self.most[ring] = run.width * seconds / fixed_s / job.minibatches
                self.steepness[ring] = fixed_s * self.bandwidth[ring] / _moved_bytes(self.instance, run)
                ring += 1
            else:
                self.fixed[run.job] += float(job.timing.minibatches_per_s(run.width)) * seconds / job.minibatches

    def _link_rows(self) -> tuple[list[LinkRow], sparse.csr_array]:
        network = self.instance.network
        assert network is not None
        uses: dict[Arc, list[int]] = defaultdict(list)
        for ring, place in enumerate(self.runs):
            for arc in self._passes[place]:
                uses[arc].append(ring)
        rows: list[LinkRow] = []
        at: list[int] = []
        of: list[int] = []
        load: list[float] = []
        for arc in sorted(uses):
            rate = network.arcs[arc]
            for start, end, rings in self._crowds(uses[arc]):
                at += [len(rows)] * len(rings)
                of += rings
                load += [self._passes[self.runs[ring]][arc] * self.bandwidth[ring] / rate for ring in rings]
                rows.append(LinkRow(arc, start, end, rate))
        shape = len(rows), len(self.runs)
        return rows, sparse.csr_array((load, (at, of)), shape=shape, dtype=np.float64)

    def _crowds(self, rings: list[int]) -> list[tuple[int, int, list[int]]]:
        """(start, end, rings) of stretches of slots, without those whose rings are all in a neighbouring stretch.

        If they are all in any other stretch then they also are in the neighbour on that side, as a ring's slots are
        consecutive.
        """
        runs = self._schedule.runs
        changes: dict[int, list[int]] = defaultdict(list)
        for ring in rings:
            changes[runs[self.runs[ring]].start].append(ring)
            changes[runs[self.runs[ring]].end].append(ring)
        here: set[int] = set()
        stretches: list[tuple[int, int, frozenset[int]]] = []
        for start, end in pairwise(sorted(changes)):
            here ^= set(changes[start])
            stretches.append((start, end, frozenset(here)))
        around = [frozenset(), *(crowd for _, _, crowd in stretches), frozenset()]
        return [
            (start, end, sorted(crowd))
            for k, (start, end, crowd) in enumerate(stretches)
            if not (crowd <= around[k] or crowd <= around[k + 2])
        ]

    def fitted(self, share: npt.ArrayLike) -> Floats:
        """Shares (R,) made positive, and smaller where a link would be over-full."""
        share = np.clip(np.nan_to_num(np.asarray(share, dtype=np.float64)), _LEAST_SHARE, 1.0)
        over = np.maximum(1.0, self.loads @ share)
        scale = np.ones(len(share))
        table = self.loads.tocoo()
        np.maximum.at(scale, table.col, over[table.row])
        return share / scale

    def schedule(self, share: Floats) -> Schedule:
        """The schedule with these shares (R,) as bandwidths; rings on one server, of no use, are left out."""
        bandwidth = dict(zip(self.runs, (share * self.bandwidth).tolist(), strict=True))
        runs = []
        for place, run in enumerate(self._schedule.runs):
            if self._passes[place]:
                rate = bandwidth[place] if place in bandwidth else _LEAST_SHARE * self._alone(place)
                runs.append(run.model_copy(update={"bandwidth_bytes_per_s": rate}))
            else:
                runs.append(run.model_copy(update={"bandwidth_bytes_per_s": None, "ring": ()}))
        return Schedule(instance=self.instance.name, instance_digest=self.instance.digest, runs=tuple(runs))

    def parts(self, share: Floats) -> Floats:
        """(I,) part of the mini-batches wanted that is done, at most 1."""
        done: Floats = self.fixed + self.of_job @ (self.most * (1 - 1 / (1 + self.steepness * share)))
        return np.minimum(1.0, done)


def _moved_bytes(instance: SchedulingInstance, run: Run) -> float:
    """Bytes that each link of the ring carries in an iteration, for each pass."""
    timing = instance.jobs[run.job].timing
    return 2 * timing.gradient_bytes * (run.width - 1) / run.width if timing.kind == "ring" else 0.0


def _passes(instance: SchedulingInstance, run: Run, place: int) -> Counter[Arc]:
    """How often the ring passes each arc; nothing for a run on one server."""
    if len(run.workers) < 2:
        return Counter()
    network = instance.network
    assert network is not None
    if not run.ring:
        raise SolutionError(f"runs[{place}] is on {len(run.workers)} servers, but has no ring; give one")
    passes = Counter(pairwise((*run.ring, run.ring[0])))
    for u, v in passes:
        if (u, v) not in network.arcs:
            raise SolutionError(f"runs[{place}]: its ring leads over {u} -> {v}, where there is no link")
    return passes
