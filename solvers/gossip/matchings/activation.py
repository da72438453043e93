"""How often each of given matchings is active: the algebraic connectivity of the expected graph under a budget."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from scipy import sparse

from ddlopt.models.gossip.matchings.instance import MatchingsInstance
from ddlopt.models.gossip.matchings.second_moments import SecondMoment, activation_bound
from ddlopt.models.gossip.spectral.laplacians import Floats, laplacian
from ddlopt.solvers.gossip.spectral.interior_point import Block, Iterate, SpectralProgram, solve

Matchings = Sequence[Sequence[int]]


class Activation(NamedTuple):
    """Probabilities, λ₂ of the expected Laplacian, and a bound on what others reach."""

    probabilities: Floats
    connectivity: float
    bound: float
    rounds: int


class Plan:
    """What an instance asks of given matchings.

    Parameters
    ----------
    instance : MatchingsInstance
    matchings : sequence of sequences of int
        Edges of each, none empty.
    """

    def __init__(self, instance: MatchingsInstance, matchings: Matchings) -> None:
        self.instance, self.matchings = instance, tuple(tuple(matching) for matching in matchings)
        network, count = instance.network, len(self.matchings)
        places = np.concatenate([np.array(matching, dtype=np.int64) for matching in self.matchings])
        owners = np.repeat(np.arange(count), [len(matching) for matching in self.matchings])
        self.mixing = sparse.csr_array((np.ones(len(places)), (places, owners)), shape=(len(network.edges), count))
        self.times = np.array([max(instance.edge_times[edge] for edge in matching) for matching in self.matchings])
        budgets = np.array(instance.edge_budgets or (1.0,) * len(network.edges))
        self.most = np.array([budgets[list(matching)].min() for matching in self.matchings])
        self.single = instance.activation == "single"

    def moment(self, probabilities: Floats) -> SecondMoment:
        """E[W²] − J with these probabilities."""
        network = self.instance.network
        return SecondMoment(network.nodes, network.ends, self.mixing @ probabilities, not self.single)

    def connectivity(self, probabilities: Floats) -> float:
        """λ₂ of the expected Laplacian."""
        network = self.instance.network
        return float(np.linalg.eigvalsh(laplacian(network.nodes, network.ends, self.mixing @ probabilities))[1])

    def kept(self, probabilities: Floats) -> Floats:
        """The nearest below that keep all budgets, in spite of rounding."""
        found: Floats = np.clip(probabilities, 0.0, self.most)
        spent = float(found @ self.times) / self.instance.budget
        if self.single:
            spent = max(spent, float(found.sum()))
        # Four units in the last place for each number that is added.
        rounding = 1e-15 * len(found)
        return found * ((1.0 - 2.0 * rounding) / spent) if spent > 1.0 - rounding else found

    def everything(self) -> Floats | None:
        """The largest probabilities, where the budget pays for all of them."""
        if self.single and self.most.sum() > 1.0:
            return None
        spent = sum((Fraction(a) * Fraction(b) for a, b in zip(self.most, self.times, strict=True)), Fraction(0))
        return self.most if spent <= Fraction(self.instance.budget) else None


def most_connected(plan: Plan, gap: float, expired: Callable[[], bool] = lambda: False) -> Activation:
    """The probabilities with the largest λ₂, with a bound that is recomputed from the multipliers."""
    count, network = len(plan.matchings), plan.instance.network
    parts = [
        (network.ends[list(matching)], float(time), float(most))
        for matching, time, most in zip(plan.matchings, plan.times, plan.most, strict=True)
    ]
    everything = plan.everything()
    if everything is not None:
        value = plan.connectivity(everything)
        return Activation(everything, value, value, 0)
    budget = plan.instance.budget
    limits = [np.asarray(plan.times / budget)[None, :]]
    if plan.single:
        limits.append(np.ones((1, count)))
    rows = sparse.csr_array(np.vstack([np.eye(count), -np.eye(count), *(-limit for limit in limits)]))
    offsets = np.concatenate([np.zeros(count), plan.most, np.ones(len(limits))])
    start = 0.5 * np.minimum(plan.most, min(budget / plan.times.sum(), 1.0 / count if plan.single else np.inf))
    program = SpectralProgram(
        network.nodes, network.ends, plan.mixing, (Block(0.0, 1.0, -1.0),), rows, offsets, start, -float(start.min())
    )
    bounds = [np.inf]

    def stop(at: Iterate) -> bool:
        price = float(at.row_multipliers[-1]) if plan.single else None
        bounds.append(activation_bound(at.multipliers[0], parts, budget, price))
        return expired() or min(bounds) - at.t <= gap * at.t

    at, rounds = solve(program, stop)
    # An interior point leaves a little of the budget; λ₂ does not fall where probabilities grow.
    spent = max(float(at.y @ plan.times) / budget, float(at.y.sum()) if plan.single else 0.0)
    probabilities = plan.kept(at.y / spent)
    return Activation(probabilities, plan.connectivity(probabilities), min(bounds), rounds)
