"""The four eigenvalue problems on a graph as programs of the interior-point method."""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from ddlopt.models.gossip.spectral.certificates import spectral_bound
from ddlopt.models.gossip.spectral.laplacians import Floats, Ints
from ddlopt.models.gossip.weights.instance import GossipWeights, WeightsInstance
from ddlopt.solvers.gossip.spectral.interior_point import Block, Iterate, SpectralProgram

_STRETCH = (Block(-1.0, 1.0, -1.0), Block(1.0, -1.0, -1.0))
"""tP + (W − J) and tP − (W − J) with W = I − L, where −t is maximised."""


@dataclass(frozen=True)
class WeightsProgram:
    """A program, and what its iterates say about the instance.

    Parameters
    ----------
    instance : WeightsInstance
    orbits : (m,) array
        Number of the class of each edge; edges of a class have one weight. For goal ``pairwise`` (2m,), of arcs.
    """

    instance: WeightsInstance
    orbits: Ints

    def program(self) -> SpectralProgram:
        """Blocks and rows; starts from weights that leave room everywhere."""
        network, goal = self.instance.network, self.instance.goal
        n, ends = network.nodes, network.ends
        spread = self._spread
        if goal == "pairwise":
            arcs = np.arange(2 * len(ends))
            pairs = sparse.csr_array((np.ones(len(arcs)), (arcs // 2, arcs)), shape=(len(ends), len(arcs)))
            mixing = sparse.csr_array(pairs @ spread)
            callers = sparse.csr_array((np.ones(len(arcs)), (ends.ravel(), arcs)), shape=(n, len(arcs)))
            rows, offsets = self._kept(callers @ spread)
            start = np.full(spread.shape[1], 0.5 / network.degrees.max())
        else:
            mixing = spread
            start = np.full(spread.shape[1], 0.5 / network.degrees.max())
            if goal == "averaging":
                rows, offsets = sparse.csr_array((0, spread.shape[1])), np.zeros(0)
            elif goal == "chain":
                touching = abs(network.incidence)
                rows, offsets = self._kept(touching @ spread)
            else:
                assert self.instance.budget is not None
                costs = np.array(self.instance.costs or [1.0] * len(ends)) / self.instance.budget
                rows, offsets = self._kept(sparse.csr_array(costs[None, :]) @ spread)
                start = np.full(spread.shape[1], 0.5 / costs.sum())
        two_sided = goal in ("averaging", "chain")
        blocks = _STRETCH if two_sided else (Block(0.0, 1.0, -1.0),)
        # W = I − L with these weights is between 0 and 1; and L is positive definite beside the all-one vector
        start_t = -1.5 if two_sided else -float(start.max())
        return SpectralProgram(n, ends, mixing, blocks, rows, offsets, start, start_t)

    @property
    def classes(self) -> int:
        """Number of different weights."""
        return int(self.orbits.max()) + 1

    def weights(self, at: Iterate) -> GossipWeights:
        """The answer that an iterate is; strictly within all constraints."""
        return GossipWeights(instance=self.instance.name, weights=tuple((self._spread @ at.y).tolist()))

    def bound(self, at: Iterate) -> float:
        """What the multipliers of an iterate prove."""
        return spectral_bound(self.instance, *self.dual(at))

    def dual(self, at: Iterate) -> tuple[Floats, Floats | None]:
        """The matrix and the node prices that an iterate suggests for a certificate."""
        if self.instance.goal == "averaging":
            return at.multipliers[0] - at.multipliers[1], None
        if self.instance.goal == "chain":
            return at.multipliers[0] - at.multipliers[1], at.row_multipliers[self._spread.shape[1] :]
        return at.multipliers[0], None

    def objective(self, at: Iterate) -> float:
        """The objective at least promised by an iterate."""
        match self.instance.goal:
            case "process":
                return at.t
            case "pairwise":
                return 1.0 - at.t / (2.0 * self.instance.size)
        return -at.t

    @property
    def _spread(self) -> sparse.csr_array:
        """From one weight a class to one an edge or arc."""
        places = np.arange(len(self.orbits))
        shape = (len(self.orbits), self.classes)
        return sparse.csr_array((np.ones(len(places)), (places, self.orbits)), shape=shape)

    def _kept(self, spent: sparse.csr_array) -> tuple[sparse.csr_array, Floats]:
        """Rows: no variable below 0, and no more than 1 of each thing spent."""
        count = self._spread.shape[1]
        rows = sparse.vstack([sparse.eye_array(count), -spent], format="csr")
        return rows, np.concatenate([np.zeros(count), np.ones(spent.shape[0])])
