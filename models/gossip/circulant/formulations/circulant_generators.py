"""The choice of a circulant graph as a mixed-integer linear program."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import pyomo.environ as pyo
from pyomo.core.expr import LinearExpression

from ddlopt.models.contracts import Instance
from ddlopt.models.covering import FormulationBase
from ddlopt.models.errors import SolverError
from ddlopt.models.gossip.circulant.bounds import circulant_bound
from ddlopt.models.gossip.circulant.instance import CirculantGraph, CirculantInstance
from ddlopt.models.gossip.circulant.symmetry import leaders, led
from ddlopt.models.tolerances import INTEGRALITY_TOL


@dataclass(frozen=True)
class _Generators(FormulationBase):
    r"""Generators of a circulant graph, and what they cost.

    Parameters
    ----------
    symmetry : bool
        Multiplication by a unit of :math:`Z_n` maps a graph to one with the same eigenvalues, and the orbits of
        generators are those with the same gcd with n. With an order of the orbits, some best graph has the leader of
        the first orbit that it uses: :math:`x_g \le x_{l(g)} + \sum_{\text{earlier } l} x_l`. Turn this off in a model
        where generators differ otherwise.
    """

    symmetry: bool = True

    goal: ClassVar[str]
    covers: ClassVar[type[Instance]] = CirculantInstance

    def refuses(self, instance: CirculantInstance) -> str | None:
        """The other goal."""
        return None if instance.goal == self.goal else f"it is for goal '{self.goal}', not '{instance.goal}'"

    def _choose(self, block: pyo.Block, instance: CirculantInstance) -> None:
        half = len(instance.candidates)
        block.GENERATORS = pyo.RangeSet(1, half, doc="generators")
        block.CHARACTERS = pyo.RangeSet(1, half, doc="eigenvalues")
        block.chosen = pyo.Var(block.GENERATORS, domain=pyo.Binary, doc="links of each worker to those g away")
        counts = [instance.links(g) for g in instance.candidates]
        variables = [block.chosen[g] for g in instance.candidates]
        block.links_are_few = pyo.Constraint(
            expr=LinearExpression(linear_coefs=counts, linear_vars=variables) <= instance.degree,
            doc="a worker has no more links than the degree",
        )
        first = leaders(instance.nodes)
        followers = [g for g in instance.candidates if first[g] != g] if self.symmetry else []
        block.FOLLOWERS = pyo.Set(initialize=followers, doc="generators that do not lead their orbit")

        @block.Constraint(block.FOLLOWERS, doc="the first orbit that is used is led by its leader")
        def leader_comes_first(b: pyo.Block, g: int) -> pyo.Expression:
            earlier = [h for h in instance.candidates if first[h] == h and h < first[g]]
            return b.chosen[g] <= b.chosen[int(first[g])] + sum(b.chosen[h] for h in earlier)

    def start(self, block: pyo.Block, instance: CirculantInstance, solution: CirculantGraph) -> None:
        """Set ``chosen``, and weights where there are some, to an image of the graph that the model has."""
        everything = np.arange(instance.nodes)
        image = led(instance.nodes, solution.generators) if self.symmetry else everything
        weights = dict(zip((int(image[g]) for g in solution.generators), solution.weights or (), strict=False))
        chosen = {int(image[g]) for g in solution.generators}
        for g in instance.candidates:
            block.chosen[g].set_value(int(g in chosen))
            if instance.goal == "averaging":
                block.weight[g].set_value(min(1.0, max(-1.0, weights.get(g, 0.0))))

    def read(self, block: pyo.Block, instance: CirculantInstance) -> CirculantGraph:
        """The graph.

        Raises
        ------
        SolverError
            If a choice is not integral.
        """
        generators = []
        for g in instance.candidates:
            value = pyo.value(block.chosen[g])
            if abs(value - round(value)) > INTEGRALITY_TOL:
                raise SolverError(f"chosen[{g}] = {value:.9f} is not an integer; solve to integrality")
            if round(value):
                generators.append(g)
        weights = [pyo.value(block.weight[g]) for g in generators] if instance.goal == "averaging" else []
        return CirculantGraph(instance=instance.name, generators=tuple(generators), weights=tuple(weights))

    def objective_value(self, instance: CirculantInstance, value: float) -> float:
        """The same."""
        return value


@dataclass(frozen=True)
class CirculantGenerators(_Generators):
    r"""Generators with the largest spectral gap.

    In the notation of :class:`~ddlopt.models.gossip.circulant.instance.CirculantInstance`, with :math:`x_g = 1` for
    those chosen and :math:`u_g` links (1 for n/2, 2 for others):

    .. math:: \max t \quad\text{s.t.}\quad t \le \sum_g a_{kg} x_g \;\; (1 \le k \le n/2), \qquad
              \sum_g u_g x_g \le d, \qquad x \in \{0, 1\} .

    Ports
    -----
    ``chosen[g]``
        Binary: links to the workers at distance g, both ways.
    ``gap``
        t.
    ``links_are_few``
        Constraint: the degree.
    ``objective``
        t, to be maximised.

    References
    ----------
    The formulation is ours; F. Margot, "Symmetry in integer linear programming", in 50 Years of Integer Programming,
    2010, for orbits.
    """

    sense: ClassVar[Literal["minimize", "maximize"]] = "maximize"
    goal: ClassVar[str] = "gap"

    def build(self, block: pyo.Block, instance: CirculantInstance) -> None:
        """Fill ``block``."""
        self._choose(block, instance)
        characters = instance.characters
        block.gap = pyo.Var(bounds=(0, None), doc="second smallest eigenvalue")
        variables = [block.gap, *(block.chosen[g] for g in instance.candidates)]

        @block.Constraint(block.CHARACTERS, doc="no eigenvalue is smaller")
        def gap_is_least(b: pyo.Block, k: int) -> pyo.Expression:
            coefficients = [-1.0, *characters[k - 1].tolist()]
            return LinearExpression(linear_coefs=coefficients, linear_vars=variables) >= 0

        block.gap_is_bounded = pyo.Constraint(
            expr=block.gap <= circulant_bound(instance), doc="no circulant has a larger gap than is proven"
        )
        block.objective = pyo.Expression(expr=block.gap)


@dataclass(frozen=True)
class CirculantWeights(_Generators):
    r"""Generators and weights with the smallest factor of a round.

    In the notation of :class:`~ddlopt.models.gossip.circulant.instance.CirculantInstance`:

    .. math:: \min s \quad\text{s.t.}\quad -s \le 1 - \sum_g a_{kg} w_g \le s \;\; (1 \le k \le n/2), \qquad
              -x_g \le w_g \le x_g, \qquad \sum_g u_g x_g \le d, \qquad x \in \{0, 1\} :

    where :math:`s \le 1` no entry of the mixing matrix is larger than its norm, which is 1.

    Ports
    -----
    ``chosen[g]``
        Binary: links to the workers at distance g, both ways.
    ``weight[g]``
        w, 0 where a generator is not chosen.
    ``factor``
        s.
    ``links_are_few``
        Constraint: the degree.
    ``objective``
        s, to be minimised.

    References
    ----------
    L. Xiao, S. Boyd, "Fast linear iterations for distributed averaging", Systems & Control Letters 53 (2004), for the
    weights of given links. The formulation is ours.
    """

    sense: ClassVar[Literal["minimize", "maximize"]] = "minimize"
    goal: ClassVar[str] = "averaging"

    def build(self, block: pyo.Block, instance: CirculantInstance) -> None:
        """Fill ``block``."""
        self._choose(block, instance)
        characters = instance.characters
        block.weight = pyo.Var(block.GENERATORS, bounds=(-1, 1), doc="weight of the links")
        block.factor = pyo.Var(bounds=(0, 1), doc="factor of a round")
        variables = [block.factor, *(block.weight[g] for g in instance.candidates)]

        def rows(sign: float) -> pyo.Constraint:
            def row(b: pyo.Block, k: int) -> pyo.Expression:
                coefficients = [1.0, *(sign * characters[k - 1]).tolist()]
                return LinearExpression(linear_coefs=coefficients, linear_vars=variables) >= sign

            return pyo.Constraint(block.CHARACTERS, rule=row)

        block.factor_is_largest, block.factor_is_largest_below = rows(1.0), rows(-1.0)

        @block.Constraint(block.GENERATORS, doc="only chosen links have a weight")
        def weight_needs_links(b: pyo.Block, g: int) -> pyo.Expression:
            return b.weight[g] <= b.chosen[g]

        @block.Constraint(block.GENERATORS, doc="the same below 0")
        def weight_below_needs_links(b: pyo.Block, g: int) -> pyo.Expression:
            return b.weight[g] >= -b.chosen[g]

        block.factor_is_bounded = pyo.Constraint(
            expr=block.factor >= circulant_bound(instance), doc="no circulant has a smaller factor than is proven"
        )
        block.objective = pyo.Expression(expr=block.factor)
