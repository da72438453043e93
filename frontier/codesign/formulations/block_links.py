"""The bound for every topology once more, with links, rings and routes inside one block of servers."""

import math
from dataclasses import dataclass
from typing import Any

import pyomo.environ as pyo

from ddlopt.frontier.codesign.formulations.block_network import BlockNetwork
from ddlopt.frontier.codesign.one_block import one_block
from ddlopt.models.codesign.demand import demand_of
from ddlopt.models.codesign.formulations.rows.strategy_choice import linear
from ddlopt.models.codesign.formulations.strategy_bound import StrategyBound
from ddlopt.models.codesign.instance import CodesignInstance
from ddlopt.models.codesign.iteration_time import time_unit_s
from ddlopt.models.codesign.tables import tables_of
from ddlopt.models.tolerances import SOLVER_TOL


@dataclass(frozen=True)
class BlockLinks(StrategyBound):
    r""":class:`~.StrategyBound`, and one block of servers with whole links inside, rings, and routes over these.

    Let the servers be parted into n/k blocks B that a permutation takes to each other, so that sets and patterns which
    it leaves as they are look alike from every block. Of all others only their bytes times hops count, a k-th of n
    each. All servers outside the block are drawn together to one, o, from which and to which each server s of the block
    has the links that are left of its d:

    .. math::
        & \textstyle\sum_i f^i_{uv} \le z\, m_{uv}, \qquad
          \sum_i f^i_{uo} \le z \bigl(d - \sum_v m_{uv}\bigr), \qquad
          \sum_i f^i_{ou} \le z \bigl(d - \sum_v m_{vu}\bigr) \\
        & \textstyle\sum_w f^i_{wv} - \sum_w f^i_{vw} = \sum_g h^g_{iv} + \sum_p m_p U_{p,iv}
          \quad \text{for all } i \ne v \\
        & \textstyle\sum_v h^g_{uv} = \sum_v h^g_{vu} = \sum_{q \ni g} \rho_q r_q, \qquad
          \sum_{u \in S, v \notin S} h^g_{uv} \ge \sum_{q \ni g} \rho_q r_q \ \ \text{for sets } S \text{ of them} \\
        & \tfrac kn\, \mathcal{C} z \ge \textstyle\sum_{i \in B} \sum_{uv} f^i_{uv}
          + \tfrac kn \bigl(\text{bytes times hops of all others} + \sum_s e_s\bigr)

    with :math:`f^i` what servers i (or, for o, all others) send over links between u and v, and :math:`h^g` what rings
    of group g send from a member to the next. In the last row the traffic's part of f may be replaced by its least
    bytes times hops.

    **It holds for every topology.** Take any design. What it carries, drawn together, satisfies the first rows for
    every block: a path gets no longer, a ring leaves every set of its members, and a server has d links. All loads
    together are at most :math:`\mathcal{C} z`; those of what servers of a block send add up over the blocks, so for
    some block they are at most the k-th part of n of what the rest leaves, the last row. The permutation takes that
    block to B, where the same strategies want the same.

    The rows see that three bytes exchanged in a pair and five links out of a block of four leave one pair of servers
    without a link, whose bytes take two hops, which :class:`~.WholePorts` with its numbers of links does not.

    The products :math:`z\, m_{uv}` are linear in what the c-th link carries, z or, without the link, nothing, as no
    plan of interest has z above Z.

    Parameters
    ----------
    servers : tuple of int
        The block; without servers nothing is added.
    image : tuple of int
        Where the permutation takes each server.
    most_s : float
        Only plans of at most this iteration time are of interest.

    Ports
    -----
    ``strategy[l, a]``, ``transition[e, a, b]``, ``compute``, ``reduced[q]``, ``moved[p]``
        As of :func:`~ddlopt.models.codesign.formulations.rows.strategy_choice.add_strategies`: strategies of layers and
        of the ends of edges, compute time, gradient bytes of group sets and bytes of patterns; all here in units of
        :func:`~ddlopt.models.codesign.iteration_time.time_unit_s`.
    ``share[i]``, ``congestion``
        As of ``StrategyBound``.
    ``links[u, v, c]`` : with ``servers``
        Whether there is a c-th link from the u-th server of the block to the v-th.
    ``time``, ``objective``
        C + z or the larger of them, to be minimised.
    """

    servers: tuple[int, ...] = ()
    image: tuple[int, ...] = ()
    most_s: float = math.inf

    def refuses(self, instance: CodesignInstance) -> str | None:
        """Blocks that are none, or have no limit."""
        if self.servers and (self.network != "any" or math.isinf(self.most_s)):
            return "links in a block need a limit of time, and are none of a switch"
        if self.servers and not _are_blocks(instance.servers, self.servers, self.image):
            return "the images of the block are no blocks of all servers"
        return super().refuses(instance)

    def build(self, block: pyo.Block, instance: CodesignInstance) -> None:
        """Fill ``block`` with the rows of ``StrategyBound``, and these."""
        super().build(block, instance)
        if not self.servers:
            return
        tables, demand = tables_of(instance), demand_of(tables_of(instance))
        largest = self.most_s * (1 + SOLVER_TOL) / time_unit_s(instance)
        block.time.setub(largest)
        seen, part = one_block(tables, self.servers, self.image), len(self.servers) / instance.servers
        network = BlockNetwork(block, instance, seen, largest)
        network.add()
        beside = [(value / demand.weights[i], block.share[i]) for i, value in enumerate(seen.beside.tolist())]
        beside += [(part, block.excess[s]) for s in block.UNEVEN]
        beside += [(-part * demand.capacity, block.congestion), *network.sent("rings")]

        @block.Constraint(doc="of what a block sends, with all others' part, no more than its part is carried")
        def block_carries_its_part(b: Any) -> Any:
            return linear([*beside, *network.sent("traffic")]) <= 0

        @block.Constraint(doc="the same with the least hops of traffic")
        def block_carries_hops(b: Any) -> Any:
            return linear([*beside, *network.least_hops()]) <= 0


def _are_blocks(n: int, servers: tuple[int, ...], image: tuple[int, ...]) -> bool:
    """Whether the images of a set under the powers of a permutation are blocks of all."""
    if sorted(image) != list(range(n)) or len(set(servers)) != len(servers) or not set(servers) < set(range(n)):
        return False
    left, here = set(range(n)), set(servers)
    while here <= left:
        left -= here
        here = {image[s] for s in here}
    return not left and here == set(servers)
