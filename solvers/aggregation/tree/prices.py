"""Several jobs in a tree that compete for memory: prices of memory, and a dynamic program for each job."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ddlopt.models.aggregation.tree.bounds import tree_bound
from ddlopt.models.aggregation.tree.instance import AggregatingSwitches, TreeInstance, refusal
from ddlopt.models.aggregation.tree.tables import Floats, TreeTables, budgets, coupled, tables
from ddlopt.models.errors import NoSolutionError, NotApplicableError
from ddlopt.models.tolerances import ROUNDING
from ddlopt.solvers.aggregation.tree.greedy import Gains, all_pairs
from ddlopt.solvers.aggregation.tree.soar import job_program
from ddlopt.solvers.certify import MethodOutput
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.heuristic import CertifiedMethod, Clock

_PATIENCE = 8
"""Steps without a better bound before they become half as long."""
# A step of this part of the first ones does not move prices any more.
_SHORTEST = 2e-3


@dataclass(frozen=True)
class TreePrices(CertifiedMethod, uses=()):
    r"""Lagrangian decomposition of utilization into jobs.

    Memory of the switches where jobs compete, the budget and the budgets of jobs get prices
    :math:`\pi_v, \lambda, \mu_j \ge 0`, so that a switch v that aggregates for job j, which needs :math:`M_j`, costs
    :math:`M_j \pi_v + \lambda + \mu_j`. Each job by itself is then the dynamic program of
    :class:`~ddlopt.solvers.aggregation.tree.soar.Soar` without a budget, in :math:`O(n h)`; the sum of their optima
    less what memory and budgets are worth is a bound at any prices. Prices follow subgradients with Polyak's steps.

    Answers: what the jobs want is taken greedily by gain as far as memory and budgets allow, then all else that fits;
    and each job in turn is placed anew by the dynamic program in the memory and budget that the others leave, until
    none gains.

    Parameters
    ----------
    steps : int
        Of the prices, at most.
    """

    steps: int = 400

    name: ClassVar[str] = "tree-prices"
    covers: ClassVar[type[TreeInstance]] = TreeInstance
    kernels: ClassVar[tuple[str, ...]] = ("ddlopt.solvers.aggregation.tree.kernels.dynamic_program",)

    def refuses(self, instance: Any) -> str | None:
        """Congestion."""
        return refusal(instance, "utilization")

    def find(self, instance: TreeInstance, limits: Limits, seed: int, clock: Clock, start: Any) -> MethodOutput:
        """The best answer found, and the best bound."""
        figures = tables(instance)
        best = Gains(instance, figures).fill(all_pairs(figures), clock)
        best = _placed_anew(instance, figures, best, clock)
        value, bound = best.value, tree_bound(instance)
        clock.report(value, bound)
        prices = _Prices(instance, figures)
        length, waited, steps = 1.0, 0, 0
        while steps < self.steps and length > _SHORTEST and value - bound > clock.gap * value and not clock.expired:
            steps += 1
            try:
                worth, wanted = prices.answer(clock)
            except NoSolutionError:
                break
            # Less than a millionth of what is left to prove is no progress.
            if worth > bound + 1e-6 * (value - bound):
                bound, waited = worth, 0
            else:
                waited += 1
            if waited in (0, _PATIENCE):
                pairs = [(job, node) for job, each in enumerate(wanted) for node in np.flatnonzero(each).tolist()]
                filling = Gains(instance, figures).fill(pairs, clock).fill(all_pairs(figures), clock)
                filling = _placed_anew(instance, figures, filling, clock)
                if filling.value < value:
                    best, value = filling, filling.value
                clock.report(value, bound)
            if waited == _PATIENCE:
                length, waited = length / 2, 0
            if not prices.move(wanted, length * (value - worth)):
                break
        return MethodOutput(best.answer(), {"steps": float(steps)}, bound=bound)


class _Prices:
    """Prices, what each job wants at them, and the bound that they prove."""

    def __init__(self, instance: TreeInstance, figures: TreeTables) -> None:
        jobs, n = len(instance.jobs), instance.size
        self._switches = coupled(instance, figures.useful)
        self._room = np.array([float(instance.room(node) or 0) for node in self._switches])
        self._needs = np.array([float(job.memory) for job in instance.jobs])
        total, each = budgets(instance, figures.useful)
        self._total, self._each = float(total), np.array(each, dtype=np.float64)
        self._memory, self._all, self._job = np.zeros(len(self._switches)), 0.0, np.zeros(jobs)
        self._programs = [job_program(instance, figures, job, figures.useful[job], None) for job in range(jobs)]
        self._shape = (jobs, n)

    def answer(self, clock: Clock) -> tuple[float, Floats]:
        """The bound, and 1 for each pair of job and switch that is wanted, shape (jobs, n).

        Raises
        ------
        NoSolutionError
            If the time is up before.
        """
        wanted, worth = np.zeros(self._shape), 0.0
        for job, program in enumerate(self._programs):
            price = np.full(self._shape[1], self._all + self._job[job])
            price[self._switches] += self._needs[job] * self._memory
            worth += float(program.run(price, clock)[0])
            wanted[job, program.nodes(0)] = 1.0
        taken = self._memory @ self._room + self._all * self._total + self._job @ self._each
        return (worth - float(taken)) - ROUNDING * (worth + float(taken)), wanted

    def move(self, wanted: Floats, distance: float) -> bool:
        """A subgradient step towards a bound larger by ``distance``; False if there is no direction."""
        memory = (self._needs @ wanted)[self._switches] - self._room
        total = wanted.sum() - self._total
        each = wanted.sum(axis=1) - self._each
        memory[(memory < 0) & (self._memory <= 0)] = 0.0
        each[(each < 0) & (self._job <= 0)] = 0.0
        total = 0.0 if total < 0 and self._all <= 0 else total
        norm = float(memory @ memory + total * total + each @ each)
        if norm == 0:
            return False
        step = distance / norm
        self._memory = np.maximum(0.0, self._memory + step * memory)
        self._all = max(0.0, self._all + step * total)
        self._job = np.maximum(0.0, self._job + step * each)
        return True


def _placed_anew(instance: TreeInstance, figures: TreeTables, filling: Gains, clock: Clock) -> Gains:
    """Jobs placed anew in what the others leave, until none gains."""
    needs = np.array([job.memory for job in instance.jobs])
    total, each = budgets(instance, figures.useful)
    value, since, job = filling.value, 0, 0
    while since < len(instance.jobs) and not clock.expired:
        taken = np.zeros((len(instance.jobs), instance.size), dtype=np.int64)
        for other, nodes in enumerate(filling.chosen):
            if other != job:
                taken[other, list(nodes)] = 1
        useful = figures.useful[job]
        if instance.memory is not None:
            useful = useful & (np.array(instance.memory) - needs @ taken >= needs[job])
        try:
            program = job_program(instance, figures, job, useful, min(each[job], total - int(taken.sum())))
            program.run(np.zeros(instance.size), clock)
        except (NoSolutionError, NotApplicableError):
            break
        switches = list(filling.answer().switches)
        switches[job] = tuple(program.nodes(each[job]).tolist())
        answer = AggregatingSwitches(instance=instance.name, switches=tuple(switches))
        changed = Gains(instance, figures, answer)
        since += 1
        if changed.value < value * (1 - ROUNDING):
            filling, value, since = changed, changed.value, 0
        job = (job + 1) % len(instance.jobs)
    return filling
