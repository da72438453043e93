"""List scheduling: jobs of fixed width in the order of a list, each as soon as it fits, in one piece."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ddlopt.models.scheduling.instance import SchedulingInstance
from ddlopt.models.scheduling.pool import pool
from ddlopt.solvers.scheduling.online.baselines import Online
from ddlopt.solvers.scheduling.online.engine import Choice, State
from ddlopt.solvers.scheduling.slot.packing import Packer, Place
from ddlopt.solvers.scheduling.slot.rates import Floats, Ints, Rates

Order = Literal["longest", "widest", "shortest", "arrival"]


class FixedWidths:
    """The policy that starts jobs at their largest width, as soon as they fit, and neither stops nor moves them.

    Where nothing runs and a job's largest width still does not fit, because of a network, it gets the largest that
    does.

    Parameters
    ----------
    rank : sequence of I numbers
        Lower ones go first.
    packer : Packer, optional
        Finds places where widths alone do not decide; None for an exact pool.
    """

    def __init__(self, rank: Sequence[float] | Floats | Ints, packer: Packer | None) -> None:
        self.rank = np.asarray(rank)
        self.packer = packer

    def choose(self, state: State) -> Choice:
        """Those that run, then as many of the others as fit."""
        waits = state.width[state.active] == 0
        order = state.active[np.lexsort((state.active, self.rank[state.active], waits))]
        if self.packer is None:
            widths = np.where(state.width[order] > 0, state.width[order], state.rates.widest[order])
            return state.admit(order, widths)
        return self._place(state, self.packer, order.tolist())

    def _place(self, state: State, packer: Packer, order: Iterable[int]) -> Choice:
        present = {*order, *state.held}
        for job in [job for job in packer.placed if job not in present]:
            packer.remove(job)
        for job in order:
            if job not in packer.placed:
                width = int(state.rates.widest[job])
                place = packer.find(job, width) if packer.placed else packer.largest(job, width)
                if place is not None:
                    packer.put(job, place)
        return {job: packer.placed[job] for job in order if job in packer.placed}


class FirstFit(Packer):
    """Takes the first server that holds a job, else the first servers with room."""

    def find(self, job: int, width: int, room: Ints | None = None) -> Place | None:
        """See :class:`~ddlopt.solvers.scheduling.slot.packing.Packer`."""
        room = self._room(job) if room is None else room
        whole = np.flatnonzero(room >= width)
        if len(whole):
            room = np.where(np.arange(len(room)) == whole[0], room, 0)
        return super().find(job, width, room)

    def _order(self, room: Ints) -> Iterable[int]:
        return range(len(room))


@dataclass(frozen=True)
class ListScheduling(Online, uses=()):
    """Jobs at their largest width, in the order of a list, each as soon as it fits; smaller ones fill the gaps.

    It never stops or moves a job that runs, also where the instance would allow that.

    Parameters
    ----------
    order : {"longest", "widest", "shortest", "arrival"}
        By time at the largest width (ties by workers), by workers (ties by time), or by arrival; then by place.
    first_fit : bool
        On servers, whether a job takes the first ones with room; else the one that it fills best, or as few as hold it.
    """

    order: Order = "longest"
    first_fit: bool = False

    @property
    def name(self) -> str:
        """``list-scheduling``; ``first-fit`` for first servers in the order of arrival."""
        if self.order == "arrival" and self.first_fit:
            return "first-fit"
        return "list-scheduling" if self.order == "longest" else f"list-scheduling-{self.order}"

    def policy(self, instance: SchedulingInstance) -> FixedWidths:
        """See the class."""
        packer = None
        if not pool(instance).exact:
            packer = FirstFit(instance) if self.first_fit else Packer(instance)
        return FixedWidths(ranks(instance, self.order), packer)


def lengths(instance: SchedulingInstance) -> Floats:
    """(I,) slots that each job takes at its largest width, alone on the cluster."""
    rates = Rates(instance)
    wanted = np.array([job.minibatches for job in instance.jobs])
    return wanted / rates(np.arange(len(wanted)), rates.widest)


def ranks(instance: SchedulingInstance, order: Order) -> Ints:
    """(I,) places of the jobs in a list."""
    slots = lengths(instance)
    width = np.array([job.max_workers for job in instance.jobs])
    arrival = np.array([job.arrival for job in instance.jobs])
    keys = {
        "longest": (-width, -slots),
        "widest": (-slots, -width),
        "shortest": (width, slots),
        "arrival": (arrival,),
    }
    found = np.empty(len(slots), dtype=np.int64)
    found[np.lexsort(keys[order])] = np.arange(len(slots))
    return found
