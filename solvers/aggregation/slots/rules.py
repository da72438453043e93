"""Rules by which switches share their slots among jobs, each switch by itself."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from ddlopt.models.aggregation.slots.arrays import Floats, SlotArrays
from ddlopt.models.aggregation.slots.instance import SlotPlan, SlotsInstance
from ddlopt.models.tolerances import ROUNDING
from ddlopt.solvers.aggregation.slots.rates import Flags, held, max_min_rates, other_rows, whole_shares
from ddlopt.solvers.heuristic import Answer, Clock, Heuristic
from ddlopt.solvers.names import spelled

RuleName = Literal["equal", "gradient", "demand", "square-root", "max-min", "first-come"]


@dataclass(frozen=True)
class SlotRule(Heuristic, uses=()):
    r"""Slots by a rule; then max-min fair rates on links; then fallback for jobs that it makes faster.

    *equal*: every job of a switch gets as many slots (the static partition of SwitchML); what a job cannot use is lost.
    *gradient*, *demand*, *square-root*: in proportion to gradient bytes, to the slots that the job could fill at most,
    or to :math:`\sqrt{W_j g_j \mathrm{RTT}_j / p_s}`, which would be best were the switch all that is shared; what a
    job cannot use, the others get. *max-min*: all rates grow together. *first-come*: in the order in which jobs come
    everybody takes what it can fill, as far as there is any (the dynamic sharing of ATP, best effort); a slot is left
    for each later job that has no fallback. Where jobs come and go, each of them has the least that it would have at
    any time while it is there. Where packets are late or lost, the expected holding time stands for RTT.

    Parameters
    ----------
    rule : {"equal", "gradient", "demand", "square-root", "max-min", "first-come"}
    """

    rule: RuleName = "equal"

    covers: ClassVar[type[Any]] = SlotsInstance

    @property
    def name(self) -> str:
        """``slot-rule``, with the rule."""
        return spelled("slot-rule", self, "rule")

    def answer(self, instance: SlotsInstance, seed: int, clock: Clock, start: SlotPlan | None) -> Answer[SlotPlan]:
        """See :class:`~ddlopt.solvers.heuristic.Heuristic`."""
        arrays = SlotArrays(instance)
        aggregated = _admitted(arrays)
        slots = self._slots(arrays, aggregated)
        rows, limits = other_rows(arrays)
        rates = max_min_rates(rows, limits, np.where(aggregated, held(arrays, slots), 0.0))
        aggregated = aggregated & (rates > arrays.fallback)
        return arrays.plan(rates, aggregated), {}

    def _slots(self, arrays: SlotArrays, aggregated: Flags) -> Floats:
        if self.rule == "first-come":
            return _first_come(arrays, aggregated)
        found = np.zeros_like(arrays.per_slot)
        fair = arrays.memory * max_min_rates(arrays.rows, arrays.limits, np.where(aggregated, arrays.cap, 0.0))
        for s, total in enumerate(arrays.slots.tolist()):
            own = np.flatnonzero((arrays.per_slot[s] > 0) & aggregated)
            if not len(own):
                continue
            demand = arrays.cap[own] * arrays.memory[s, own]
            match self.rule:
                case "equal":
                    shares = np.full(len(own), total / len(own))
                case "max-min":
                    shares = fair[s, own]
                case "gradient":
                    shares = _shared(arrays.gradient_bytes[own], demand, total)
                case "demand":
                    shares = _shared(demand, demand, total)
                case _:
                    shares = _shared(np.sqrt(arrays.cost[own] * arrays.memory[s, own]), demand, total)
            found[s, own] = whole_shares(shares, total) if arrays.instance.whole else shares
        return found


def _admitted(arrays: SlotArrays) -> Flags:
    """Jobs that get slots: of whole ones everybody needs one, so the last that may fall back do where there are few."""
    admitted = np.ones(arrays.count, dtype=bool)
    if arrays.instance.whole:
        for s, total in enumerate(arrays.slots.tolist()):
            for j in reversed(np.flatnonzero((arrays.per_slot[s] > 0) & (arrays.fallback > 0)).tolist()):
                if (admitted & (arrays.per_slot[s] > 0)).sum() > total:
                    admitted[j] = False
    return admitted


def _shared(weights: Floats, demand: Floats, total: float) -> Floats:
    """Shares in proportion to weights, none above its demand."""
    if demand.sum() <= total:
        return demand
    order = np.argsort(demand / weights)
    ended, ahead = np.cumsum(demand[order]), weights[order][::-1].cumsum()[::-1]
    level = (total - np.concatenate([[0.0], ended[:-1]])) / ahead
    stop = int(np.argmax(level <= demand[order] / weights[order]))
    found: Floats = np.minimum(demand, weights * level[stop])
    return found


def _first_come(arrays: SlotArrays, aggregated: Flags) -> Floats:
    found = np.zeros_like(arrays.per_slot)
    left = arrays.slots.copy()
    users = (arrays.per_slot > 0) & (aggregated & (arrays.fallback == 0))
    kept = np.minimum(1.0, arrays.slots / np.maximum(users.sum(axis=1), 1))
    reserved = kept * users.sum(axis=1)
    jobs = arrays.instance.jobs
    begins_s = np.array([job.stay.begins_s if job.stay else 0.0 for job in jobs])
    for j in [j for j in np.argsort(begins_s, kind="stable").tolist() if aggregated[j]]:
        own = arrays.per_slot[:, j] > 0
        reserved -= kept * users[:, j]
        free = np.maximum(0.0, left - reserved)
        rate = min(float(arrays.cap[j]), float((free[own] * arrays.per_slot[own, j]).min(initial=np.inf)))
        need = arrays.memory[own, j] * rate
        found[own, j] = np.minimum(np.ceil(need * (1 - ROUNDING)) if arrays.instance.whole else need, free[own])
        left -= found[:, j]
    return found
