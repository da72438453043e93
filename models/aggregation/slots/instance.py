"""Memory of aggregating switches, in slots, and rates, shared among training jobs."""

import math
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from ddlopt.models.aggregation.family import AggregationAnswer, AggregationProblem
from ddlopt.models.aggregation.slots.delivery import Delivery, wait_exact, wait_s
from ddlopt.models.contracts import Part, without
from ddlopt.models.tolerances import ROUNDING

SlotGoal = Literal["total", "slowest"]


class SlotSwitch(Part):
    """A switch that adds gradients up.

    Parameters
    ----------
    name : str
    slots : int
        Aggregators; each holds one packet's sum until all workers have sent theirs.
    payload_bytes : float
        Of a packet, which one slot holds.
    aggregation_bytes_per_s : float, optional
        Sums that it completes in a second at most, of all jobs together; without, this is never in the way.
    """

    name: str
    slots: int = Field(ge=1)
    payload_bytes: float = Field(gt=0)
    aggregation_bytes_per_s: float | None = Field(default=None, gt=0)


class SlotLink(Part):
    """One direction of a cable that jobs share."""

    name: str
    bandwidth_bytes_per_s: float = Field(gt=0)


class Bucket(Part):
    """Gradients that are sent one after the other, as soon as they are ready.

    Parameters
    ----------
    size_bytes : float
    ready_s : float
        After the iteration has begun; the backward pass goes on behind it.
    """

    size_bytes: float = Field(gt=0)
    ready_s: float = Field(ge=0)


class Stay(Part):
    """When a job is in the cluster: from its beginning on, and no longer at its end.

    Parameters
    ----------
    begins_s, ends_s : float
        On a clock that all jobs share.
    """

    begins_s: float = Field(ge=0)
    ends_s: float = Field(gt=0)

    @model_validator(mode="after")
    def _is_some_time(self) -> Self:
        if self.ends_s <= self.begins_s:
            raise ValueError(f"ends_s is {self.ends_s:.10g}, not after begins_s, {self.begins_s:.10g}")
        return self


class SlotJob(Part):
    """A training job whose workers all stream their gradients at one rate.

    Parameters
    ----------
    name : str
    weight : float
        Importance.
    iterations : float
        That are left.
    compute_s : float
        Of an iteration; without ``buckets`` the gradient is sent after it.
    gradient_bytes : float
        What each worker sends in an iteration.
    nic_bytes_per_s : float
        The rate at most.
    rtt_s : float
        From when a slot is taken until it is free for the next packet, were all packets on time.
    switches : tuple of int
        That aggregate for the job.
    links : tuple of int
        That its messages cross; a link named several times carries as many messages.
    fallback_bytes_per_s : float, optional
        Rate at which a parameter server adds the gradients up, over other routes, if the job is given no slots.
    delivery : Delivery, optional
        Packets that are late or lost; without, all are on time.
    buckets : tuple of Bucket
        Of which the gradient consists, in the order in which they are sent, none ready before the one ahead of it. The
        first ones are sent while the backward pass goes on.
    stay : Stay, optional
        When it is there. It has the same slots and the same rate all that time, and none at any other; without, it is
        always there.
    """

    name: str
    weight: float = Field(default=1.0, gt=0)
    iterations: float = Field(default=1.0, gt=0)
    compute_s: float = Field(default=0.0, ge=0)
    gradient_bytes: float = Field(gt=0)
    nic_bytes_per_s: float = Field(gt=0)
    rtt_s: float = Field(gt=0)
    switches: tuple[int, ...] = ()
    links: tuple[int, ...] = ()
    fallback_bytes_per_s: float | None = Field(default=None, gt=0)
    delivery: Delivery | None = None
    buckets: tuple[Bucket, ...] = ()
    stay: Stay | None = None

    @model_validator(mode="after")
    def _buckets_are_the_gradient(self) -> Self:
        if not self.buckets:
            return self
        size = math.fsum(bucket.size_bytes for bucket in self.buckets)
        if abs(size - self.gradient_bytes) > ROUNDING * self.gradient_bytes:
            raise ValueError(
                f"'{self.name}': buckets have {size:.10g} bytes together, but gradient_bytes is "
                f"{self.gradient_bytes:.10g}"
            )
        ready = [bucket.ready_s for bucket in self.buckets]
        for place, (before, after) in enumerate(zip(ready, [*ready[1:], self.compute_s], strict=True)):
            if before > after:
                last = place == len(ready) - 1
                than = f"compute_s, {after:.10g}" if last else f"buckets[{place + 1}], which is sent behind it"
                raise ValueError(f"'{self.name}': buckets[{place}] is ready at {before:.10g} s, later than {than}")
        return self

    @model_serializer(mode="wrap")
    def _data(self, data_of: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return without(self, data_of(self), "delivery", "buckets", "stay")

    def is_there(self, time_s: float) -> bool:
        """Whether the job is in the cluster at that time; figures as they are given, so that nothing is rounded."""
        return self.stay is None or self.stay.begins_s <= time_s < self.stay.ends_s

    def hold_s(self, number: int) -> float:
        """Expected seconds for which a packet holds a slot, at the switch of that number in ``switches``."""
        return self.rtt_s + (wait_s(self.delivery, self.delivery.workers[number]) if self.delivery else 0.0)

    def hold_exact(self, number: int, up: bool) -> Fraction:
        """The same without rounding but that of :func:`~ddlopt.models.aggregation.slots.delivery.wait_exact`."""
        wait = wait_exact(self.delivery, self.delivery.workers[number], up) if self.delivery else 0
        return Fraction(self.rtt_s) + wait

    @cached_property
    def left_to_send(self) -> tuple[tuple[float, Fraction], ...]:
        """When each bucket is ready, and the bytes from it on; without buckets the whole gradient after computation."""
        if not self.buckets:
            return ((self.compute_s, Fraction(self.gradient_bytes)),)
        behind = accumulate(Fraction(bucket.size_bytes) for bucket in reversed(self.buckets))
        return tuple(zip((bucket.ready_s for bucket in self.buckets), reversed(list(behind)), strict=True))

    @property
    def sent_once(self) -> Fraction:
        """Part of what the network card sends that is not lost."""
        return 1 - Fraction(self.delivery.loss) if self.delivery else Fraction(1)


class SlotsInstance(AggregationProblem):
    r"""How many slots of each switch every job has, and how fast it sends.

    What job j has in flight, :math:`\lambda_j \cdot \mathrm{RTT}_j` bytes at rate :math:`\lambda_j`, must be in slots
    at every switch s that aggregates for it. With :math:`x_{js}` slots of payload :math:`p_s`, :math:`M_s` of which the
    switch has,

    .. math::
        \lambda_j \le \frac{p_s}{\mathrm{RTT}_j}\, x_{js}, \qquad \sum_j x_{js} \le M_s, \qquad
        \sum_j m_{jl} \lambda_j \le b_l, \qquad \sum_{j : s \in S_j} \lambda_j \le r_s, \qquad
        0 < \lambda_j \le n_j,

    for links l of bandwidth :math:`b_l` that :math:`m_{jl}` messages of job j cross, and aggregation rates
    :math:`r_s`. A job that falls back on its parameter server has no slots, uses none of the links, and its rate is
    :math:`f_j`. With :math:`W_j` the product of weight and iterations, minimised is the sum over jobs of
    :math:`W_j (c_j + g_j / \lambda_j)` (goal ``total``) or the largest of these (``slowest``): compute and
    communication follow each other.

    A job with ``buckets`` sends while it computes: bucket k is ready at :math:`r_{jk}`, and :math:`g_{jk}` bytes are
    those from it on. Its time is :math:`\max\{c_j, \max_k r_{jk} + g_{jk} / \lambda_j\}` in place of
    :math:`c_j + g_j / \lambda_j`, which is convex in the rate, too.

    Where packets are late or lost (``delivery``), a slot is held for :math:`H_{js} = \mathrm{RTT}_j + \mathbb{E}
    \max_{i \le n_{js}} X_{ji}` seconds in place of :math:`\mathrm{RTT}_j`, until the last of the :math:`n_{js}`
    workers below the switch is heard (:mod:`~ddlopt.models.aggregation.slots.delivery`); a network card that loses a
    part p of its packets sends at most :math:`(1 - p)\, n_j` that count. By Little's law no plan with fewer slots
    sends as fast on average.

    Where jobs come and go (``stay``), sums over jobs are sums over those that are there at the same time, whenever that
    is: as the number of slots of a job cannot be changed while packets are under way, it keeps what it was given.

    Without fallback and with slots that need not be whole, :math:`x_{js} = \lambda_j \mathrm{RTT}_j / p_s`: the
    constraints are linear in the rates, and both goals convex.

    Parameters
    ----------
    switches : tuple of SlotSwitch
        With their memory.
    links : tuple of SlotLink
        That jobs share.
    jobs : tuple of SlotJob
        In the order in which they came.
    goal : {"total", "slowest"}
        The sum of weighted times of iterations, or the largest of them.
    whole : bool
        Whether slots are given out whole. Otherwise a share of a slot is a share of its time.

    References
    ----------
    Slots and what is in flight: A. Sapio et al., "Scaling distributed machine learning with in-network aggregation"
    (SwitchML), NSDI 2021; C. Lao et al., "ATP: In-network aggregation for multi-tenant learning", NSDI 2021.
    Completion time as a function of switch memory: INAlloc, INFOCOM 2023. Links, whole slots, fallback are ours.
    """

    kind: ClassVar[str] = "set of jobs that share switches"

    problem: Literal["slots"] = "slots"
    switches: tuple[SlotSwitch, ...] = Field(min_length=1)
    links: tuple[SlotLink, ...] = ()
    jobs: tuple[SlotJob, ...] = Field(min_length=1)
    goal: SlotGoal = "total"
    whole: bool = False

    @model_validator(mode="after")
    def _check(self) -> Self:
        for place, job in enumerate(self.jobs):
            where = f"jobs[{place}] ('{job.name}')"
            for field, count in (("switches", len(self.switches)), ("links", len(self.links))):
                for each in getattr(job, field):
                    if not 0 <= each < count:
                        raise ValueError(f"{where} names {field}[{each}], but there are {count} {field}")
            if job.delivery and len(job.delivery.workers) != len(job.switches):
                raise ValueError(
                    f"{where} has {len(job.switches)} switches, but delivery.workers has "
                    f"{len(job.delivery.workers)} entries; say for each for how many workers its slots wait"
                )
            if len(set(job.switches)) < len(job.switches):
                twice = next(each for each in job.switches if job.switches.count(each) > 1)
                raise ValueError(f"{where} names switches[{twice}] twice; each switch aggregates once for a job")
        for place, switch in enumerate(self.switches):
            needed = max(self.jobs_without_fallback(place, time_s) for time_s in self.begins_s)
            if self.whole and needed > switch.slots:
                raise ValueError(
                    f"switches[{place}] ('{switch.name}') has {switch.slots} slots, but {needed} jobs without "
                    "fallback_bytes_per_s need a whole one there; give it more slots, or jobs a fallback"
                )
        return self

    @property
    def size(self) -> int:
        """Number of jobs."""
        return len(self.jobs)

    @cached_property
    def begins_s(self) -> tuple[float, ...]:
        """Times at which jobs come: nowhere between two of them do as many share anything as at the earlier one."""
        return tuple(sorted({job.stay.begins_s for job in self.jobs if job.stay})) or (0.0,)

    def jobs_without_fallback(self, switch: int, time_s: float) -> int:
        """How many jobs that are there at a time cannot do without slots of a switch."""
        own = (job for job in self.jobs if job.fallback_bytes_per_s is None and switch in job.switches)
        return sum(job.is_there(time_s) for job in own)


class SlotPlan(AggregationAnswer):
    """Slots and rate of every job.

    Parameters
    ----------
    slots : tuple of tuples of float
        Of each job, at the switches that aggregate for it, in their order in the job.
    rates_bytes_per_s : tuple of float or None
        None for a job that falls back on its parameter server.
    """

    kind: ClassVar[str] = "slot plan"

    problem: Literal["slots"] = "slots"
    slots: tuple[tuple[float, ...], ...]
    rates_bytes_per_s: tuple[float | None, ...]
