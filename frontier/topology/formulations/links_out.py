"""Whether some load is possible at all, with whole links out of a few servers: a relaxation that refutes loads."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import pyomo.environ as pyo

from ddlopt.models.tolerances import INTEGRALITY_TOL
from ddlopt.models.topology.bounds import hop_bytes_out
from ddlopt.models.topology.formulations.rows.link_choice import add_degrees, most_link_directions
from ddlopt.models.topology.formulations.rows.throughput import add_hops
from ddlopt.models.topology.instance import TopologyInstance
from ddlopt.models.topology.solution import TopologyDesign

_RINGS, _TRAFFIC = range(2)
"""Kinds of flows."""
_ALL_CUTS = 7
"""Members up to which a ring has to leave each set of them; of larger groups the sets that other groups make."""


@dataclass(frozen=True)
class LinksOut:
    r"""What some servers send at least, where no link has more than a load that is given; infeasible if none does.

    Let :math:`\sigma` be a permutation of the n servers, and S a set of servers such that

    * the images :math:`S, \sigma(S), \sigma^2(S), \dots` are n / \|S\| disjoint blocks, which have all servers;
    * :math:`\sigma` takes every all-reduce group to a group with as many bytes;
    * :math:`\sigma` leaves the traffic as it is: :math:`T_{\sigma(s) \sigma(t)} = T_{st}`.

    With :math:`f^s_{ij}` the bytes from s on links from i to j, :math:`m_{ij}` links, :math:`h^k_{st}` the part of
    group k's rings in which t follows s, and C the directions of links,

    .. math::
        \min\ & \textstyle\sum_{s \in S} \sum_{ij} f^s_{ij} \\
        & \textstyle\sum_j m_{ij} \le d,\quad \sum_i m_{ij} \le d,\quad
          m_{ij} \in \{0, 1, \dots\} \text{ for } i \in S \\
        & \textstyle\sum_s f^s_{ij} \le z\, m_{ij},\qquad
          \sum_u f^s_{uv} - \sum_w f^s_{vw} = T_{sv} + \sum_k c_k h^k_{sv} \qquad v \ne s \\
        & \textstyle\sum_t h^k_{st} = \sum_t h^k_{ts} = 1,\qquad
          \sum_{s \in U, t \notin U} h^k_{st} \ge 1 \quad \text{for sets } U \text{ of members} \\
        & \textstyle\sum_{s \in S} \sum_{ij} f^s_{ij} \le \frac{|S|}{n} C z,\qquad
          \sum_s \sum_{ij} f^s_{ij} \le C z .

    **If it is infeasible, every design has more than z bytes on its busiest link.** Take a design with no more. All its
    loads together are at most C z, and they are the sum of what the servers of each block send; so for some block this
    is at most its part. A power of :math:`\sigma` takes that block to S, and the design to one for the same bytes,
    which satisfies all rows. If S has all servers, :math:`\sigma` is the identity.

    Rings and traffic have flows of their own, as traffic takes the hops of the Moore bound at least. The program is for
    jobs that fill all links, where few numbers of links come into question: of 24 choices of strategies for
    ``candle-n12-d4`` 22 are refuted by the links of four servers out of twelve, most without a branch.

    Parameters
    ----------
    load_bytes : float
        z.
    servers : tuple of int
        S. Whoever builds it answers for the permutation.

    Ports
    -----
    ``link[i, j]``, ``links_between[i, j]``
        Number of links from i to j, for duplex optics i < j and both directions; the same for ordered pairs.
    ``hop[k, s, t]``
        Part of group k's gradient on rings where t follows s.
    ``flow[of, s, i, j]``
        What source s has on the links from i to j, of rings (0) or traffic (1), in units of z.
    ``sent``, ``objective``
        Bytes times hops of what S sends, in units of z.
    """

    load_bytes: float
    servers: tuple[int, ...]

    sense: ClassVar[Literal["minimize", "maximize"]] = "minimize"

    def refuses(self, instance: TopologyInstance) -> str | None:
        """Hosts that do not forward; servers that there are not."""
        if not instance.host_forwarding:
            return "nobody forwards"
        if not self.servers or not set(self.servers) <= set(range(instance.servers)):
            return f"servers must be some of the {instance.servers}"
        return None

    def scope(self, instance: TopologyInstance) -> str | None:
        """Designs of that load, and more than these."""
        return f"designs of at most {self.load_bytes:g} bytes on the busiest link"

    def build(self, block: pyo.Block, instance: TopologyInstance) -> None:
        """Fill ``block`` with links, hops of rings, and routes."""
        self._add_links(block, instance)
        groups = range(len(instance.allreduce_groups))
        block.GROUPS = pyo.RangeSet(0, len(groups) - 1, doc="all-reduce groups")
        add_hops(block, instance, None, [1.0 for _ in groups], [1.0 for _ in groups])
        _add_cuts(block, instance)
        self._add_routes(block, instance)
        block.OWN = pyo.Set(initialize=self.servers, doc="servers whose links are whole")
        sent = {s: [block.flow[each] for each in block.FLOWS if each[:2] == (_TRAFFIC, s)] for s in self.servers}
        own = sum(block.flow[each] for each in block.FLOWS if each[1] in block.OWN)
        block.sent = pyo.Expression(expr=own, doc="bytes times hops of what these send")
        block.objective = pyo.Expression(expr=block.sent)
        directions, duplex = most_link_directions(instance), instance.optics == "duplex"

        @block.Constraint(doc="the block sends no more than its part")
        def block_sends_its_part(b: Any) -> Any:
            return b.sent <= directions * len(self.servers) / instance.servers

        @block.Constraint(doc="all links together carry everything")
        def links_carry_everything(b: Any) -> Any:
            return sum(b.flow.values()) <= directions

        @block.Constraint(block.OWN, doc="traffic takes the hops of the Moore bound")
        def hops_are_taken(b: Any, s: int) -> Any:
            return sum(sent[s]) >= hop_bytes_out(instance.traffic_bytes[[s]], instance.degree, duplex) / self.load_bytes

    def _add_routes(self, block: pyo.Block, instance: TopologyInstance) -> None:
        servers, arcs = block.SERVERS, list(itertools.permutations(range(instance.servers), 2))
        traffic = instance.traffic_bytes / self.load_bytes
        rings: dict[tuple[int, int], list[Any]] = {}
        for k, s, t in block.HOPS:
            size = instance.allreduce_groups[k].hop_bytes / self.load_bytes
            rings.setdefault((s, t), []).append(size * block.hop[k, s, t])
        flows = [(of, s, i, j) for of in (_RINGS, _TRAFFIC) for s in servers for i, j in arcs if j != s]
        block.FLOWS = pyo.Set(dimen=4, initialize=flows, doc="(0 rings, 1 traffic; source, tail, head)")
        block.flow = pyo.Var(block.FLOWS, bounds=(0, None), doc="units that a source has on links between two servers")

        @block.Constraint((_RINGS, _TRAFFIC), arcs, doc="what is sent arrives")
        def flow_is_conserved(b: Any, of: int, s: int, v: int) -> Any:
            arriving = sum(b.flow[of, s, u, v] for u in servers if u != v)
            leaving = sum(b.flow[of, s, v, w] for w in servers if w not in (s, v))
            return arriving - leaving == (float(traffic[s, v]) if of == _TRAFFIC else sum(rings.get((s, v), [])))

        @block.Constraint(arcs, doc="links carry their load")
        def links_carry_their_load(b: Any, i: int, j: int) -> Any:
            load = sum(b.flow[of, s, i, j] for of in (_RINGS, _TRAFFIC) for s in servers if s != j)
            return load <= b.links_between[i, j]

    def _add_links(self, block: pyo.Block, instance: TopologyInstance) -> None:
        duplex, some = instance.optics == "duplex", set(self.servers)
        pairs = list(itertools.permutations(range(instance.servers), 2))
        block.SERVERS = pyo.RangeSet(0, instance.servers - 1, doc="servers")
        ends = [(i, j) for i, j in pairs if i < j or not duplex]
        block.LINKS = pyo.Set(dimen=2, initialize=ends, doc="pairs that a link may join")

        def domain(_: Any, i: int, j: int) -> Any:
            return pyo.NonNegativeIntegers if i in some or (duplex and j in some) else pyo.NonNegativeReals

        block.link = pyo.Var(block.LINKS, domain=domain, bounds=(0, instance.most_links_of_a_pair), doc="links laid")

        @block.Expression(pairs, doc="links from i to j")
        def links_between(b: Any, i: int, j: int) -> Any:
            return b.link[min(i, j), max(i, j)] if duplex else b.link[i, j]

        add_degrees(block, instance)

    def start(self, block: pyo.Block, instance: TopologyInstance, solution: TopologyDesign) -> None:
        """Nothing: no design is looked for."""

    def read(self, block: pyo.Block, instance: TopologyInstance) -> tuple[tuple[int, int, int], ...]:
        """Links (i, j, count) out of these servers, with i < j for duplex optics; the values describe no design."""
        whole = block.link.items()
        return tuple((*pair, round(x.value)) for pair, x in whole if x.is_integer() and x.value > INTEGRALITY_TOL)

    def objective_value(self, instance: TopologyInstance, value: float) -> float:
        """Bytes times hops."""
        return value * self.load_bytes


def _add_cuts(block: pyo.Block, instance: TopologyInstance) -> None:
    members = [each.members for each in instance.allreduce_groups]
    cuts = [(k, *some) for k in block.GROUPS for some in sets_to_leave(members, k)]

    @block.Constraint(range(len(cuts)), doc="rings leave every set of their members")
    def rings_are_closed(b: Any, place: int) -> Any:
        k, *some = cuts[place]
        rest = set(instance.allreduce_groups[k].members) - set(some)
        return sum(b.hop[k, s, t] for s in some for t in rest) >= 1


def sets_to_leave(groups: Sequence[tuple[int, ...]], k: int) -> Iterator[tuple[int, ...]]:
    """Three and more members of group k that a ring has to leave; what is left of the others is one of the sets."""
    members = groups[k]
    if len(members) <= _ALL_CUTS:
        for size in range(3, len(members) // 2 + 1):
            yield from itertools.combinations(members, size)
        return
    parts = {tuple(sorted(set(members) & set(each))) for each in groups}
    unions = {tuple(sorted({*one, *other})) for one, other in itertools.combinations(parts, 2)}
    yield from sorted(some for some in parts | unions if 3 <= len(some) <= len(members) - 3)
