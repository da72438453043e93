"""A simulation of slots that are held until the last worker's packet is there, packet by packet.

A job's packets begin in order: each when every switch of the job has one of its slots free, and the network cards are
ready. Each worker's packet is sent, lost or not, and sent again after the timeout until it is there, late as drawn from
the table. A slot at a switch is free again a round trip after it was taken, plus what the last of the workers below
that switch needed. Of expectations nothing is taken from the model: neither of waits nor that slots give a rate.
"""

import heapq
import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from ddlopt.models.aggregation.slots.delivery import Delivery
from ddlopt.models.aggregation.slots.instance import SlotJob, SlotPlan, SlotsInstance
from ddlopt.models.errors import NotApplicableError, OptionError
from ddlopt.models.tolerances import ZERO_TOL

_LEAST = 20
"""Packets for each slot: with fewer, what is measured is how slots are taken first."""
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Held:
    """What came out for a job.

    Parameters
    ----------
    goodput_bytes_per_s : float
        Of each worker's gradient, sent once or more often.
    expected_bytes_per_s : float
        What the job's slots, whole ones, give by expected holding times, or its network cards.
    holds_s : tuple of float
        Mean seconds for which packets held slots, by the switches of the job.
    errors_s : tuple of float
        Standard errors of these means.
    """

    goodput_bytes_per_s: float
    expected_bytes_per_s: float
    holds_s: tuple[float, ...]
    errors_s: tuple[float, ...]


def through_holds(instance: SlotsInstance, plan: SlotPlan, packets: int = 10_000, seed: int = 0) -> list[Held | None]:
    """Simulate ``packets`` packets of each job that aggregates; None for the others.

    Parts of slots are left empty; who is given less than one has one. Links are left out. Goodput is that of the second
    half; it is too high unless the first half lasts some timeouts.

    Raises
    ------
    OptionError
        With fewer than 20 packets for each slot of a job.
    NotApplicableError
        If a job's switches are neither one, nor several and the last above all others.
    """
    rng = np.random.default_rng(seed)
    found: list[Held | None] = []
    for place, (job, slots, rate) in enumerate(zip(instance.jobs, plan.slots, plan.rates_bytes_per_s, strict=True)):
        payloads = [instance.switches[s].payload_bytes for s in job.switches]
        if rate is None or not job.switches:
            found.append(None)
            continue
        if len(set(payloads)) > 1:
            raise NotApplicableError(f"jobs[{place}] ('{job.name}') has switches of different payloads")
        given = [max(1, math.floor(each * (1 + ZERO_TOL))) for each in slots]
        if packets < _LEAST * min(given):
            raise OptionError(
                f"packets is {packets}, but jobs[{place}] ('{job.name}') has {min(given)} slots; expected at least "
                f"{_LEAST * min(given)}"
            )
        holds = _holds(job, place, packets, rng)
        card = job.nic_bytes_per_s * float(job.sent_once)
        apart_s = payloads[0] / card
        starts = _starts(given, holds, apart_s)
        # At first all slots are free, and long holds have not begun.
        first = packets // 2
        goodput = payloads[0] * (packets - 1 - first) / (starts[-1] - starts[first])
        rates = [n * payloads[0] / job.hold_s(k) for k, n in enumerate(given)]
        errors = holds.std(axis=1, ddof=1) / math.sqrt(packets)
        means = tuple(holds.mean(axis=1).tolist())
        found.append(Held(float(goodput), min(card, *rates), means, tuple(errors.tolist())))
    return found


def _holds(job: SlotJob, place: int, packets: int, rng: np.random.Generator) -> Floats:
    """(switches, packets) seconds for which slots are held."""
    if job.delivery is None:
        return np.full((len(job.switches), packets), job.rtt_s)
    below = job.delivery.workers
    if len(below) > 1 and below[-1] != sum(below[:-1]):
        raise NotApplicableError(
            f"jobs[{place}] ('{job.name}') has {below[-1]} workers at its last switch, {sum(below[:-1])} at the "
            "others; the simulator takes a last switch that is above all others"
        )
    late = _late(job.delivery, (below[-1], packets), rng)
    ends = np.cumsum([0, *below[:-1]]).tolist()
    racks = [late[low:high].max(axis=0) for low, high in pairwise(ends)]
    return job.rtt_s + np.array([*racks, late.max(axis=0)])


def _late(delivery: Delivery, shape: tuple[int, int], rng: np.random.Generator) -> Floats:
    """(workers, packets) seconds until a packet is there, beyond those of one that is on time."""
    late = np.zeros(shape)
    ends = np.cumsum(delivery.chances)
    drawn = rng.random(shape)
    for low, end, delay in zip([0.0, *ends[:-1]], ends, delivery.delays_s, strict=False):
        late[(low <= drawn) & (drawn < end)] = delay
    lost = rng.random(shape) < delivery.loss
    while lost.any():
        late[lost] += delivery.timeout_s
        lost[lost] = rng.random(int(lost.sum())) < delivery.loss
    return late


def _starts(slots: list[int], holds: Floats, apart_s: float) -> list[float]:
    """When packets begin, with ``slots`` of each switch."""
    free = [[0.0] * count for count in slots]
    now, found = -apart_s, []
    for own in holds.T.tolist():
        now = max(now + apart_s, *(times[0] for times in free))
        for times, hold in zip(free, own, strict=True):
            heapq.heapreplace(times, now + hold)
        found.append(now)
    return found
