"""How strategies and a topology meet in one program: bytes as variables, a template, and what ties them together."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyomo.environ as pyo

from ddlopt.models.codesign.formulations.rows.strategy_choice import linear
from ddlopt.models.codesign.instance import CodesignInstance
from ddlopt.models.codesign.job import job_of
from ddlopt.models.codesign.solution import CodesignPlan
from ddlopt.models.codesign.tables import tables_of
from ddlopt.models.tolerances import IMPROVEMENT_TOL
from ddlopt.models.topology.instance import TopologyInstance
from ddlopt.models.topology.solution import TopologyDesign


def template_of(instance: CodesignInstance) -> TopologyInstance | None:
    """The groups and pairs that some choice of strategies uses, with no less of each than any choice has.

    Its bytes are those of each layer's and each edge's largest strategy, summed. None if no choice sends anything.
    """
    tables = tables_of(instance)
    reduced = np.zeros(len(tables.groups))
    traffic = np.zeros((instance.servers, instance.servers))
    units = [pattern.unit.toarray() for pattern in tables.patterns]
    sets = len(tables.groups_of)
    for strategies in tables.own:
        of_groups, of_pairs = np.zeros_like(reduced), np.zeros_like(traffic)
        for own in strategies:
            in_sets = np.array([own.get(q, 0.0) for q in range(sets)])
            of_groups = np.maximum(of_groups, tables.group_bytes(in_sets))
            pairs = (amount * units[i - sets] for i, amount in own.items() if i >= sets)
            of_pairs = np.maximum(of_pairs, sum(pairs, np.zeros(())))
        reduced += of_groups
        traffic += of_pairs
    for edge, amount in enumerate(tables.edge_bytes.tolist()):
        used = tables.moved_figures(edge)
        if used and amount:
            traffic += amount * np.maximum.reduce([units[i - sets] for i in used])
    if not reduced.any() and not traffic.any():
        return None
    return TopologyInstance.from_data(
        {
            "name": f"{instance.name}, whatever is chosen",
            **instance.fabric,
            "allreduce_groups": [
                {"members": members, "gradient_bytes": amount}
                for members, amount in zip(tables.groups, reduced.tolist(), strict=True)
                if amount > 0
            ],
            "traffic_bytes": traffic,
            "overlap": instance.overlap,
        }
    )


def add_bytes(block: pyo.Block) -> None:
    """Add ``reduced_bytes[q]`` and ``moved_bytes[p]``: what ``add_strategies`` has as expressions, as variables."""
    block.reduced_bytes = pyo.Var(block.SETS, bounds=(0, None), doc="gradient bytes of each group of a set")
    block.moved_bytes = pyo.Var(block.PATTERNS, bounds=(0, None), doc="bytes of a pattern")

    @block.Constraint(block.SETS, doc="gradient bytes follow from the strategies")
    def bytes_are_reduced(b: Any, q: int) -> Any:
        return b.reduced[q] - b.reduced_bytes[q] == 0

    @block.Constraint(block.PATTERNS, doc="bytes of patterns follow from the strategies")
    def bytes_are_moved(b: Any, p: int) -> Any:
        return b.moved[p] - b.moved_bytes[p] == 0


def tie(
    block: pyo.Block,
    network: pyo.Block,
    instance: CodesignInstance,
    reduced: Mapping[int, Any],
    moved: Mapping[int, Any],
) -> None:
    """Tie the ports of a topology with an open demand, in the units of ``reduced[q]`` and ``moved[p]``, to these."""
    tables = tables_of(instance)
    sets_of: dict[int, list[int]] = {k: [] for k in range(len(tables.groups))}
    for q, groups in enumerate(tables.groups_of):
        for k in groups:
            sets_of[k].append(q)
    place = {members: k for k, members in enumerate(tables.groups)}
    of_pairs: dict[tuple[int, int], list[tuple[float, Any]]] = {pair: [] for pair in network.TRAFFIC}
    for p, pattern in enumerate(tables.patterns):
        entries = pattern.unit.tocoo()
        for s, t, part in zip(entries.row.tolist(), entries.col.tolist(), entries.data.tolist(), strict=True):
            if (s, t) in of_pairs:
                of_pairs[s, t].append((part, moved[p]))

    @block.Constraint(network.GROUPS, doc="a group reduces what the strategies want")
    def groups_are_served(b: Any, k: int) -> Any:
        members = network.members_of_groups[k]
        factor = 2 * (len(members) - 1) / len(members)
        terms = [(factor, reduced[q]) for q in sets_of[place[members]]]
        return linear([*terms, (-1.0, network.group_units[k])]) == 0

    @block.Constraint(network.TRAFFIC, doc="a pair sends what the strategies want")
    def pairs_are_served(b: Any, s: int, t: int) -> Any:
        return linear([*of_pairs[s, t], (-1.0, network.traffic_units[s, t])]) == 0


def plan_of(instance: CodesignInstance, choices: Sequence[int], design: TopologyDesign | None) -> CodesignPlan:
    """The plan that takes these strategies and this design of their job; None where nothing is to be sent."""
    return CodesignPlan(
        instance=instance.name,
        instance_digest=instance.digest,
        strategies=tuple(layer.strategies[a].name for layer, a in zip(instance.layers, choices, strict=True)),
        # The job has no name and no digest of its own: the strategies tell which it is.
        design=TopologyDesign(instance=instance.name, links=())
        if design is None
        else design.model_copy(update={"instance": instance.name, "instance_digest": None}),
    )


def read_plan(block: pyo.Block, instance: CodesignInstance, choices: Sequence[int], topology: Any) -> CodesignPlan:
    """The plan of these choices whose design ``topology``, a formulation, reads from ``block.network``."""
    job = job_of(instance, choices)
    return plan_of(instance, choices, None if job is None else topology.read(block.network, job))


def cycle_loads(instance: CodesignInstance) -> tuple[Any, Any] | None:
    """Loads as of :class:`.StrategiesOnRoutes` for links laid as one cycle; None where that is no design for all.

    One-way links lead around; duplex ones go either way, and where n is odd they form a path, as two planes hold no odd
    cycle. Every link is there d times, or ⌊d/2⌋ times for duplex optics, if links may be parallel.
    """
    n, tables, duplex = instance.servers, tables_of(instance), instance.optics == "duplex"
    if not instance.host_forwarding or (duplex and instance.degree < 2):
        return None
    copies = 1 if not instance.parallel_links else instance.degree // 2 if duplex else instance.degree
    ahead, back = np.zeros((n, n, n), dtype=bool), np.zeros((n, n, n), dtype=bool)  # by arc, source, target
    for s, t in itertools.permutations(range(n), 2):
        steps = (t - s) % n
        if duplex and (t < s if n % 2 else 2 * steps > n):
            back[(s - np.arange((s - t) % n)) % n, s, t] = True
        else:
            ahead[(s + np.arange(steps)) % n, s, t] = True
    crossed = np.concatenate([ahead, back]) if duplex else ahead
    reduced = np.zeros((len(crossed), len(tables.groups_of)))
    for q, groups in enumerate(tables.groups_of):
        for members in (tables.groups[k] for k in groups):
            hops = crossed[:, members, members[1:] + members[:1]]
            reduced[:, q] += 2 * (len(members) - 1) / len(members) * hops.sum(axis=1)
    units = [pattern.unit.toarray() for pattern in tables.patterns]
    moved = np.array([(crossed * unit).sum(axis=(1, 2)) for unit in units]).reshape(len(units), len(crossed)).T
    return reduced / copies, moved / copies


def cycle_time_s(instance: CodesignInstance) -> float | None:
    """Iteration time of some plan on one cycle of links, by improving one layer's strategy at a time; None if none."""
    loads, tables = cycle_loads(instance), tables_of(instance)
    if loads is None:
        return None

    def time(choices: Sequence[int]) -> float:
        reduced, moved = tables.bytes_of(choices)
        return instance.iteration_time_s(
            tables.compute_of(choices), float((loads[0] @ reduced + loads[1] @ moved).max())
        )

    leanest = [int(each.argmin()) for each in tables.memory_bytes]
    least_lost = [int(np.lexsort(keys)[0]) for keys in zip(tables.memory_bytes, tables.errors, strict=True)]
    choices = leanest if tables.fits(leanest) else least_lost
    if not tables.fits(choices):
        return None
    best, improved = time(choices), True
    while improved:
        improved = False
        for layer, size in enumerate(tables.sizes):
            for a in range(size):
                other = [*choices[:layer], a, *choices[layer + 1 :]]
                if a != choices[layer] and tables.fits(other) and time(other) < best * (1 - IMPROVEMENT_TOL):
                    choices, best, improved = other, time(other), True
    return best
