"""Which circulant network gossip is fastest on."""

from functools import cached_property
from typing import ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
from pydantic import Field, model_validator

from ddlopt.models.contracts import Sense
from ddlopt.models.gossip.family import GossipAnswer, GossipProblem

Floats = npt.NDArray[np.float64]


class CirculantInstance(GossipProblem):
    r"""Generators of a circulant graph of at most a given degree, such that gossip on it is fastest.

    Workers are 0..n−1, and a generator g links each worker x to x ± g modulo n: two links of a worker, or one where
    :math:`g = n/2`. Characters of :math:`Z_n` are eigenvectors, so for k = 1..n−1 the Laplacian with a weight
    :math:`w_g` for each generator has the eigenvalues

    .. math:: \lambda_k = \sum_g a_{kg} w_g, \qquad a_{kg} = 2 - 2 \cos(2\pi k g / n),
              \quad a_{k,n/2} = 1 - \cos(\pi k),

    of which k and n − k have the same. Two goals:

    *gap*: the second smallest eigenvalue of the Laplacian with weights of 1 is maximised;

    *averaging*: with one weight for each generator, the factor
    :math:`\rho = \max_{k \ne 0} |1 - \lambda_k|` by which the distance from the average shrinks in a round is
    minimised (as goal ``averaging`` of problem ``weights``; on a circulant graph other weights are no better, as the
    mean over all rotations of the workers has the same weight for all links of a generator).

    Parameters
    ----------
    nodes : int
        n.
    degree : int
        Most links of a worker.
    goal : {"gap", "averaging"}
        The second smallest eigenvalue of the Laplacian, or the factor of averaging with the best weights.
    """

    kind: ClassVar[str] = "circulant instance"

    problem: Literal["circulant"] = "circulant"
    nodes: int = Field(ge=3, le=4096)
    degree: int = Field(ge=2)
    goal: Literal["gap", "averaging"] = "gap"

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.degree >= self.nodes:
            raise ValueError(f"degree is {self.degree}, but a worker has {self.nodes - 1} others; take at most that")
        return self

    @property
    def size(self) -> int:
        """Number of workers."""
        return self.nodes

    @property
    def sense(self) -> Sense:
        """The gap is maximised, the factor minimised."""
        return "maximize" if self.goal == "gap" else "minimize"

    @property
    def objective_unit(self) -> str:
        """None."""
        return ""

    @property
    def candidates(self) -> range:
        """Generators: 1..n/2."""
        return range(1, self.nodes // 2 + 1)

    def links(self, generator: int) -> int:
        """Links of a worker by a generator."""
        return 1 if 2 * generator == self.nodes else 2

    @cached_property
    def characters(self) -> Floats:
        """(⌊n/2⌋, ⌊n/2⌋) a_kg of k, g = 1.."""
        numbers = np.arange(1, self.nodes // 2 + 1)
        # The product is reduced first, so that the angle is as exact as it can be.
        angles = 2.0 * np.pi * (np.outer(numbers, numbers) % self.nodes) / self.nodes
        found: Floats = 2.0 - 2.0 * np.cos(angles)
        if self.nodes % 2 == 0:
            found[:, -1] /= 2.0
        return found


class CirculantGraph(GossipAnswer):
    """Generators, and their weights for goal ``averaging``.

    Parameters
    ----------
    generators : tuple of int
        Different ones of 1..n/2.
    weights : tuple of float, optional
        Of each generator; for goal ``averaging``.
    """

    kind: ClassVar[str] = "circulant graph"

    problem: Literal["circulant"] = "circulant"
    generators: tuple[int, ...]
    weights: tuple[float, ...] = ()
