"""A simulation of packets through switches that add gradients up in slots, as a plan of slots and rates says.

Every worker of a job has as many packets on their way as the job has slots, and sends the next one in a slot when the
sum of the one before has come back (SwitchML). Network cards and the links between switches send one packet after the
other. A sum is made when the last worker's packet is there; with several racks each rack's switch sends its sum up, and
the switch above adds these. What is lost is sent again when a timer runs out. Nothing is taken from the model but the
plan: neither its rates, unless senders are paced, nor the rate that a number of slots allows.
"""

import heapq
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ddlopt.models.aggregation.slots.instance import SlotJob, SlotPlan, SlotsInstance
from ddlopt.models.errors import NotApplicableError, OptionError
from ddlopt.models.tolerances import ZERO_TOL

_Event = tuple[float, int, str, tuple[int, int, int, int]]
"""Seconds, a number that makes it unique, what happens; job, rack of the job, worker of the rack, packet."""


@dataclass(frozen=True)
class SlotOptions:
    """How packets go.

    Parameters
    ----------
    workers : int
        Of a job at each rack; instances do not say how many.
    header_bytes : float
        Of each packet, on network cards and links, beside the payload.
    paced : bool
        Whether workers leave the time between packets that the plan's rate says, rather than sending when they may.
    jitter : float
        A packet takes between 1 - jitter and 1 + jitter times as long as without, for each way by itself.
    loss : float
        Part of the packets that is lost on each way.
    timeout_s : float
        Until a worker sends a packet again; SwitchML's is 1 ms.
    rounds : int
        Longest round trips that are simulated; the first quarter is not counted.
    seed : int
    """

    workers: int = 2
    header_bytes: float = 0.0
    paced: bool = False
    jitter: float = 0.0
    loss: float = 0.0
    timeout_s: float = 1e-3
    rounds: int = 40
    seed: int = 0

    def __post_init__(self) -> None:
        for name, value, low, high in (
            ("workers", self.workers, 1, 1000),
            ("header_bytes", self.header_bytes, 0, 1e5),
            ("jitter", self.jitter, 0, 1),
            ("loss", self.loss, 0, 0.5),
            ("timeout_s", self.timeout_s, 1e-9, 1e3),  # a nanosecond: less is no time that a host could measure
            ("rounds", self.rounds, 8, 10**6),
        ):
            if not low <= value <= high:
                raise OptionError(f"{name} is {value}; expected {low:g} to {high:g}")


@dataclass(frozen=True)
class Aggregated:
    """What came out.

    Parameters
    ----------
    rates_bytes_per_s : tuple of float or None
        Of gradients, by jobs; None for those that fall back on their parameter server.
    held : float
        Mean part of the slots given that hold the sum of at least one packet, at the first switch of each job.
    sent_again : int
        Packets whose timer ran out.
    """

    rates_bytes_per_s: tuple[float | None, ...]
    held: float
    sent_again: int


def through_slots(instance: SlotsInstance, plan: SlotPlan, options: SlotOptions | None = None) -> Aggregated:
    """Simulate all jobs of a feasible plan that aggregate, while all of them send.

    Parts of slots are left empty; who is given less than one has one.

    Raises
    ------
    NotApplicableError
        If a job's switches are neither one without links, nor one for each of its links and one above them; if it has
        a ``delivery``, or comes and goes.
    """
    chosen = options or SlotOptions()
    for place, job in enumerate(instance.jobs):
        if plan.rates_bytes_per_s[place] is not None:
            _understood(place, job)
    return _Simulation(instance, plan, chosen).run()


def _understood(place: int, job: SlotJob) -> None:
    if job.delivery is not None:
        raise NotApplicableError(
            f"jobs[{place}] ('{job.name}') has a delivery, which through_holds simulates; here options say which "
            "packets are late or lost"
        )
    if job.stay is not None:
        raise NotApplicableError(
            f"jobs[{place}] ('{job.name}') has a stay; only jobs that all run at the same time can be simulated"
        )
    if len(job.switches) != (len(job.links) + 1) or len(job.links) == 1:
        raise NotApplicableError(
            f"jobs[{place}] ('{job.name}') has {len(job.switches)} switches and {len(job.links)} links; the "
            f"simulator takes one switch without links, or several, each with a link to one more above them"
        )


class _Job:
    """Workers of a job and its sums."""

    def __init__(self, job: SlotJob, slots: tuple[float, ...], rate: float, options: SlotOptions) -> None:
        self.data = job
        self.racks = max(1, len(job.links))
        self.window = max(1, math.floor(min(slots) * (1 + ZERO_TOL)))
        self.hop_s = job.rtt_s / (4 if job.links else 2)
        self.rate = rate
        self.free_s = [[0.0] * options.workers for _ in range(self.racks)]
        self.arrived: dict[tuple[int, int], set[int]] = {}
        self.summed: set[tuple[int, int]] = set()  # (rack, packet)
        self.above: dict[int, set[int]] = {}
        self.done: set[int] = set()
        self.got: dict[int, set[tuple[int, int]]] = {}
        self.over = [0] * self.window  # packets of each slot whose sum everybody has
        self.ended: list[list[float]] = [[] for _ in self.over]  # when, without the first quarter
        self.since: dict[int, float] = {}
        self.held_s = 0.0


class _Simulation:
    def __init__(self, instance: SlotsInstance, plan: SlotPlan, options: SlotOptions) -> None:
        self.options, self.instance = options, instance
        self.random = np.random.default_rng(options.seed)
        self.jobs = {
            place: _Job(job, slots, rate, options)
            for place, (job, slots, rate) in enumerate(
                zip(instance.jobs, plan.slots, plan.rates_bytes_per_s, strict=True)
            )
            if rate is not None
        }
        self.link_free_s = [0.0] * len(instance.links)
        self.switch_free_s = [0.0] * len(instance.switches)
        self.events: list[_Event] = []
        self.draws = self._drawn()
        self.count = self.sent_again = 0
        self.now = self.end_s = 0.0

    def run(self) -> Aggregated:
        longest = max((job.data.rtt_s for job in self.jobs.values()), default=0.0)
        self.end_s = self.options.rounds * longest
        for place, job in self.jobs.items():
            begin = job.data.rtt_s * next(self.draws)  # jobs know nothing of each other
            for rack in range(job.racks):
                for worker in range(self.options.workers):
                    job.free_s[rack][worker] = begin
                    for packet in range(job.window):
                        self._send(place, rack, worker, packet)
        happen = {"rack": self._at_rack, "above": self._above, "result": self._result, "timer": self._timer}
        while self.events and self.events[0][0] <= self.end_s:
            self.now, _, what, where = heapq.heappop(self.events)
            happen[what](*where)
        everybody = range(len(self.instance.jobs))
        rates = tuple(self._rate(self.jobs[place]) if place in self.jobs else None for place in everybody)
        return Aggregated(rates, self._held(), self.sent_again)

    def _drawn(self) -> Iterator[float]:
        while True:
            yield from self.random.random(4096).tolist()

    def _push(self, delay_s: float, what: str, where: tuple[int, int, int, int]) -> None:
        self.count += 1
        heapq.heappush(self.events, (self.now + delay_s, self.count, what, where))

    def _way_s(self, hop_s: float) -> float | None:
        """Seconds on a way, None where the packet is lost."""
        if self.options.loss and next(self.draws) < self.options.loss:
            return None
        if not self.options.jitter:
            return hop_s
        return hop_s * (1 + self.options.jitter * (2 * next(self.draws) - 1))

    def _size(self, job: _Job) -> float:
        return self._payload(job) + self.options.header_bytes

    def _payload(self, job: _Job) -> float:
        return self.instance.switches[job.data.switches[0]].payload_bytes

    def _send(self, place: int, rack: int, worker: int, packet: int) -> None:
        job = self.jobs[place]
        card_s = self._size(job) / job.data.nic_bytes_per_s
        start = max(self.now, job.free_s[rack][worker])
        job.free_s[rack][worker] = start + max(card_s, self._payload(job) / job.rate if self.options.paced else 0.0)
        left_s = start + card_s - self.now
        way = self._way_s(job.hop_s)
        if way is not None:
            self._push(left_s + way, "rack", (place, rack, worker, packet))
        if self.options.loss:
            self._push(left_s + self.options.timeout_s, "timer", (place, rack, worker, packet))

    def _timer(self, place: int, rack: int, worker: int, packet: int) -> None:
        job = self.jobs[place]
        if not self._is_over(job, packet) and (rack, worker) not in job.got.get(packet, ()):
            self.sent_again += 1
            self._send(place, rack, worker, packet)

    def _at_rack(self, place: int, rack: int, worker: int, packet: int) -> None:
        job, key = self.jobs[place], (rack, packet)
        if packet in job.done:  # it lacks the result: the switch still has it
            self._answer(place, rack, worker, packet)
            return
        if rack == 0:
            job.since.setdefault(packet, self.now)
        arrived = job.arrived.setdefault(key, set())
        arrived.add(worker)
        if len(arrived) < self.options.workers:
            return
        wait_s = 0.0 if key in job.summed else self._through(job.data.switches[rack], job)
        job.summed.add(key)
        if not job.data.links:
            self._finish(place, packet, wait_s)
            return
        link = job.data.links[rack]
        start = max(self.now + wait_s, self.link_free_s[link])
        sent = self._size(job) / self.instance.links[link].bandwidth_bytes_per_s
        self.link_free_s[link] = start + sent
        way = self._way_s(job.hop_s)
        if way is not None:
            self._push(start + sent + way - self.now, "above", (place, rack, 0, packet))

    def _above(self, place: int, rack: int, _: int, packet: int) -> None:
        job = self.jobs[place]
        if packet in job.done:
            for worker in range(self.options.workers):
                self._answer(place, rack, worker, packet)
            return
        there = job.above.setdefault(packet, set())
        there.add(rack)
        if len(there) == job.racks:
            self._finish(place, packet, self._through(job.data.switches[-1], job))

    def _through(self, switch: int, job: _Job) -> float:
        """Seconds until a switch of limited speed has completed a sum."""
        speed = self.instance.switches[switch].aggregation_bytes_per_s
        if speed is None:
            return 0.0
        self.switch_free_s[switch] = max(self.now, self.switch_free_s[switch]) + self._payload(job) / speed
        return self.switch_free_s[switch] - self.now

    def _finish(self, place: int, packet: int, wait_s: float) -> None:
        job = self.jobs[place]
        job.done.add(packet)
        job.held_s += self.now - job.since.pop(packet, self.now) + (job.hop_s if job.data.links else 0.0)
        for rack in range(job.racks):
            for worker in range(self.options.workers):
                self._answer(place, rack, worker, packet, wait_s)

    def _answer(self, place: int, rack: int, worker: int, packet: int, wait_s: float = 0.0) -> None:
        job = self.jobs[place]
        for _ in range(2 if job.data.links else 1):
            way = self._way_s(job.hop_s)
            if way is None:
                return
            wait_s += way
        self._push(wait_s, "result", (place, rack, worker, packet))

    def _result(self, place: int, rack: int, worker: int, packet: int) -> None:
        job = self.jobs[place]
        if self._is_over(job, packet):
            return
        got = job.got.setdefault(packet, set())
        if (rack, worker) in got:
            return
        got.add((rack, worker))
        self._send(place, rack, worker, packet + job.window)
        if len(got) == job.racks * self.options.workers:
            self._forget(job, packet)

    @staticmethod
    def _is_over(job: _Job, packet: int) -> bool:
        return packet // job.window < job.over[packet % job.window]

    def _forget(self, job: _Job, packet: int) -> None:
        """Everybody has the sum, and nobody asks for it any more."""
        slot = packet % job.window
        job.over[slot] += 1
        if self.now >= self.end_s / 4:
            job.ended[slot].append(self.now)
        del job.got[packet]
        job.above.pop(packet, None)
        for rack in range(job.racks):
            job.arrived.pop((rack, packet), None)
            job.summed.discard((rack, packet))

    def _rate(self, job: _Job) -> float:
        """Bytes per second of all slots, of each between its first and its last sum."""
        if min(map(len, job.ended)) < 2:
            return math.nan
        return self._payload(job) * sum((len(ended) - 1) / (ended[-1] - ended[0]) for ended in job.ended)

    def _held(self) -> float:
        given = sum(job.window for job in self.jobs.values())
        return sum(job.held_s for job in self.jobs.values()) / (given * self.end_s) if given else 0.0
