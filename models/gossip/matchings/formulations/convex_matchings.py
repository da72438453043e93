"""Probabilities and weights of gossip on matchings for any solver of semidefinite programs."""

from dataclasses import dataclass
from typing import Any, ClassVar

import cvxpy as cp
import numpy as np
import numpy.typing as npt

from ddlopt.models.contracts import Instance
from ddlopt.models.covering import Covering
from ddlopt.models.errors import SolverError
from ddlopt.models.gossip.matchings.instance import MatchingsInstance
from ddlopt.models.gossip.matchings.second_moments import SecondMoment, activation_bound

Floats = npt.NDArray[np.float64]
Matchings = tuple[tuple[int, ...], ...]


def _value(problem: cp.Problem, name: str) -> Floats:
    value = problem.var_dict[name].value
    if value is None:
        raise SolverError("the problem has no values; solve it first")
    return np.atleast_1d(np.asarray(value, dtype=np.float64))


def _laplacians(instance: MatchingsInstance, matchings: Matchings) -> list[Floats]:
    incidence = instance.network.incidence
    return [(incidence[:, list(own)] @ incidence[:, list(own)].T).toarray() for own in matchings]


def _moment(instance: MatchingsInstance, matchings: Matchings, probabilities: Floats) -> SecondMoment:
    chances = np.zeros(len(instance.network.edges))
    for chance, own in zip(probabilities, matchings, strict=True):
        chances[list(own)] = chance
    return SecondMoment(instance.size, instance.network.ends, chances, instance.activation == "independent")


@dataclass(frozen=True)
class ConvexActivation(Covering):
    r"""How often each of given matchings is active.

    .. math::

        \max t \quad\text{s.t.}\quad \sum_j p_j L_j - t (I - J) \succeq 0, \quad \sum_j p_j t_j \le B, \quad
        0 \le p \le c,

    with :math:`c_j` the least budget of an edge in matching j, and :math:`\sum_j p_j \le 1` where a single matching is
    active. Without times and budgets of edges that is problem (4) of MATCHA, whose released code writes it with the sum
    of the two smallest eigenvalues.

    Parameters
    ----------
    matchings : tuple of tuples of int

    Ports
    -----
    ``probabilities``, ``connectivity``
        Variables p and t.
    ``constraints[0]``, ``constraints[1]``
        The matrix inequality, and the budget.
    ``objective``
        t, to be maximised.

    References
    ----------
    J. Wang et al., "MATCHA", Indian Control Conference 2019, and JYWa/MATCHA.
    """

    matchings: Matchings

    covers: ClassVar[type[Instance]] = MatchingsInstance

    def problem(self, instance: MatchingsInstance) -> cp.Problem:
        """The program; see the class for its ports."""
        n, parts = instance.size, self._parts(instance)
        probabilities = cp.Variable(len(parts), name="probabilities")
        connectivity = cp.Variable(name="connectivity")
        laplacians = _laplacians(instance, self.matchings)
        expected = sum(probabilities[j] * laplacian for j, laplacian in enumerate(laplacians))
        rows = [
            expected - connectivity * (np.eye(n) - 1.0 / n) >> 0,
            np.array([time for _, time, _ in parts]) @ probabilities <= instance.budget,
            probabilities >= 0,
            probabilities <= np.array([most for _, _, most in parts]),
        ]
        if instance.activation == "single":
            rows.append(cp.sum(probabilities) <= 1)
        return cp.Problem(cp.Maximize(connectivity), rows)

    def read(self, problem: cp.Problem, instance: MatchingsInstance) -> Floats:
        """(M,) probabilities of a solved ``problem``, moved within the constraints that its tolerance left."""
        parts = self._parts(instance)
        found = np.clip(_value(problem, "probabilities"), 0.0, [most for _, _, most in parts])
        spent = [float(found @ [time for _, time, _ in parts]) / instance.budget]
        if instance.activation == "single":
            spent.append(float(found.sum()))
        # Some fifty times the rounding of a sum: kept in exact arithmetic too.
        inside: Floats = found / max(1.0, *spent) * (1.0 - 1e-14) if max(spent) > 1.0 - 1e-14 else found
        return inside

    def bound(self, problem: cp.Problem, instance: MatchingsInstance) -> float | None:
        """What the multipliers of a solved ``problem`` prove of t, or None."""
        dual = problem.constraints[0].dual_value
        price = float(problem.constraints[-1].dual_value) if instance.activation == "single" else None
        return None if dual is None else activation_bound(dual, self._parts(instance), instance.budget, price)

    def _parts(self, instance: MatchingsInstance) -> list[tuple[npt.NDArray[np.int64], float, float]]:
        budgets = instance.edge_budgets or (1.0,) * len(instance.network.edges)
        return [
            (
                instance.network.ends[list(own)],
                max(instance.edge_times[edge] for edge in own),
                min(budgets[edge] for edge in own),
            )
            for own in self.matchings
        ]


@dataclass(frozen=True)
class ConvexMixing(Covering):
    r"""MATCHA's mixing parameter, one weight for all edges.

    .. math::

        \min s \quad\text{s.t.}\quad (1 - s) I - 2 \alpha \bar L - J + \beta (\bar L^2 + 2 \tilde L) \preceq 0, \quad
        \alpha^2 \le \beta,

    with :math:`\bar L = \sum_j p_j L_j` and :math:`\tilde L = \sum_j p_j (1 - p_j) L_j`, as :math:`L_j^2 = 2 L_j`.

    Parameters
    ----------
    matchings : tuple of tuples of int
    probabilities : (M,) array

    Ports
    -----
    ``mixing``, ``square``, ``factor``
        Variables α, β and s.
    ``constraints[0]``
        The matrix inequality, as :math:`\dots \succeq 0`.
    ``objective``
        s, to be minimised.

    References
    ----------
    J. Wang et al., "MATCHA", Indian Control Conference 2019, and JYWa/MATCHA.
    """

    matchings: Matchings
    probabilities: Floats

    covers: ClassVar[type[Instance]] = MatchingsInstance

    def refuses(self, instance: MatchingsInstance) -> str | None:
        """A single matching in a round."""
        return "its matchings are active independently" if instance.activation == "single" else None

    def problem(self, instance: MatchingsInstance) -> cp.Problem:
        """The program, for matchings that are active independently; see the class for its ports."""
        n, laplacians = instance.size, _laplacians(instance, self.matchings)
        pairs = list(zip(self.probabilities, laplacians, strict=True))
        mean = sum((chance * laplacian for chance, laplacian in pairs), np.zeros((n, n)))
        variance = sum((chance * (1.0 - chance) * laplacian for chance, laplacian in pairs), np.zeros((n, n)))
        mixing, square, factor = (cp.Variable(name=name) for name in ("mixing", "square", "factor"))
        below = (factor - 1.0) * np.eye(n) + 2.0 * mixing * mean + 1.0 / n - square * (mean @ mean + 2.0 * variance)
        return cp.Problem(cp.Minimize(factor), [below >> 0, cp.square(mixing) <= square])

    def read(self, problem: cp.Problem, instance: MatchingsInstance) -> Floats:
        """(m,) the weight, for every edge."""
        return np.full(len(instance.network.edges), _value(problem, "mixing")[0])

    def bound(self, problem: cp.Problem, instance: MatchingsInstance) -> float | None:
        """What the multipliers of a solved ``problem`` prove of ρ, or None."""
        dual = problem.constraints[0].dual_value
        edges = len(instance.network.edges)
        moment = _moment(instance, self.matchings, self.probabilities)
        return None if dual is None else moment.best_for(np.asarray(dual), np.ones((edges, 1)))[0]


@dataclass(frozen=True)
class ConvexEdgeWeights(Covering):
    r"""The best weight of each edge for given probabilities.

    :math:`\mathbb{E}[W^2] - J = R^\top R` with R affine in the weights: of independent matchings
    :math:`I - J - L(p \circ w)` above :math:`\sqrt{p_j (1 - p_j)} L_j(w)` for each j, of a single one
    :math:`\sqrt{p_j} (I - J - L_j(w))` for each j above :math:`\sqrt{1 - \sum_j p_j} (I - J)`. So

    .. math:: \min s \quad\text{s.t.}\quad \begin{pmatrix} s I & R^\top \\ R & I \end{pmatrix} \succeq 0 .

    Parameters
    ----------
    matchings : tuple of tuples of int
    probabilities : (M,) array

    Ports
    -----
    ``weights``, ``factor``
        Variables w and s.
    ``constraints[0]``
        The matrix inequality.
    ``objective``
        s, to be minimised.

    Notes
    -----
    Ours; MATCHA has one weight.
    """

    matchings: Matchings
    probabilities: Floats

    covers: ClassVar[type[Instance]] = MatchingsInstance

    def problem(self, instance: MatchingsInstance) -> cp.Problem:
        """The program; see the class for its ports."""
        n, incidence = instance.size, instance.network.incidence
        weights, factor = cp.Variable(len(instance.network.edges), name="weights"), cp.Variable(name="factor")
        beside = np.eye(n) - 1.0 / n
        parts: list[Any] = []
        for own in map(list, self.matchings):
            parts.append(incidence[:, own] @ cp.diag(weights[own]) @ incidence[:, own].T)
        given = list(zip(self.probabilities, parts, strict=True))
        if instance.activation == "single":
            rows = [np.sqrt(chance) * (beside - part) for chance, part in given if chance > 0]
            idle = max(0.0, 1.0 - float(self.probabilities.sum()))
            rows.append(np.sqrt(idle) * beside)
        else:
            rows = [np.sqrt(chance * (1.0 - chance)) * part for chance, part in given if 0 < chance < 1]
            rows.append(beside - sum(chance * part for chance, part in given))
        stacked = cp.vstack(rows)
        whole = cp.bmat([[factor * np.eye(n), stacked.T], [stacked, np.eye(stacked.shape[0])]])
        return cp.Problem(cp.Minimize(factor), [whole >> 0])

    def read(self, problem: cp.Problem, instance: MatchingsInstance) -> Floats:
        """(m,) weights of a solved ``problem``."""
        return _value(problem, "weights")

    def bound(self, problem: cp.Problem, instance: MatchingsInstance) -> float | None:
        """What the multipliers of a solved ``problem`` prove of ρ, or None."""
        dual = problem.constraints[0].dual_value
        if dual is None:
            return None
        n = instance.size
        return _moment(instance, self.matchings, self.probabilities).best_for(np.asarray(dual)[:n, :n])[0]
