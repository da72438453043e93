"""The four eigenvalue problems of weights for any solver of semidefinite programs."""

from dataclasses import dataclass
from typing import Any, ClassVar

import cvxpy as cp
import numpy as np
from scipy import sparse

from ddlopt.models.contracts import Instance
from ddlopt.models.covering import Covering
from ddlopt.models.errors import SolverError
from ddlopt.models.gossip.spectral.certificates import spectral_bound
from ddlopt.models.gossip.spectral.laplacians import Floats
from ddlopt.models.gossip.weights.instance import GossipWeights, WeightsInstance

Array = np.ndarray


@dataclass(frozen=True)
class ConvexWeights(Covering):
    r"""Weights by semidefinite programming, for CVXPY.

    With :math:`J = \mathbf{1}\mathbf{1}^\top/n` and :math:`L(w) = \sum_e w_e a_e a_e^\top`, goals ``averaging`` and
    ``chain`` are

    .. math:: \min s \quad\text{s.t.}\quad -sI \preceq I - L(w) - J \preceq sI,

    for chains with :math:`w \ge 0` and :math:`\sum_{e \ni i} w_e \le 1`; goals ``process`` and ``pairwise`` are

    .. math:: \max t \quad\text{s.t.}\quad L(w) + t J \succeq t I,

    with :math:`w \ge 0`, :math:`\sum_e c_e w_e \le B` for a process, and with
    :math:`w_{ij} = P_{ij} + P_{ji}`, :math:`P \ge 0`, :math:`\sum_j P_{ij} \le 1` for pairwise gossip, whose objective
    is :math:`1 - t / 2n`.

    Ports
    -----
    ``weights``
        Variable: :math:`w_e`, or for pairwise gossip :math:`P_{ij}` and :math:`P_{ji}` of each edge in turn.
    ``factor``
        Variable: s, or t.
    ``constraints[0]``
        :math:`sI - (W - J) \succeq 0`, or :math:`L(w) - t(I - J) \succeq 0`.
    ``objective``
        s, to be minimised, or t, to be maximised.

    References
    ----------
    L. Xiao, S. Boyd, "Fast linear iterations for distributed averaging", Systems & Control Letters 53 (2004), problem
    (17); S. Boyd, P. Diaconis, L. Xiao, SIAM Review 46 (2004); J. Sun et al., SIAM Review 48 (2006); S. Boyd, A. Ghosh,
    B. Prabhakar, D. Shah, IEEE Transactions on Information Theory 52 (2006).
    """

    covers: ClassVar[type[Instance]] = WeightsInstance

    def problem(self, instance: WeightsInstance) -> cp.Problem:
        """The program; see the class for its ports."""
        network, goal = instance.network, instance.goal
        n, edges = network.nodes, len(network.edges)
        weights = cp.Variable(2 * edges if goal == "pairwise" else edges, name="weights")
        factor = cp.Variable(name="factor")
        shared = np.full((n, n), 1.0 / n)
        incidence = network.incidence
        by_edge = weights[0::2] + weights[1::2] if goal == "pairwise" else weights
        laplacian = incidence @ cp.diag(by_edge) @ incidence.T
        rows = self._rows(instance, weights)
        if goal in ("averaging", "chain"):
            beside = np.eye(n) - shared - laplacian
            two_sided = [factor * np.eye(n) - beside >> 0, factor * np.eye(n) + beside >> 0]
            return cp.Problem(cp.Minimize(factor), [*two_sided, *rows])
        return cp.Problem(cp.Maximize(factor), [laplacian - factor * (np.eye(n) - shared) >> 0, *rows])

    def _rows(self, instance: WeightsInstance, weights: Any) -> list[Any]:
        network, goal = instance.network, instance.goal
        if goal == "averaging":
            return []
        rows = [weights >= 0]
        if goal == "chain":
            return [*rows, abs(network.incidence) @ weights <= 1]
        if goal == "process":
            costs = np.array(instance.costs or [1.0] * len(network.edges))
            return [*rows, costs @ weights <= instance.budget]
        arcs = 2 * len(network.edges)
        callers = sparse.csr_array(
            (np.ones(arcs), (network.ends.ravel(), np.arange(arcs))), shape=(network.nodes, arcs)
        )
        return [*rows, callers @ weights <= 1]

    def read(self, problem: cp.Problem, instance: WeightsInstance) -> GossipWeights:
        """The weights of a solved ``problem``, moved within the constraints that its tolerance left."""
        value = problem.var_dict["weights"].value
        if value is None:
            raise SolverError("the problem has no values; solve it first")
        return GossipWeights(instance=instance.name, weights=tuple(_kept(instance, np.asarray(value)).tolist()))

    def bound(self, problem: cp.Problem, instance: WeightsInstance) -> float | None:
        """What the multipliers of a solved ``problem`` prove, or None."""
        duals = [constraint.dual_value for constraint in problem.constraints]
        if duals[0] is None:
            return None
        if instance.goal in ("process", "pairwise"):
            return spectral_bound(instance, np.asarray(duals[0]))
        prices = None if instance.goal == "averaging" else np.asarray(duals[3])
        # The first multiplier is of s − (W − J): where W − J is largest.
        return spectral_bound(instance, np.asarray(duals[0]) - np.asarray(duals[1]), prices)


def _kept(instance: WeightsInstance, weights: Floats) -> Floats:
    if instance.goal == "averaging":
        return weights
    weights = np.maximum(weights, 0.0)
    ends = instance.network.ends
    found: Floats
    if instance.goal == "process":
        assert instance.budget is not None
        spent = float(weights @ np.array(instance.costs or [1.0] * len(weights)))
        # A few units in the last place, so that the budget is kept in exact arithmetic too.
        found = weights * min(1.0, instance.budget / spent) * (1 - 1e-15) if spent > 0 else weights
        return found
    by_end = np.repeat(weights, 2) if instance.goal == "chain" else weights
    given = np.bincount(ends.ravel(), weights=by_end, minlength=instance.size)
    # A few units in the last place, as above.
    too_much = np.maximum(1.0, given) * (1 + 1e-15)
    found = weights / (too_much[ends].max(axis=1) if instance.goal == "chain" else too_much[ends.ravel()])
    return found
