"""The best use of one slot where servers are equal: these are counted by what is on them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf
from typing import Any

import numpy as np
import pyomo.environ as pyo

from ddlopt.frontier.scheduling.formulations.server_patterns.pattern_counts import (
    add_patterns,
    read_patterns,
    start_patterns,
)
from ddlopt.frontier.scheduling.formulations.server_patterns.server_patterns import Patterns, server_patterns
from ddlopt.models.scheduling.formulations.on_servers import whole
from ddlopt.models.scheduling.formulations.slot_embedding.places import Links, Places, ServerByServer
from ddlopt.models.scheduling.formulations.slot_embedding.slot_embedding import SlotEmbedding
from ddlopt.models.scheduling.formulations.slot_embedding.widths import SlotData
from ddlopt.models.scheduling.formulations.tree_cuts import nested_cuts
from ddlopt.models.scheduling.instance import SchedulingInstance
from ddlopt.models.scheduling.pool import Workers
from ddlopt.models.scheduling.rings.rings import Ring


@dataclass(frozen=True)
class CountedSlot(SlotEmbedding):
    """Which jobs run in one slot, how wide, where and over which rings, whatever equal servers are called.

    It is :class:`~ddlopt.models.scheduling.formulations.slot_embedding.slot_embedding.SlotEmbedding`, but where all
    workers take the same and some servers are equal, these are counted by what is on them
    (:mod:`~ddlopt.frontier.scheduling.formulations.server_patterns.pattern_counts`). Its places are groups of servers
    then. Elsewhere the two are the same.

    *What a host must not couple to.* Which of equal servers is which.

    Ports
    -----
    ``width[i, w]``, ``runs[i]``
        1 if job i has w workers; whether it has any. Jobs and widths that gain nothing are left out.
    ``workers[i, r]`` : several groups of servers
        Workers of job i, which has a ring, in group r.
    ``split[i, u]`` : several groups of servers
        1 if cut u separates workers of job i.
    ``passes[i, u, v]`` : where the network has a core
        How often the ring of job i passes over the arc from u to v.
    ``smallest_part`` : objective ``max_min``
        z in units of the part that the job which the slot brings least far comes to alone.
    ``objective``
        Gain in units, to be maximised.

    References
    ----------
    P. C. Gilmore, R. E. Gomory, "A linear programming approach to the cutting-stock problem", Operations Research 9,
    1961, for the counting by patterns.
    """

    def where(self, instance: SchedulingInstance, data: SlotData) -> Places:
        """Servers counted, where that saves something and patterns are few."""
        places = super().where(instance, data)
        if self.places == "servers" or not isinstance(places, ServerByServer):
            return places
        groups, bandwidth, links = _grouped(places.links)
        found = server_patterns(instance, data, groups, bandwidth, rings=instance.needs_rings)
        if isinstance(found, str) or not any(len(one.servers) > 1 for group in found.groups for one in group):
            return places
        return _Counted(data, found, links)


def _grouped(links: Links) -> tuple[list[list[int]], dict[int, float], Links]:
    """Groups of servers that no link but their own tells apart, bandwidth of these, and the links between groups."""
    core, own = links.core, {cut.servers[0]: cut.bandwidth_bytes_per_s for cut in links.cuts if len(cut.servers) == 1}
    if core is not None:
        groups = [list(servers) for servers in core.stations.values()]
        own = {server: rate for server, rate in own.items() if rate < inf}
        several: dict[tuple[int, ...], float] = {(r,): inf for r in range(len(groups))} if len(groups) > 1 else {}
        station = {v: r for r, v in enumerate(core.stations)} if several else {}
        return groups, own, Links(nested_cuts(several, len(groups)), core, station)
    groups, group_of = [], {}
    large = [cut for k, cut in enumerate(links.cuts) if len(cut.servers) > 1 or k == len(links.cuts) - 1]
    for cut in large:
        mine = [server for server in cut.servers if server not in group_of]
        if mine:
            group_of.update(dict.fromkeys(mine, len(groups)))
            groups.append(mine)
    above = {tuple(sorted({group_of[s] for s in cut.servers})): cut.bandwidth_bytes_per_s for cut in large[:-1]}
    return groups, own, Links(nested_cuts(above, len(groups)), None, {})


@dataclass(frozen=True)
class _Counted:
    """Servers with equal contents are counted, in each group that no link but their own tells apart."""

    data: SlotData
    patterns: Patterns
    links: Links

    def add(self, block: pyo.Block) -> list[tuple[float, Any]]:
        """See :class:`Places`."""
        costs = add_patterns(block, self.data, self.patterns)
        if len(self.patterns.groups) > 1:
            self.links.add(block, self._of_groups())
        return costs

    def start(self, block: pyo.Block, workers: Mapping[int, Workers], rings: Mapping[int, Ring]) -> None:
        """See :class:`Places`."""
        start_patterns(block, self.data, self.patterns, workers)
        if len(self.patterns.groups) > 1:
            group_of = self.patterns.group_of
            used = {i: sorted({group_of[s] for s, _ in there}) for i, there in workers.items()}
            self.links.start(block, self._of_groups(), used, rings)

    def workers(self, block: pyo.Block) -> dict[int, Workers]:
        """See :class:`Places`."""
        return read_patterns(block, self.data, self.patterns, whole)

    def _of_groups(self) -> SlotData:
        """The same figures with groups in place of servers."""
        room = np.zeros((len(self.data.room), len(self.patterns.groups)), dtype=np.int64)
        for r, group in enumerate(self.patterns.groups):
            servers = [s for one in group for s in one.servers]
            for i in self.patterns.kind:
                most = self.data.most(i)
                if min(self.data.gains[i]) <= self.patterns.most(r) or self.patterns.parts(i, r, most):
                    room[i, r] = min(most, self.data.room[i, servers].sum())
        return replace(self.data, room=room)
