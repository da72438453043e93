"""Can the edges of a graph be split into a given number of matchings? An integer program for small graphs."""

from dataclasses import dataclass
from typing import Any, ClassVar

import pyomo.environ as pyo
from pyomo.core.expr import LinearExpression

from ddlopt.models.contracts import Instance, Sense
from ddlopt.models.covering import FormulationBase
from ddlopt.models.errors import SolverError
from ddlopt.models.gossip.matchings.instance import MatchingsInstance


@dataclass(frozen=True)
class EdgeColouring(FormulationBase):
    r"""As many edges as possible in a given number of matchings; all of them if the chromatic index is at most that.

    .. math::

        \max \sum_{e, c} x_{ec} \quad\text{s.t.}\quad \sum_c x_{ec} \le 1, \quad \sum_{e \ni i} x_{ec} \le 1, \quad
        \sum_e x_{ec} \le \lfloor n/2 \rfloor, \quad x \in \{0, 1\}^{m \times k} .

    By Vizing's theorem the chromatic index is the largest degree Δ or one more, so with k = Δ the optimum decides: it
    is Δ exactly if all edges get a colour. Edges at one node of largest degree take colours in their order, as colours
    may be exchanged.

    Parameters
    ----------
    colours : int
        k, at least the largest degree.

    Ports
    -----
    ``coloured[e, c]``
        Binary: edge e is in matching c.
    ``one_colour[e]``, ``at_node[i, c]``, ``half[c]``
        The rows above, in their order.
    ``objective``
        Edges with a colour, to be maximised.

    References
    ----------
    V. G. Vizing, "On an estimate of the chromatic class of a p-graph", Diskret. Analiz 3 (1964); M. Stiebitz et al.,
    "Graph edge coloring", Wiley 2012.
    """

    colours: int

    covers: ClassVar[type[Instance]] = MatchingsInstance
    sense: ClassVar[Sense] = "maximize"

    def refuses(self, instance: Any) -> str | None:
        """Fewer colours than the largest degree."""
        most = int(instance.network.degrees.max())
        return f"colours is {self.colours}; a node has {most} edges" if self.colours < most else None

    def build(self, block: pyo.Block, instance: MatchingsInstance) -> None:
        """Fill ``block``."""
        network = instance.network
        edges, colours = range(len(network.edges)), range(self.colours)
        block.coloured = pyo.Var(edges, colours, domain=pyo.Binary, doc="1 if the edge has the colour")
        taken = block.coloured
        touching: list[list[int]] = [[] for _ in range(network.nodes)]
        for edge, ends in enumerate(network.edges):
            for node in ends:
                touching[node].append(edge)

        def total(variables: list[pyo.Var]) -> LinearExpression:
            return LinearExpression(linear_coefs=[1] * len(variables), linear_vars=variables)

        block.one_colour = pyo.Constraint(
            edges, rule=lambda _, e: total([taken[e, c] for c in colours]) <= 1, doc="an edge has one colour at most"
        )
        block.at_node = pyo.Constraint(
            range(network.nodes),
            colours,
            rule=lambda _, i, c: total([taken[e, c] for e in touching[i]]) <= 1,
            doc="a node has an edge of a colour at most",
        )
        half = network.nodes // 2
        block.half = pyo.Constraint(
            colours,
            rule=lambda _, c: total([taken[e, c] for e in edges]) <= half,
            doc="a colour is a matching: half the nodes",
        )
        for colour, edge in enumerate(touching[int(network.degrees.argmax())]):
            taken[edge, colour].fix(1)
        block.objective = pyo.Expression(expr=total(list(taken.values())))

    def read(self, block: pyo.Block, instance: MatchingsInstance) -> tuple[tuple[int, ...], ...] | None:
        """The matchings; None if an edge has no colour."""
        network = instance.network
        colours = range(self.colours)
        chosen = [[c for c in colours if pyo.value(block.coloured[e, c]) > 0.5] for e in range(len(network.edges))]
        if any(len(own) > 1 for own in chosen):
            raise SolverError("an edge has two colours")
        if not all(chosen):
            return None
        return tuple(tuple(e for e, own in enumerate(chosen) if own == [c]) for c in colours)
