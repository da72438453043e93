"""One slot with servers of equal contents counted in place of named: the strongest model of a slot there is."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf
from typing import Any

import numpy as np
import pyomo.environ as pyo

from ddlopt.frontier.scheduling.counted_slots.pattern_counts import add_patterns, read_patterns, start_patterns
from ddlopt.frontier.scheduling.counted_slots.server_patterns import Patterns, server_patterns
from ddlopt.models.scheduling.formulations.slot_embedding.cut_indicators import nested_cuts
from ddlopt.models.scheduling.formulations.slot_embedding.places import Links, Places, Pooled, whole
from ddlopt.models.scheduling.formulations.slot_embedding.slot_embedding import SlotEmbedding
from ddlopt.models.scheduling.formulations.slot_embedding.widths import SlotData
from ddlopt.models.scheduling.instance import SchedulingInstance
from ddlopt.models.scheduling.pool import Workers
from ddlopt.models.scheduling.rings.rings import Ring


@dataclass(frozen=True)
class CountedSlots(SlotEmbedding):
    r"""A slot embedding in which servers with equal contents have no names, where that saves something.

    Where all workers take the same and some servers are equal, these are counted by what is on them
    (:mod:`~ddlopt.frontier.scheduling.counted_slots.pattern_counts`), and the s of
    :class:`~ddlopt.models.scheduling.formulations.slot_embedding.slot_embedding.SlotEmbedding` are groups of servers.

    *What a host must not couple to.* Widths that gain no more than a smaller one, which have no variable and are none
    of ``width``. Which of equal servers is which. Of a circulation where it begins (``first``) and what shows that it
    is connected (``reach``, ``supply``).

    Parameters
    ----------
    whenever : bool
        Whether servers are counted wherever that can be done, also where it saves nothing.

    Ports
    -----
    ``width[i, w]``, ``runs[i]``
        1 if job i has w workers; whether it has any. Jobs and widths that gain nothing are left out.
    ``smallest_part`` : objective ``max_min``
        z in units of the part that the job which the slot brings least far comes to alone.
    ``objective``
        Gain in units, to be maximised.

    References
    ----------
    P. Gilmore, R. Gomory, "A linear programming approach to the cutting-stock problem", Operations Research 9, 1961,
    for the counting by multisets.
    """

    whenever: bool = False

    def places_model(self, instance: SchedulingInstance, data: SlotData, links: Links) -> Places:
        """Counts of servers, where they are fewer than servers."""
        named = super().places_model(instance, data, links)
        if isinstance(named, Pooled) or self.places == "servers":
            return named
        groups, bandwidth, above = _grouped(links)
        found = server_patterns(instance, data, groups, bandwidth, rings=instance.needs_rings)
        if isinstance(found, str):
            return named
        saves = any(len(one.servers) > 1 for group in found.groups for one in group)
        return Counted(data, found, above) if saves or self.whenever else named


def _grouped(links: Links) -> tuple[list[list[int]], dict[int, float], Links]:
    """Groups of servers that no link but their own tells apart, bandwidth of these, and the network of groups."""
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
class Counted:
    """Servers with equal contents are counted, in each group that no link but their own tells apart."""

    data: SlotData
    patterns: Patterns
    links: Links

    def add(self, block: pyo.Block) -> list[tuple[float, Any]]:
        """See :class:`Places`."""
        costs = add_patterns(block, self.data, self.patterns)
        if len(self.patterns.groups) > 1:
            self.links.add(block, self._grouped())
        return costs

    def start(self, block: pyo.Block, workers: Mapping[int, Workers], rings: Mapping[int, Ring]) -> None:
        """See :class:`Places`."""
        start_patterns(block, self.data, self.patterns, workers)
        if len(self.patterns.groups) > 1:
            group_of = {s: r for r, group in enumerate(self.patterns.groups) for one in group for s in one.servers}
            used = {i: sorted({group_of[s] for s, _ in there}) for i, there in workers.items()}
            self.links.start(block, used, rings)

    def workers(self, block: pyo.Block) -> dict[int, Workers]:
        """See :class:`Places`."""
        return read_patterns(block, self.data, self.patterns, whole)

    def _grouped(self) -> SlotData:
        """The same figures with groups in place of servers."""
        room = np.zeros((len(self.data.room), len(self.patterns.groups)), dtype=np.int64)
        for r, group in enumerate(self.patterns.groups):
            servers = [s for one in group for s in one.servers]
            for i in self.patterns.kind:
                most = self.data.most(i)
                if min(self.data.gains[i]) <= self.patterns.most(r) or self.patterns.parts(i, r, most):
                    room[i, r] = min(most, self.data.room[i, servers].sum())
        return replace(self.data, room=room)
