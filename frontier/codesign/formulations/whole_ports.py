"""The bound for every topology once more, with ports that are whole: a link leads to one server only."""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyomo.environ as pyo

from ddlopt.models.codesign.demand import demand_of, ring_factor
from ddlopt.models.codesign.formulations.rows.strategy_choice import linear
from ddlopt.models.codesign.formulations.strategy_bound import StrategyBound
from ddlopt.models.codesign.instance import CodesignInstance
from ddlopt.models.codesign.iteration_time import time_unit_s
from ddlopt.models.codesign.tables import Tables, tables_of
from ddlopt.models.tolerances import SOLVER_TOL


@dataclass(frozen=True)
class ServerClass:
    """Servers that all-reduces cannot tell apart: they see the same kinds of others, and send as much of every set.

    Parameters
    ----------
    servers : tuple of int
    kinds : tuple of frozenset of int
        Kinds of other servers: the sets in which one of them shares a group with the server. Kinds that another kind
        contains are left out.
    sizes : dict of int to int
        Members of the server's group of each set in which it is in one. Groups of one set need not have one size.
    """

    servers: tuple[int, ...]
    kinds: tuple[frozenset[int], ...]
    sizes: Mapping[int, int]


@dataclass(frozen=True)
class WholePorts(StrategyBound):
    r""":class:`~.StrategyBound`, and that bytes take two hops where no link is.

    In its volume row every hop of a ring takes one link. But a server has d links, each to one other server: if it
    all-reduces 2.4 z bytes in its block and 1.5 z in its coset, three links lead into the block and one into the coset,
    or two and two, and either way some bytes find no link and take at least two. Let the other servers be of kinds κ,
    by the sets in which they share a group with server s, :math:`m_{s\kappa}` the number of links to servers of that
    kind, and :math:`y_{s\kappa q}` the bytes of set q that s sends over these links to the next member of a ring. Then

    .. math::
        & \textstyle\sum_\kappa m_{s\kappa} \le d, \qquad
          \sum_{q \in \kappa} y_{s\kappa q} \le m_{s\kappa} z, \qquad
          \sum_{\kappa \ni q} y_{s\kappa q} \le \rho_{sq} r_q \\
        & \mathcal{C} z \ge \textstyle\sum_{sq} \bigl(2 \rho_{sq} r_q - \sum_\kappa y_{s\kappa q}\bigr)
          + \sum_p H_p m_p + \sum_s e_s .

    Servers of a class see the same kinds *and* have the same :math:`\rho_{sq}` for all q: their groups of a set are
    equally large. Then they have the same m and y here, and nothing is lost by that. **Proof.** The first three rows
    speak of one server at a time, and are the same for all servers of a class. Let a plan give :math:`(m_s, y_s)` to
    each, and let s' be the one of the class with the largest :math:`\sum_{\kappa q} y_{s \kappa q}`. Give its
    :math:`(m_{s'}, y_{s'})` to all of the class: the rows of each hold, as they are those of s', and the right-hand
    side of the last one does not grow. Nothing is asked of servers together but the last row. ∎ Where the groups have
    other sizes, the third row is another one, and this fails: such servers are in classes of their own. A server in no
    group sees no kind and has no rows.

    A kind that another one contains is left out: a link to a server of the larger kind may carry the bytes of the same
    sets and of more, and no row says how many servers of a kind there are.

    The product is linear in capacities :math:`c_{s\kappa k} \le z` of the k-th link of a kind,
    :math:`c_{s\kappa k} \le Z u_{s\kappa k}` with binary u, as no plan of interest has z above Z; they sum to at most
    d z.

    Parameters
    ----------
    most_s : float or None
        Only plans of at most this iteration time are of interest; None for all plans, where nothing is added.
    detour_hops : float
        Links that bytes without one of their own take. With more than 2 the program proposes strategies whose bytes
        suit the ports, but its optimum is no bound.

    Ports
    -----
    ``strategy[l, a]``, ``transition[e, a, b]``, ``compute``, ``reduced[q]``, ``moved[p]``
        As of :func:`~ddlopt.models.codesign.formulations.rows.strategy_choice.add_strategies`: strategies of layers and
        of the ends of edges, compute time, gradient bytes of group sets and bytes of patterns; all here in units of
        :func:`~ddlopt.models.codesign.iteration_time.time_unit_s`.
    ``share[i]``, ``congestion``
        As of ``StrategyBound``.
    ``links[c, κ, k]`` : with ``most_s``
        u of server class c.
    ``time``, ``objective``
        C + z or the larger of them, to be minimised.
    """

    most_s: float | None = None
    detour_hops: float = 2.0

    def build(self, block: pyo.Block, instance: CodesignInstance) -> None:
        """Fill ``block`` with the rows of ``StrategyBound``, and these."""
        super().build(block, instance)
        if self.most_s is None or math.isinf(self.most_s):
            return
        largest = self.most_s * (1 + SOLVER_TOL) / time_unit_s(instance)
        block.time.setub(largest)
        if self.network == "any" and instance.host_forwarding and tables_of(instance).groups_of:
            _add_ports(block, instance, largest, self.detour_hops - 1)


def server_classes(tables: Tables, parallel_links: bool) -> tuple[ServerClass, ...]:
    """Servers by what groups they share with others; those in no group are left out, as nothing is known of them."""
    n, d = tables.instance.servers, tables.instance.degree
    shared: list[list[set[int]]] = [[set() for _ in range(n)] for _ in range(n)]
    for place, groups in enumerate(tables.groups_of):
        for group in groups:
            members = tables.groups[group]
            for s in members:
                for t in members:
                    if s != t:
                        shared[s][t].add(place)
    sizes: list[dict[int, int]] = [{} for _ in range(n)]
    for place, groups in enumerate(tables.groups_of):
        for group in groups:
            for s in tables.groups[group]:
                sizes[s][place] = len(tables.groups[group])
    classes: dict[tuple[tuple[frozenset[int], ...], tuple[tuple[int, int], ...]], list[int]] = {}
    for s in range(n):
        if not sizes[s]:
            continue
        counts = Counter(frozenset(kind) for kind in shared[s] if kind)
        # A link to a server of a larger kind is worth as much; there must be enough of those, or parallel links.
        kinds = [
            kind
            for kind in counts
            if not any(kind < other and (parallel_links or counts[other] >= d) for other in counts)
        ]
        classes.setdefault((tuple(sorted(kinds, key=sorted)), tuple(sizes[s].items())), []).append(s)
    return tuple(ServerClass(tuple(servers), kinds, dict(of)) for (kinds, of), servers in classes.items())


def _add_ports(block: pyo.Block, instance: CodesignInstance, largest: float, further: float) -> None:
    tables, d = tables_of(instance), instance.degree
    demand = demand_of(tables)
    classes = server_classes(tables, instance.parallel_links)
    weights = demand.weights
    factors = [{q: ring_factor(size) / weights[q] for q, size in each.sizes.items()} for each in classes]
    kinds = [(c, kind) for c, each in enumerate(classes) for kind in range(len(each.kinds))]
    direct = [(c, kind, q) for c, kind in kinds for q in sorted(classes[c].kinds[kind])]
    reduced_here = sorted({(c, q) for c, _, q in direct})
    block.LINKS = pyo.Set(
        dimen=3, initialize=[(c, kind, k) for c, kind in kinds for k in range(d)], doc="possible links"
    )
    block.DIRECT = pyo.Set(dimen=3, initialize=direct, doc="(class, kind, set) with bytes that may take one hop")
    block.links = pyo.Var(block.LINKS, domain=pyo.Binary, doc="the link leads to a server of the kind")
    block.carried = pyo.Var(block.LINKS, bounds=(0, None), doc="what it can carry")
    block.direct = pyo.Var(block.DIRECT, bounds=(0, None), doc="bytes of a set that take one hop to the kind")
    every = range(len(classes))
    of_class = {c: [(kind, k) for other, kind in kinds if other == c for k in range(d)] for c in every}

    @block.Constraint(every, doc="a server has d links")
    def links_are_within_the_degree(b: Any, c: int) -> Any:
        return linear((1.0, b.links[c, kind, k]) for kind, k in of_class[c]) <= d

    @block.Constraint(every, doc="all of them together carry d times the busiest")
    def ports_carry_the_busiest(b: Any, c: int) -> Any:
        return linear([*((1.0, b.carried[c, kind, k]) for kind, k in of_class[c]), (-float(d), b.congestion)]) <= 0

    @block.Constraint(block.LINKS, doc="a link that is there carries at most the busiest")
    def links_carry_the_busiest(b: Any, c: int, kind: int, k: int) -> Any:
        return linear([(1.0, b.carried[c, kind, k]), (-1.0, b.congestion)]) <= 0

    @block.Constraint(block.LINKS, doc="a link that is not there carries nothing")
    def missing_links_carry_nothing(b: Any, c: int, kind: int, k: int) -> Any:
        return linear([(1.0, b.carried[c, kind, k]), (-largest, b.links[c, kind, k])]) <= 0

    @block.Constraint(block.LINKS, doc="the links of a kind are there in order")
    def links_come_in_order(b: Any, c: int, kind: int, k: int) -> Any:
        return pyo.Constraint.Skip if k == 0 else b.links[c, kind, k] <= b.links[c, kind, k - 1]

    @block.Constraint(kinds, doc="what takes one hop fits into the links")
    def direct_bytes_fit(b: Any, c: int, kind: int) -> Any:
        sent = [(1.0, b.direct[c, kind, q]) for q in sorted(classes[c].kinds[kind])]
        return linear([*sent, *((-1.0, b.carried[c, kind, k]) for k in range(d))]) <= 0

    @block.Constraint(reduced_here, doc="no more takes one hop than is reduced")
    def direct_bytes_are_reduced(b: Any, c: int, q: int) -> Any:
        sent = [(1.0, b.direct[c, kind, q]) for kind, members in enumerate(classes[c].kinds) if q in members]
        return linear([*sent, (-factors[c][q], b.share[q])]) <= 0

    volume = demand.hop_bytes / weights
    for c, q in reduced_here:
        volume[q] += further * len(classes[c].servers) * factors[c][q]
    terms = [(value / demand.capacity, block.share[i]) for i, value in enumerate(volume.tolist())]
    terms += [(-further * len(classes[c].servers) / demand.capacity, block.direct[c, kind, q]) for c, kind, q in direct]
    terms += [(1 / demand.capacity, block.excess[server]) for server in block.UNEVEN]
    block.detours_are_carried = pyo.Constraint(
        expr=linear([*terms, (-1.0, block.congestion)]) <= 0, doc="links carry two hops of what has no link"
    )
