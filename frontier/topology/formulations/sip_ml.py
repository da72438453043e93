"""Which circuits d optical switches set where nobody forwards: SiP-ML's max-min program, and its linear one."""

from dataclasses import dataclass
from math import inf
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyomo.environ as pyo
from pyomo.core.expr.numeric_expr import LinearExpression
from scipy.optimize import linear_sum_assignment

from ddlopt.models.contracts import Instance, Sense
from ddlopt.models.covering import FormulationBase
from ddlopt.models.errors import SolverError
from ddlopt.models.tolerances import BOUND_MARGIN, INTEGRALITY_TOL, ROUNDING
from ddlopt.models.topology.assembly import assemble
from ddlopt.models.topology.formulations.rows.throughput import refuses_faint_traffic
from ddlopt.models.topology.instance import TopologyInstance
from ddlopt.models.topology.solution import TopologyDesign

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class MaxMinCircuits(FormulationBase):
    r"""SiP-ML's choice of circuits: the slowest pair is to be as fast as it can, and nobody forwards.

    Each of d optical switches sets a permutation of the n servers; let :math:`p_{cij} = 1` if switch c sends what i
    transmits to j, possibly i itself:

    .. math::
        \max\ \lambda \quad \text{s.t.} \quad
        \textstyle\sum_j p_{cij} = 1, \qquad \sum_i p_{cij} = 1, \qquad
        \lambda\, T_{ij} / U \le \sum_c p_{cij} \quad (T_{ij} > 0), \qquad p_{cij} \in \{0, 1\},

    with U the bytes of the busiest server divided by d, so that the busiest circuits carry U / λ bytes each and λ is at
    most 1. The switches are identical, and by König's theorem any integers :math:`x_{ij} = \sum_c p_{cij}` with row and
    column sums of d are d permutations. So some λ is reached if and only if all row and column sums of
    :math:`\lceil \lambda T_{ij} / U \rceil` are at most d: :func:`max_min_circuits` finds the optimum by bisection over
    the fractions :math:`T_{ij} / k`, without a solver.

    The program that replaces it while a job runs maximises :math:`\sum_{cij} T_{ij} p_{cij}` over the same
    permutations. Its matrix is, for every switch by itself, the incidence matrix of a bipartite graph, which is totally
    unimodular: the linear program has an optimum of zeros and ones. As the objective is the same sum for every switch,
    one maximum-weight assignment set d times is optimal (:func:`assignment_circuits`): there is no diminishing return
    that would make a second circuit of a pair worth less than the first.

    Scope: traffic without all-reduce groups (:attr:`~.TopologyInstance.allreduce_groups`), whose rings it cannot
    choose, one-way optics, parallel links. A design where servers forward may be better (``direct circuits``).

    Ports
    -----
    ``circuit[c, i, j]``
        p.
    ``throughput``
        λ.
    ``objective``
        λ, to be maximised.

    References
    ----------
    M. Khani et al., "SiP-ML: high-bandwidth optical network interconnects for machine learning training", SIGCOMM
    2021; both programs as in the simulator of TopoOpt's evaluation, ``DynFlatScheduler`` of
    https://github.com/Flasew/ffsim-opera.
    """

    covers: ClassVar[type[Instance]] = TopologyInstance
    sense: ClassVar[Sense] = "maximize"

    def refuses(self, instance: TopologyInstance) -> str | None:
        """All-reduce groups, duplex optics, pairs that only one link may join, traffic that drowns in tolerances."""
        if instance.allreduce_groups:
            return "it has all-reduce groups, and this model chooses no rings; give the hops of rings as traffic"
        if instance.optics == "duplex":
            return "a switch sets one-way circuits, but its optics are duplex"
        if not instance.parallel_links:
            return "several switches may join the same pair, but parallel links are off"
        partners = np.maximum((instance.traffic_bytes > 0).sum(axis=1), (instance.traffic_bytes > 0).sum(axis=0))
        if int(partners.max(initial=0)) > instance.degree:
            # Otherwise there is a design: as many matchings as partners have a circuit for each pair (König).
            busiest = int(partners.argmax())
            return f"server {busiest} has {partners[busiest]} partners and {instance.degree} circuits; nobody forwards"
        return refuses_faint_traffic(instance)

    def scope(self, instance: TopologyInstance) -> str | None:
        """Direct circuits, where servers could forward."""
        return "direct circuits" if instance.host_forwarding else None

    def build(self, block: pyo.Block, instance: TopologyInstance) -> None:
        """Fill ``block``; see the class."""
        n, d = instance.servers, instance.degree
        wanted = instance.traffic_bytes / _unit_bytes(instance)
        pairs = [(int(i), int(j)) for i, j in np.argwhere(wanted > 0)]
        block.SWITCHES = pyo.RangeSet(0, d - 1, doc="switches")
        block.SERVERS = pyo.RangeSet(0, n - 1, doc="servers")
        block.PAIRS = pyo.Set(dimen=2, initialize=pairs, doc="pairs with something to send")
        block.circuit = pyo.Var(block.SWITCHES, block.SERVERS, block.SERVERS, domain=pyo.Binary, doc="i to j by c")
        # All that a server sends over one circuit takes longer than any design: without a lower bound links that leave
        # a pair without circuits would pass for a design of throughput 0.
        least = _unit_bytes(instance) / float(instance.traffic_bytes.max()) * (1 - BOUND_MARGIN)
        block.throughput = pyo.Var(
            bounds=(min(least, float(d)), float(d)), doc="units of time in which the slowest pair is done, inverted"
        )

        @block.Constraint(block.SWITCHES, block.SERVERS, doc="every server transmits once in each switch")
        def transmits_once(b: Any, c: int, i: int) -> Any:
            return _sum(b.circuit[c, i, j] for j in b.SERVERS) == 1

        @block.Constraint(block.SWITCHES, block.SERVERS, doc="every server receives once in each switch")
        def receives_once(b: Any, c: int, j: int) -> Any:
            return _sum(b.circuit[c, i, j] for i in b.SERVERS) == 1

        @block.Constraint(block.PAIRS, doc="the slowest pair sets the pace")
        def pair_keeps_pace(b: Any, i: int, j: int) -> Any:
            return float(wanted[i, j]) * b.throughput <= _sum(b.circuit[c, i, j] for c in b.SWITCHES)

        block.objective = pyo.Expression(expr=block.throughput)

    def start(self, block: pyo.Block, instance: TopologyInstance, solution: TopologyDesign) -> None:
        """Leave everything to the solver."""

    def read(self, block: pyo.Block, instance: TopologyInstance) -> TopologyDesign:
        """The design of direct links.

        Raises
        ------
        SolverError
            If a circuit is set in part, or a pair with something to send has none.
        """
        for key, variable in block.circuit.items():
            if abs(pyo.value(variable) - round(pyo.value(variable))) > INTEGRALITY_TOL:
                raise SolverError(f"circuit[{key}] = {pyo.value(variable):.6g} is not integral; solve to integrality")
        links = {
            (i, j): sum(round(pyo.value(block.circuit[c, i, j])) for c in block.SWITCHES)
            for i in block.SERVERS
            for j in block.SERVERS
            if i != j
        }
        for i, j in block.PAIRS:
            if not links[i, j]:
                raise SolverError(f"'{instance.name}': server {i} has no circuit to {j}; the values describe no design")
        direct = {(i, j): [((i, j), 1.0)] for i, j in block.PAIRS}
        return assemble(instance, links, [], direct)

    def objective_value(self, instance: TopologyInstance, value: float) -> float:
        """Iteration time for a λ; infinite for 0."""
        return instance.iteration_time_s(_unit_bytes(instance) / value) if value > 0 else inf


def max_min_circuits(demand: Floats, degree: int) -> tuple[Ints, float] | None:
    """Optimum of :class:`MaxMinCircuits` by bisection.

    Parameters
    ----------
    demand : (n, n) array
        Bytes, zero diagonal.
    degree : int
        Number of switches.

    Returns
    -------
    circuits : (n, n) array
        Circuits of each pair, none where there is no demand.
    busiest_bytes : float
        The most bytes of a pair for each of its circuits, 0 without demand.
    None
        If a server has more partners than there are switches.
    """
    wanted = demand > 0
    if max(wanted.sum(axis=0).max(), wanted.sum(axis=1).max()) > degree:
        return None
    if not wanted.any():
        return np.zeros(demand.shape, dtype=np.int64), 0.0

    def circuits(busiest: float) -> Ints:
        return np.ceil(demand / busiest * (1 - ROUNDING)).astype(np.int64)

    candidates = np.unique(demand[wanted][:, None] / np.arange(1, degree + 1))
    low, high = 0, len(candidates) - 1
    while low < high:
        middle = (low + high) // 2
        needed = circuits(candidates[middle])
        fits = max(needed.sum(axis=0).max(), needed.sum(axis=1).max()) <= degree
        low, high = (low, middle) if fits else (middle + 1, high)
    return circuits(candidates[low]), float(candidates[low])


def assignment_circuits(demand: Floats, degree: int) -> Ints:
    """(n, n) circuits that maximise Σ demand · circuits: one maximum-weight assignment, ``degree`` times.

    See :class:`MaxMinCircuits` for the proof. Pairs without demand get none.
    """
    circuits = np.zeros(demand.shape, dtype=np.int64)
    sources, targets = linear_sum_assignment(demand, maximize=True)
    circuits[sources, targets] = degree
    circuits[demand <= 0] = 0
    return circuits


def _unit_bytes(instance: TopologyInstance) -> float:
    """What the busiest server sends or receives on each of its links, if they share evenly."""
    return float(instance.node_bytes.max()) / instance.degree


def _sum(variables: Any) -> Any:
    listed = list(variables)
    return LinearExpression(constant=0.0, linear_coefs=[1.0] * len(listed), linear_vars=listed)
