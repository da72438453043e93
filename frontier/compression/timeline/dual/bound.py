r"""A lower bound for compressors on a timeline, from prices of the two lanes and of the error; no solver needed.

Without fusion the time of a choice is the largest, over gradients i, of

.. math:: R_i + \sum_{k \le i} e_k + \sum_{k \ge i} c_k ,

so for any weights :math:`\lambda_i \ge 0` of sum 1, and any price :math:`\mu \ge 0` of the error that exceeds its
budget E, with :math:`B_k = \lambda_1 + \dots + \lambda_k`,

.. math:: T \;\ge\; \sum_i \lambda_i R_i + \sum_k \min_o \bigl[(1 - B_{k-1})\, e_{ko} + B_k\, c_{ko} + \mu\,
   \epsilon_{ko} \bigr] - \mu E .

For a weighted mean is at most the largest, gradient k's encoding is part of the terms :math:`i \ge k` and its
occupation of the wire of the terms :math:`i \le k`, what is added for the error is at most 0, and the smallest is at
most any.

The best weights give the value of the linear relaxation, which mixes options: in

.. math:: \min_z \max_{\lambda, \mu} \Bigl[\sum_i \lambda_i \bigl(R_i + \sum_{k \le i} e_k z_k + \sum_{k \ge i} c_k
   z_k\bigr) + \mu \bigl(\sum_k \epsilon_k z_k - E\bigr)\Bigr]

the two may change places, as it is linear in both and z is from a product of simplices; and what is linear is smallest
at their corners, which are options. With the other goal, :math:`\lambda` has any sum, the price of time, and

.. math:: \sum_k \epsilon_k \;\ge\; \sum_i \lambda_i R_i + \sum_k \min_o \bigl[\epsilon_{ko} + (B_n - B_{k-1})\, e_{ko}
   + B_k\, c_{ko} \bigr] - B_n T .

Fused gradients share what launching costs. A bucket is sent when its last gradient is encoded, and whole, so what
stands above holds for each of its gradients i, with the launches :math:`L` of its own bucket and all later ones. A
bucket pays at least for its last gradient's launch, hence

.. math:: T \;\ge\; \sum_i \lambda_i R_i + \min \sum_k \bigl[(1 - B_{k-1})\, e_k + B_k\, c_k + \mu\, \epsilon_k
   + [k \text{ is the last of a bucket}]\, B_k L_k\bigr] - \mu E,

where c is without launching, and the smallest is over choices and over the places where buckets end, which they do
wherever the label changes: a shortest path through gradients and labels
(:mod:`ddlopt.frontier.compression.timeline.dual.fusion`). What buckets may hold is left out of this. Therefore there is
a second bound, the plain one, with the launches of gradients of which no two can be in one bucket: the last, and going
back from it always the next that cannot share a bucket with the one before. (Of all such sets it has the most members
among the last gradients, from any one on.)

The bounds hold for any multipliers, and are less than the formula by more than rounding can have added. Which are good
ones, an interior-point method finds (:mod:`ddlopt.frontier.compression.timeline.dual.kernels`); with fusion the price
of the error, or that of time, is then set anew. Fusion, the treatment of rounding and the use of this structure are
ours.
"""

from ddlopt.frontier.compression.timeline.dual.fusion import fused_bound
from ddlopt.frontier.compression.timeline.dual.relaxation import (
    DualBound,
    allowed,
    error_bound,
    least_occupation_s,
    time_bound,
)
from ddlopt.models.compression.family import Goal
from ddlopt.models.compression.timeline.choices import Choices
from ddlopt.models.errors import InfeasibleError

__all__ = ["DualBound", "dual_bound"]


def dual_bound(
    choices: Choices,
    goal: Goal,
    budget: float | None,
    fusion: bool = False,
    largest_bucket_bytes: float | None = None,
) -> DualBound:
    """The best bound of the module's formulas, up to a relative 1e-9 or so without fusion.

    Options that leave nothing of an error budget are left out beforehand, which the linear relaxation does not do.

    Parameters
    ----------
    choices : Choices
    goal : {"time", "error"}
    budget : float, optional
        The error budget for goal ``time`` (None: no limit), the time budget for goal ``error``.
    fusion, largest_bucket_bytes
        As in the instance.

    Raises
    ------
    InfeasibleError
        If nothing keeps the time budget, or the error budget: a bound below the times of all choices, or the sum of
        the least errors, is above it.
    """
    wire = least_occupation_s(choices, fusion, largest_bucket_bytes)
    if goal == "time":
        return fused_bound(choices, wire, goal, budget) if fusion else time_bound(choices, wire, budget)
    if budget is None:
        raise ValueError("goal 'error' needs a budget")
    fastest = dual_bound(choices, "time", None, fusion, largest_bucket_bytes).value
    if fastest > allowed(budget):
        raise InfeasibleError(f"no choice keeps the time budget of {budget:.12g} s: all take at least {fastest:.12g} s")
    return fused_bound(choices, wire, goal, budget) if fusion else error_bound(choices, wire, budget)
