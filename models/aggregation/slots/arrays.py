"""An instance of ``slots`` as arrays: rates of jobs under rows that are linear in them."""

from functools import cached_property

import numpy as np
import numpy.typing as npt

from ddlopt.models.aggregation.slots.instance import SlotPlan, SlotsInstance
from ddlopt.models.tolerances import ROUNDING

Floats = npt.NDArray[np.float64]


class SlotArrays:
    """Figures of an instance; n jobs, k rows: the memory of every switch first, then links, then aggregation rates.

    Attributes
    ----------
    weight, compute_s, gradient_bytes : (n,) arrays
        :attr:`weight` is that of the objective: importance times iterations.
    fallback : (n,) array
        Rate of the parameter server, 0 where there is none.
    rows : (k, n) array
        What a byte per second of each job takes of each row, where slots need not be whole.
    limits : (k,) array
    per_slot : (switches, n) array
        Rate that a slot gives; 0 where the switch does not aggregate for the job.
    cap : (n,) array
        The largest rate that the network card and each row by itself allow.
    """

    def __init__(self, instance: SlotsInstance) -> None:
        self.instance = instance
        jobs = instance.jobs
        self.weight: Floats = np.array([job.weight * job.iterations for job in jobs])
        self.compute_s: Floats = np.array([job.compute_s for job in jobs])
        self.gradient_bytes: Floats = np.array([job.gradient_bytes for job in jobs])
        self.fallback: Floats = np.array([job.fallback_bytes_per_s or 0.0 for job in jobs])
        self.per_slot: Floats = np.zeros((len(instance.switches), len(jobs)))
        links = np.zeros((len(instance.links), len(jobs)))
        for j, job in enumerate(jobs):
            for number, s in enumerate(job.switches):
                self.per_slot[s, j] = instance.switches[s].payload_bytes / job.hold_s(number)
            for link in job.links:
                links[link, j] += 1.0
        self.slots: Floats = np.array([float(switch.slots) for switch in instance.switches])
        self.memory: Floats = np.divide(1.0, self.per_slot, out=np.zeros_like(self.per_slot), where=self.per_slot > 0)
        limited = [s for s, switch in enumerate(instance.switches) if switch.aggregation_bytes_per_s is not None]
        self.rows: Floats = np.vstack([self.memory, links, (self.per_slot[limited] > 0).astype(float)])
        bandwidths = [link.bandwidth_bytes_per_s for link in instance.links]
        rates = [instance.switches[s].aggregation_bytes_per_s or 0.0 for s in limited]
        self.limits: Floats = np.concatenate([self.slots, bandwidths, rates])
        self.row_names = (
            *(f"memory of {switch.name}" for switch in instance.switches),
            *(f"link {link.name}" for link in instance.links),
            *(f"aggregation rate of {instance.switches[s].name}" for s in limited),
        )
        self.cap: Floats = self._caps()

    def _caps(self) -> Floats:
        nic = np.array([job.nic_bytes_per_s * float(job.sent_once) for job in self.instance.jobs])
        limits = np.broadcast_to(self.limits[:, None], self.rows.shape).copy()
        if self.instance.whole:
            own = (self.per_slot > 0) & (self.fallback == 0)
            limits[: len(self.slots)] -= own.sum(axis=1)[:, None] - own
        each = np.divide(limits, self.rows, out=np.full(self.rows.shape, np.inf), where=self.rows > 0)
        found: Floats = np.minimum(nic, each.min(axis=0))
        return found

    @property
    def count(self) -> int:
        """Number of jobs."""
        return len(self.weight)

    @cached_property
    def cost(self) -> Floats:
        """(n,) weighted gradient bytes: over the rate, the weighted seconds of communication."""
        return self.weight * self.gradient_bytes

    @cached_property
    def compute_total_s(self) -> float:
        """Weighted seconds of computation, which nobody can change."""
        return float(self.weight @ self.compute_s)

    def slots_for(self, rates: Floats) -> Floats:
        """(switches, n) slots that (n,) rates need at each switch; whole ones where the instance says so."""
        needed = self.memory * rates
        if not self.instance.whole:
            return needed
        # A rate that fills its slots exactly needs no further one.
        return np.ceil(needed * (1 - ROUNDING))

    def plan(self, rates: Floats, aggregated: npt.NDArray[np.bool_], slots: Floats | None = None) -> SlotPlan:
        """The answer with (n,) rates of jobs that are ``aggregated``; the others fall back.

        Slots are as few as do, or those given. Rates are lowered by ``ROUNDING``, so that no sum passes its limit.
        """
        lowered = rates * (1 - 4 * ROUNDING)
        given = self.slots_for(rates) * (1.0 if self.instance.whole else 1 - 2 * ROUNDING) if slots is None else slots
        jobs = self.instance.jobs
        return SlotPlan(
            instance=self.instance.name,
            slots=tuple(
                tuple(float(given[s, j]) if aggregated[j] else 0.0 for s in job.switches) for j, job in enumerate(jobs)
            ),
            rates_bytes_per_s=tuple(float(lowered[j]) if aggregated[j] else None for j in range(self.count)),
        )

    def objective(self, rates: Floats, aggregated: npt.NDArray[np.bool_]) -> float:
        """As ``evaluate`` has it, up to rounding."""
        with np.errstate(divide="ignore"):
            times = self.weight * (self.compute_s + self.gradient_bytes / np.where(aggregated, rates, self.fallback))
        return float(times.sum() if self.instance.goal == "total" else times.max())
