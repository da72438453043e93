"""Sufficient factor broadcasting without budgets: a linear program."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ddlopt.models.compression import CompressionProblem, SfbInstance, SfbSelection
from ddlopt.models.compression.sfb.formulations.sfb_milp import SfbMilp, unit_s
from ddlopt.models.errors import NoSolutionError, SolverError
from ddlopt.solvers.backends.highs import Highs
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.exact import build_model
from ddlopt.solvers.heuristic import Answer, Clock, Heuristic

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

INTEGRAL = 1e-7
"""How far a value may be from an integer."""


@dataclass(frozen=True)
class SfbLp(Heuristic, uses=("seed",)):
    r"""The linear relaxation of :class:`~.SfbMilp`, whose vertices are integral.

    The bound does not rest on the solver's tolerances: for any prices :math:`\pi \ge 0` of the rows, here those of
    HiGHS with what is negative taken as 0,

    .. math::
        \sum_i s_i
        + \sum_i \min\Bigl(0,\ e_i + \alpha - s_i + \sum_{(t,j): j = i} \pi_{tj} - \sum_{(t,j): p(t) = i} \pi_{tj}\Bigr)
        + \sum_t \min\Bigl(0,\ w_t - \sum_j \pi_{tj}\Bigr)

    is at most the objective of every selection. The prices are a maximum flow in the network of
    :class:`~ddlopt.solvers.compression.sfb.min_cut.MinCut`.
    """

    @property
    def name(self) -> str:
        """``lp``."""
        return "lp"

    def refuses(self, instance: CompressionProblem) -> str | None:
        """Other problems; budgets, under which vertices are fractional."""
        reason = SfbMilp().refuses(instance)
        if reason is None and isinstance(instance, SfbInstance) and instance.budgeted:
            return "under a budget the linear relaxation is not integral; use milp"
        return reason

    def answer(self, instance: SfbInstance, seed: int, clock: Clock, start: Any) -> Answer[SfbSelection]:
        """The vertex that HiGHS finds; its bound goes to the clock.

        Raises
        ------
        NoSolutionError
            If the time is up before.
        SolverError
            If the vertex is fractional.
        """
        formulation = SfbMilp()
        model = build_model(self.family, formulation, instance)
        block, building_s = model.component(self.family), clock.elapsed_s
        if clock.left_s <= 0:
            raise NoSolutionError("time limit passed while the model was built")
        limits = Limits(time_s=None if math.isinf(clock.left_s) else clock.left_s)
        with clock.lending_ctrl_c():
            outcome = Highs({"solve_relaxation": True}).solve(model, limits, seed, want_duals=True)
        clock.interrupted |= outcome.interrupted
        if outcome.status is not Status.OPTIMAL:
            raise NoSolutionError(f"no optimum of the relaxation: {outcome.message}")
        values = np.array([variable.value for variable in block.duplicated.values()], dtype=np.float64)
        fraction = float(np.abs(values - np.round(values)).max())
        if fraction > INTEGRAL:
            raise SolverError(f"the relaxation of '{instance.name}' has a value {fraction:g} from an integer")
        prices = np.array([outcome.duals[row] for row in block.inputs_are_there.values()]) * unit_s(instance)
        edges = np.array(list(block.EDGES), dtype=np.int64).reshape(-1, 2)
        clock.report(None, priced_bound(instance, edges, prices))
        return formulation.read(block, instance), {"building_s": building_s, **outcome.figures}

    def certificate(self, instance: SfbInstance, solution: SfbSelection, clock: Clock) -> float | None:
        """The bound of the prices."""
        return clock.best_bound(instance.sense)


def priced_bound(instance: SfbInstance, edges: Ints, prices: Floats) -> float:
    """The bound that stands with :class:`SfbLp`.

    Parameters
    ----------
    edges : (rows, 2) int array
        Tensor and consumer.
    prices : (rows,) float array
        Seconds; negative ones count as 0.
    """
    tensors, consumers = edges.T
    prices = np.maximum(0.0, prices)
    producers = instance.producers[tensors]
    paid = np.bincount(consumers, prices, instance.size) - np.bincount(producers, prices, instance.size)
    operators = instance.extra_s + instance.duplication_penalty_s - instance.sync_s + paid
    if instance.broadcast == "per_edge":
        broadcasts = instance.broadcast_s[tensors] - prices
    else:
        broadcasts = instance.broadcast_s - np.bincount(tensors, prices, len(instance.tensors))
    least = np.minimum(0.0, operators[instance.eligible]).sum() + np.minimum(0.0, broadcasts).sum()
    return float(instance.sync_s.sum() + least)
