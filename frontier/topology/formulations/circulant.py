"""Symmetric designs: every server has the same links, seen from where it stands."""

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Literal

import pyomo.environ as pyo

from ddlopt.frontier.topology.collapse import Collapse, collapse
from ddlopt.frontier.topology.symmetry.cayley import AbelianGroup
from ddlopt.models.contracts import Instance
from ddlopt.models.covering import FormulationBase
from ddlopt.models.errors import NotApplicableError, SolverError
from ddlopt.models.tolerances import BOUND_MARGIN, INTEGRALITY_TOL
from ddlopt.models.topology.formulations.rows.throughput import unit_bytes
from ddlopt.models.topology.instance import TopologyInstance
from ddlopt.models.topology.solution import TopologyDesign


@dataclass(frozen=True)
class CirculantDesign(FormulationBase):
    r"""Links, rings and routes of least congestion among the Cayley graphs of one abelian group.

    The servers are the elements of an abelian group :math:`\Gamma` of order n (:math:`Z_n` unless ``invariants`` say
    otherwise), and a *generator* g links every server x to x + g. The traffic must look the same from every server,
    :math:`T_{x, x+v} = \tau_v`, and an all-reduce over the cosets of a subgroup must have the same bytes in each coset;
    its rings are the :math:`x \mapsto x + p` for those p that generate the subgroup.

    *Collapse.* Take any routing over such links and average its n translations: a routing again, whose busiest link is
    not busier, for link counts do not change under translation. In the average all servers do the same, so the
    n (n-1) commodities become one: the flow :math:`f_{u,g}` of what server 0 sends, over the link from u to u + g, and
    the load of every link of generator g is :math:`\sum_u f_{u,g}`.

    *Throughput form.* With :math:`\lambda = 1/z` the inverse of the busiest link's load, and flows and ring shares
    scaled by :math:`\lambda`, the load of g is at most its number of links, which is linear with parallel links, too:

    .. math::
        \max\; \lambda \quad \text{s.t.} \quad
        & \sum_g f_{v-g,\,g} - \sum_g f_{v,g} = \lambda \tau_v + \sum_k c_k\, \alpha_{k,v} && v \ne 0 \\
        & \textstyle\sum_p \alpha_{k,p} = \lambda && k \text{ a reduction} \\
        & \textstyle\sum_u f_{u,g} \le w_g && g \in \Gamma \setminus 0 \\
        & \textstyle\sum_g w_g \le d, \quad w_g \in \{0, 1, \dots\} \\
        & \lambda \le d\, U / H .

    Bytes are measured in U, what a server sends divided by its d links. H is the least bytes times hops: an abelian
    group has few sums of h generators (``abelian_level_sizes``), which far outdoes what the rest of the relaxation
    knows. Duplex optics have :math:`w_g = w_{-g}`, and inside a subgroup of odd order m links use at most d (m-1)/m
    interfaces of a server, because a plane is a matching; n odd leaves d - 1.

    *Symmetry* (``led``). An automorphism of the group that preserves :math:`\tau` and the reductions maps designs to
    designs of equal load. Order their orbits on the generators, with a leader in each. In some optimal design the first
    orbit that is used has no generator with more links than its leader, so :math:`w_g \le w_{l_i} + d \sum_{j<i}
    w_{l_j}` for g in orbit i.

    ==================== ===========================================================================
    symbol               component
    ==================== ===========================================================================
    :math:`\lambda`      ``throughput``, in units of 1 / U
    :math:`w_g`          ``links[g]``, g = min(g, -g) for duplex optics
    :math:`f_{u,g}`      ``flow[u, g]``, fraction of a link
    :math:`\alpha_{k,p}` ``share[k, p]``, scaled by the throughput
    ==================== ===========================================================================

    *What a host must not couple to.* With ``led``, which of the generators that traffic does not tell apart have links,
    as prices of its own may.

    Parameters
    ----------
    invariants : tuple of int, optional
        Orders of the cyclic factors of the group, e.g. ``(4, 4)`` for a torus; ``(n,)``, circulants, if None.
    ring_capable : bool
        Use only links whose generator is a ring through all servers (those prime to n), as TopoOpt's rings do.
    led : bool
        Whether to break the symmetry of generators that the traffic does not tell apart.

    Ports
    -----
    ``links[g]``
        Number of links of each server to the one at offset g; for duplex optics g stands for -g, too.
    ``flow[u, g]``, ``share[k, p]``
        f and α, scaled by the throughput.
    ``throughput``, ``objective``
        U over the load of the busiest link, to be maximised.

    References
    ----------
    W. Wang et al., "TopoOpt", NSDI 2023, for rings as generators; R. Bödi, T. Grundhöfer and K. Herr, "Symmetries of
    linear programs", Note di Matematica 30, 2010, for the averaging; F. Margot, "Symmetry in integer linear
    programming", in 50 Years of Integer Programming, 2010, for orbits. The formulation is ours.
    """

    invariants: tuple[int, ...] | None = None
    ring_capable: bool = False
    led: bool = True

    covers: ClassVar[type[Instance]] = TopologyInstance
    sense: ClassVar[Literal["minimize", "maximize"]] = "maximize"

    def __post_init__(self) -> None:
        if self.invariants is not None:
            AbelianGroup(self.invariants)

    def _collapse(self, instance: TopologyInstance) -> Collapse | str:
        return _collapsed(instance, self.invariants or (instance.servers,), self.ring_capable)

    def collapsed(self, instance: TopologyInstance) -> Collapse:
        """The instance as seen from server 0.

        Raises
        ------
        NotApplicableError
            If it does not look the same from every server.
        """
        found = self._collapse(instance)
        if isinstance(found, str):
            raise NotApplicableError(f"'{instance.name}': {found}")
        return found

    def refuses(self, instance: TopologyInstance) -> str | None:
        """Why the instance does not look the same from every server; None if it does."""
        found = self._collapse(instance)
        return found if isinstance(found, str) else None

    def scope(self, instance: TopologyInstance) -> str:
        """Designs of the group alone; with an all-reduce also its rings are of that kind."""
        invariants = self.invariants or (instance.servers,)
        links = "circulant" if len(invariants) == 1 else f"Cayley graph of {AbelianGroup(invariants)}"
        if self.ring_capable:
            links += " of ring generators"
        return f"{links} with generator rings" if instance.allreduce_groups else links

    def build(self, block: pyo.Block, instance: TopologyInstance) -> None:
        """Fill ``block`` with the throughput form.

        Raises
        ------
        NotApplicableError
            If the instance does not look the same from every server.
        """
        this = self.collapsed(instance)
        group, unit, most = this.group, unit_bytes(instance), instance.most_links_of_a_pair
        class_of = {g: c.generator for c in this.classes for g in c.directions}
        used = {c.generator: c.interfaces for c in this.classes}
        starts = range(group.order) if instance.host_forwarding else (0,)
        end = {(u, g): int(group.add(u, g)) for u in starts for g in class_of}
        into: dict[int, list[tuple[int, int]]] = {v: [] for v in range(group.order)}
        out: dict[int, list[tuple[int, int]]] = {v: [] for v in range(group.order)}
        for arc, v in end.items():
            if v:
                into[v].append(arc)
                out[arc[0]].append(arc)

        block.OFFSETS = pyo.Set(initialize=range(1, group.order), doc="servers other than 0")
        block.GENERATORS = pyo.Set(initialize=sorted(used), doc="generators, one of each class")
        block.DIRECTIONS = pyo.Set(initialize=sorted(class_of), doc="offsets that links may lead to")
        block.ARCS = pyo.Set(initialize=[arc for arc, v in end.items() if v], dimen=2, doc="server u, generator g")
        block.REDUCTIONS = pyo.RangeSet(0, len(this.reductions) - 1, doc="subgroups that reduce")
        block.RINGS = pyo.Set(
            initialize=[(k, p) for k, reduction in enumerate(this.reductions) for p in reduction.generators],
            dimen=2,
            doc="reduction, ring generator",
        )
        # No simple path has more than n - 1 hops; without a lower bound sending nothing would pass for a design.
        total = float(this.offset_bytes.sum()) + sum(reduction.hop_bytes for reduction in this.reductions)
        least = unit / (total * (group.order - 1))
        block.throughput = pyo.Var(
            bounds=(least * (1 - BOUND_MARGIN), unit / this.least_load_bytes * (1 + BOUND_MARGIN)),
            doc="load of links that a server uses evenly over that of the busiest",
        )
        block.links = pyo.Var(
            block.GENERATORS, domain=pyo.NonNegativeIntegers, bounds=(0, most), doc="links of a server"
        )
        block.flow = pyo.Var(block.ARCS, domain=pyo.NonNegativeReals, doc="sent by server 0, from u to u + g")
        block.share = pyo.Var(block.RINGS, domain=pyo.NonNegativeReals, doc="part of a gradient on ring +p, scaled")

        @block.Constraint(block.OFFSETS, doc="what server 0 sends to v arrives")
        def flow_is_conserved(b: pyo.Block, v: int) -> pyo.Expression:
            reduced = sum(this.reductions[k].hop_bytes / unit * b.share[k, p] for k, p in b.RINGS if p == v)
            arrives = sum(b.flow[arc] for arc in into[v]) - sum(b.flow[arc] for arc in out[v])
            return arrives == float(this.offset_bytes[v]) / unit * b.throughput + reduced

        @block.Constraint(block.REDUCTIONS, doc="the rings carry the whole gradient")
        def gradient_is_shared_out(b: pyo.Block, k: int) -> pyo.Expression:
            return sum(b.share[k, p] for p in this.reductions[k].generators) == b.throughput

        @block.Constraint(block.DIRECTIONS, doc="links carry the load of their generator")
        def load_is_carried(b: pyo.Block, g: int) -> pyo.Expression:
            return sum(b.flow[u, g] for u in starts if (u, g) in b.ARCS) <= b.links[class_of[g]]

        @block.Constraint(doc="interfaces of a server")
        def degree_is_respected(b: pyo.Block) -> pyo.Expression:
            return sum(used[g] * b.links[g] for g in b.GENERATORS) <= this.interfaces

        odd = [(limit, [g for g in subgroup if g in used]) for subgroup, limit in this.odd_subgroups.items()]
        block.ODD = pyo.Set(initialize=[i for i, (_, inside) in enumerate(odd) if inside], doc="subgroups of odd order")

        @block.Constraint(block.ODD, doc="a matching leaves out one of an odd number")
        def planes_are_matchings(b: pyo.Block, i: int) -> pyo.Expression:
            return sum(used[g] * b.links[g] for g in odd[i][1]) <= odd[i][0]

        block.objective = pyo.Expression(expr=block.throughput)
        if not self.led:
            return
        leaders = _leaders(this)
        block.FOLLOWERS = pyo.Set(initialize=[g for g in sorted(used) if leaders[g][-1] != g], doc="not first in orbit")

        @block.Constraint(block.FOLLOWERS, doc="the first orbit that is used is led by its leader")
        def leader_comes_first(b: pyo.Block, g: int) -> pyo.Expression:
            *earlier, leader = leaders[g]
            return b.links[g] <= b.links[leader] + most * sum(b.links[other] for other in earlier)

    def start(self, block: pyo.Block, instance: TopologyInstance, solution: TopologyDesign) -> None:
        """Set ``links`` if the design's links look the same from every server; flows are left to the solver."""
        this = self.collapsed(instance)
        group, counts = this.group, solution.link_counts(instance)
        seen = {g: c for (x, g), c in counts.items() if x == 0}
        if counts != {(x, int(group.add(x, g))): c for g, c in seen.items() for x in range(group.order)}:
            return
        for image in this.class_symmetries:
            links = {int(image[g]): c for g, c in seen.items()}
            if not self.led or _led_by_leaders(this, links, instance.most_links_of_a_pair):
                for g in block.GENERATORS:
                    block.links[g].set_value(links.get(g, 0))
                return

    def read(self, block: pyo.Block, instance: TopologyInstance) -> TopologyDesign:
        """The design whose links, rings and paths are the translations of those of server 0.

        Raises
        ------
        SolverError
            If a number of links is not integral or nothing gets through.
        """
        this = self.collapsed(instance)
        throughput = pyo.value(block.throughput)
        if not throughput > 0:
            raise SolverError(f"'{instance.name}': no traffic gets through (throughput {throughput:g})")
        links = {}
        for g in block.GENERATORS:
            value = pyo.value(block.links[g])
            links[g] = round(value)
            if abs(value - links[g]) > INTEGRALITY_TOL:
                raise SolverError(f"links[{g}] = {value:.9f} is not an integer; solve to integrality")
        scale = unit_bytes(instance) / throughput
        flow = {arc: scale * pyo.value(block.flow[arc]) for arc in block.ARCS}
        shares = [
            {p: share / throughput for p in reduction.generators if (share := pyo.value(block.share[k, p])) > 0}
            for k, reduction in enumerate(this.reductions)
        ]
        return this.design({g: c for g, c in links.items() if c}, flow, shares)

    def objective_value(self, instance: TopologyInstance, value: float) -> float:
        """Iteration time in seconds at a throughput."""
        return float(instance.iteration_time_s(unit_bytes(instance) / value))


@lru_cache(maxsize=8)
def _collapsed(instance: TopologyInstance, invariants: tuple[int, ...], ring_capable: bool) -> Collapse | str:
    return collapse(instance, AbelianGroup(invariants), ring_capable)


def _leaders(this: Collapse) -> dict[int, list[int]]:
    """Of each generator class the leaders of its orbit and of those before it, its own last."""
    own = {c.generator: int(this.class_symmetries[:, c.generator].min()) for c in this.classes}
    return {g: [leader for leader in sorted(set(own.values())) if leader <= own[g]] for g in own}


def _led_by_leaders(this: Collapse, links: dict[int, int], most: int) -> bool:
    leaders = _leaders(this)
    return all(
        links.get(g, 0) <= links.get(own, 0) + most * sum(links.get(leader, 0) for leader in earlier)
        for g, (*earlier, own) in leaders.items()
    )
