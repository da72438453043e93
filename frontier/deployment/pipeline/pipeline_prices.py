"""The method that bounds pipelines of wide graphs by prices of their layers."""

import dataclasses
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ddlopt.frontier.deployment.pipeline.price_master import Master
from ddlopt.frontier.deployment.pipeline.prices import Prices, Stage
from ddlopt.models.deployment.pipeline.bounds import pipeline_bound
from ddlopt.models.deployment.pipeline.evaluate import evaluate_pipeline
from ddlopt.models.deployment.pipeline.instance import PipelineInstance
from ddlopt.models.tolerances import IMPROVEMENT_TOL, ROUNDING
from ddlopt.solvers.certify import MethodOutput
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.deployment.pipeline.near_ideals import NearIdeals
from ddlopt.solvers.heuristic import CertifiedMethod, Clock


@dataclass(frozen=True)
class Effort:
    """What a search spends, and why so much."""

    fine: tuple[int, ...] = (20, 60)
    """What a layer's price is on average, in whole numbers; the larger one where the smaller leads no further."""
    first_step: float = 1.01
    """By how much the next time to exclude is above the last one."""
    near: float = 2e-4
    """How near the limits of a bisection come: less is a matter of the next prices."""
    radius: float = 0.3
    """How far prices are moved at first, of one on average."""
    least: float = 0.005
    """How little they are moved before the search for better ones ends."""
    devices: int = 512
    """Beyond, sequences of stages take long to count."""
    beyond: float = 4.0
    """Up to which multiple of the bound without a search times are excluded where no plan is known."""


_EFFORT = Effort()


@dataclass(frozen=True)
class PipelinePrices(CertifiedMethod, uses=("seed", "start")):
    """Plans by the search among near ideals, and a bound by prices of layers, for graphs of any width.

    The bound is that of :class:`~ddlopt.frontier.deployment.pipeline.prices.Prices`. Prices begin with the work of the
    layers. Those that exclude a time are kept, and a later time is asked about; where none is, the stages of
    the dearest sequence become rows of a linear program, which says what prices to try next, not too far from the best.

    Parameters
    ----------
    rounds : int
        Prices that are tried.
    share : float
        Of the time, for the search.
    """

    rounds: int = 10_000
    share: float = 0.5

    name: ClassVar[str] = "pipeline-prices"
    covers: ClassVar[type[PipelineInstance]] = PipelineInstance
    kernels: ClassVar[tuple[str, ...]] = (
        *NearIdeals.kernels,
        "ddlopt.frontier.deployment.pipeline.price_kernels",
    )

    def refuses(self, instance: Any) -> str | None:
        """Too many devices."""
        if instance.devices > _EFFORT.devices:
            return f"there are {instance.devices} devices, and it counts up to {_EFFORT.devices}"
        return None

    def find(self, instance: PipelineInstance, limits: Limits, seed: int, clock: Clock, start: Any) -> MethodOutput:
        """A plan, and a bound; the plan that was given where it is the better one."""
        low_s = pipeline_bound(instance)
        part = dataclasses.replace(limits, time_s=None if limits.time_s is None else self.share * limits.time_s)
        searched = NearIdeals().solve(
            instance, part, seed, lambda point: clock.report(point.incumbent, point.bound), start
        )
        known = [(searched.objective, searched.solution), (_value(instance, start), start)]
        high_s, plan = min(((value, each) for value, each in known if value is not None), default=(None, None))
        details = dict(searched.details)
        if high_s is None:
            high_s = _EFFORT.beyond * low_s
        if high_s > low_s:
            found = Ascent(instance, low_s, high_s, clock)
            details["prices"] = float(found.climb(self.rounds))
            low_s = found.low_s * (1 - ROUNDING)
        return MethodOutput(plan, details, bound=low_s)


def _value(instance: PipelineInstance, start: Any) -> float | None:
    checked = None if start is None else evaluate_pipeline(instance, start)
    return float(checked.objective) if checked and checked.feasible and checked.objective is not None else None


class Ascent:
    """The search for prices that exclude later and later times.

    Parameters
    ----------
    instance : PipelineInstance
    low_s, high_s : float
        What is known of the least time.
    clock : Clock
    """

    def __init__(self, instance: PipelineInstance, low_s: float, high_s: float, clock: Clock) -> None:
        self.low_s, self.high_s, self.clock = low_s, high_s, clock
        self.size = instance.size
        self.asked_s = low_s
        self.prices = Prices(instance, high_s)
        self.master = Master(instance.size, self.prices.fits)
        work = [
            min(menu.tensor * option.time_s for menu in layer.menus for option in menu.options)
            for layer in instance.layers
        ]
        self.best = np.array(work) * (self.size / sum(work)) if sum(work) else np.ones(self.size)

    def climb(self, rounds: int) -> int:
        """Try prices until nothing is left to exclude, they move no more, or the time is up; how many were tried."""
        tried, now, radius, least = 0, self.best, _EFFORT.radius, np.inf
        fine = 0
        while tried < rounds and self.asked_s < self.high_s and not self.clock.expired:
            tried += 1
            self.prices.begin(np.round(now * (_EFFORT.fine[fine] * self.size / now.sum())).astype(np.int64))
            before = self.low_s
            stages = self._exclude()
            if stages is None:
                break
            sets = self.prices.sets(stages, self.asked_s)
            worth = sum(self.prices.price[sets[stage]].sum() for stage in stages) / self.prices.price.sum()
            if self.low_s > before or worth < least * (1 - IMPROVEMENT_TOL):
                self.best, least, radius = now, worth, min(1.0, 1.5 * radius)
            else:
                radius *= 0.85
            if radius < _EFFORT.least:
                if fine == len(_EFFORT.fine) - 1:
                    break
                fine, least, radius, now = fine + 1, np.inf, _EFFORT.radius / 4, self.best
                continue
            self.master.learn(stages, sets)
            moved = self.master.prices(self.best, radius)
            if moved is None:
                break
            now, _ = moved
        return tried

    def _exclude(self) -> list[Stage] | None:
        """Exclude what these prices do; the stages that are worth all layers in the next time to ask about.

        None if everything is excluded, or the time is up.
        """
        before, step, stages, open_s = self.low_s, _EFFORT.first_step, None, self.high_s
        while (told := self.prices.ask(self.asked_s, self._stop)) is not None:
            if told.excluded:
                self.low_s = self.asked_s
                self.clock.report(None, self.low_s)
                if self.low_s >= self.high_s:
                    return None
            else:
                stages, open_s = told.stages, self.asked_s
            if stages is None:
                self.asked_s = min(self.high_s, self.low_s * step)
                step = 1 + 2 * (step - 1)
            elif self.low_s == before or open_s - self.low_s <= _EFFORT.near * open_s:
                self.asked_s = open_s
                return stages
            else:
                self.asked_s = (self.low_s + open_s) / 2
        return None

    def _stop(self) -> bool:
        return self.clock.expired
