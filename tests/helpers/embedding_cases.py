"""Every formulation there is, each with bundled instances that it covers, the smallest first."""

import dataclasses
import inspect
import itertools
import pkgutil
from functools import cache
from importlib import import_module
from importlib.util import find_spec

import networkx as nx
import numpy as np
import pytest

import ddlopt
import ddlopt.instances
from ddlopt.frontier.aggregation.graph.formulations.rate_messages import RateMessages
from ddlopt.frontier.codesign.formulations.whole_ports import WholePorts
from ddlopt.frontier.scheduling.formulations.bandwidth_shares import BandwidthShares
from ddlopt.frontier.topology.formulations.links_in_block import LinksInBlock
from ddlopt.instances.generators import generate
from ddlopt.models.aggregation.graph.formulations.rate_levels import RateLevels
from ddlopt.models.catalogue import FAMILY_NAMES, outside_of_room
from ddlopt.models.catalogue import family as family_of
from ddlopt.models.codesign.formulations.joint_milp import JointStrategyTopology
from ddlopt.models.codesign.formulations.rows.coupling import cycle_loads
from ddlopt.models.codesign.formulations.strategies_on_routes import StrategiesOnRoutes
from ddlopt.models.gossip.matchings.edge_colouring import EdgeColouring
from ddlopt.models.gossip.matchings.formulations.convex_matchings import (
    ConvexActivation,
    ConvexEdgeWeights,
    ConvexMixing,
)
from ddlopt.models.ports import ports_of
from ddlopt.models.scheduling.formulations.slot_embedding.slot_embedding import SlotEmbedding
from ddlopt.models.topology import TopologyInstance
from ddlopt.models.topology.formulations.rings_and_routes import RingsAndRoutes
from ddlopt.solvers.catalogue import entries
from ddlopt.solvers.exact import Exact


def classes(method):
    """(family, class) of all with a method of that name: ``build`` fills Pyomo blocks, ``problem`` is for CVXPY."""
    return [(family, kind) for family, kind in every_dataclass() if hasattr(kind, method)]


@cache
def every_dataclass():
    """(family, class) of all in the rooms of the models and of the frontier."""
    found = []
    for family in filter(ddlopt.names, FAMILY_NAMES):  # without an instance there is nothing to try
        for storey in ("models", "frontier"):
            name = f"ddlopt.{storey}.{family}"
            package = import_module(name) if find_spec(name) else None
            for place in pkgutil.walk_packages(package.__path__, f"{name}.") if package else ():
                module = import_module(place.name)
                for _, kind in inspect.getmembers(module, dataclasses.is_dataclass):
                    if kind.__module__ == module.__name__:
                        found.append((family, kind))
    return found


def cycle(instance):
    """One link from each server to the next; as a path where links lead both ways."""
    n = instance.servers
    if not instance.host_forwarding:
        return tuple((int(i), int(j), 1) for i, j in zip(*instance.traffic_bytes.nonzero(), strict=True))
    if instance.optics == "duplex":
        return tuple((i, i + 1, 1) for i in range(n - 1))
    return tuple((i, (i + 1) % n, 1) for i in range(n))


def matchings(instance):
    """A greedy decomposition of the graph of an instance; of one without a graph, nothing of use."""
    if not hasattr(instance, "network"):
        return ((0,),)
    place = {frozenset(edge): number for number, edge in enumerate(instance.network.edges)}
    colours = nx.greedy_color(nx.line_graph(instance.network.graph))
    found = {}
    for edge, colour in sorted(colours.items()):
        found.setdefault(colour, []).append(place[frozenset(edge)])
    return tuple(tuple(found[colour]) for colour in sorted(found))


def active(instance):
    """The decomposition, each matching in every second round."""
    found = matchings(instance)
    return found, np.full(len(found), 0.5)


NEEDING = {
    EdgeColouring: lambda instance: EdgeColouring(len(matchings(instance)) + 1),
    ConvexActivation: lambda instance: ConvexActivation(matchings(instance)),
    ConvexMixing: lambda instance: ConvexMixing(*active(instance)),
    ConvexEdgeWeights: lambda instance: ConvexEdgeWeights(*active(instance)),
    LinksInBlock: lambda instance: LinksInBlock(
        float(instance.node_bytes[0].sum()), tuple(s // 3 for s in range(instance.servers))
    ),
    StrategiesOnRoutes: lambda instance: StrategiesOnRoutes(cycle_loads(instance)),
}
"""Formulations that cannot do without options: how to make one for an instance."""


FURTHER = {
    "RingsAndRoutes, all": lambda _: RingsAndRoutes(rings="all"),
    "RateLevels, without flows": lambda _: RateLevels(flows=False),
    "RateMessages, without flows": lambda _: RateMessages(flows=False),
    "RingsAndRoutes, congestion": lambda _: RingsAndRoutes(form="congestion"),
    "RingsAndRoutes, open": lambda _: RingsAndRoutes(form="congestion", demand="open"),
    "RingsAndRoutes, given": lambda instance: RingsAndRoutes(links=cycle(instance)),
    "RingsAndRoutes, given and open": lambda instance: RingsAndRoutes(
        form="congestion", links=cycle(instance), demand="open"
    ),
    "JointStrategyTopology, given": lambda instance: JointStrategyTopology(links=cycle(instance)),
    "SlotEmbedding, servers": lambda _: SlotEmbedding(places="servers"),
    "WholePorts, up to a time": lambda _: WholePorts(most_s=1e3),
}
"""Options that change which ports there are."""

SLOW = {
    "MaxLoadPartition",
    "latency-plain",
    "max-load-plain",
    "rate-levels",
    "rate-messages",
    "RateMessages, without flows",
    "register-pairs",
}
"""Formulations that solve no bundled instance but the smallest in a second."""

HARD = {"SlotEmbedding, servers"}
"""Those that solve none."""


@dataclasses.dataclass(frozen=True)
class Case:
    """A formulation with options, made for an instance."""

    name: str
    family: str
    kind: type
    make: object

    def __str__(self):
        return self.name


@cache
def cases():
    """Those of the catalogue, then what is not in it, then further options."""
    found = []
    for entry in entries():
        method = entry.make("highs") if entry.kind == "exact" and ddlopt.names(entry.family) else None
        if isinstance(method, Exact):
            made = method.formulation
            found.append(Case(entry.name, entry.family, type(made), lambda _, made=made: made))
    known = {case.kind for case in found}
    for family, kind in classes("build"):
        if kind not in known:
            found.append(Case(kind.__name__, family, kind, NEEDING.get(kind, lambda _, kind=kind: kind())))
    for name, make in FURTHER.items():
        family, kind = next(each for each in classes("build") if each[1].__name__ == name.split(",")[0])
        found.append(Case(name, family, kind, make))
    return found


def changed(name, **fields):
    """A bundled instance with other fields."""
    data = ddlopt.load(name).model_dump(mode="json")
    return family_of(name.split("/")[0]).instance.from_data(data | fields)


def further(family):
    """Instances with ports that no bundled one has."""
    if family == "topology":
        yield changed("topology/all-to-all-n5-d2", optics="duplex")
    if family == "scheduling":
        yield changed("scheduling/slot-rigid", objective="max_min")
        data = ddlopt.load("scheduling/slot-rigid").model_dump(mode="json")
        servers = [each | {"idle_w": 100.0, "worker_w": 10.0} for each in data["servers"]]
        yield changed("scheduling/slot-rigid", servers=servers, energy_price_per_j=1e-9)
        (u, v, rate), *others = data["network"]["links"]
        network = data["network"] | {"links": [(u, v, rate), *others, (u, others[-1][0], rate)]}
        yield changed("scheduling/slot-rigid", network=network)
        yield changed("scheduling/tiny-shared", objective="max_min")
        data = ddlopt.load("scheduling/tiny-contention").model_dump(mode="json")
        servers = [each | {"idle_w": 100.0, "worker_w": 10.0} for each in data["servers"]]
        yield changed("scheduling/tiny-contention", objective="utility", servers=servers, energy_price_per_j=1e-9)
        yield changed("scheduling/tiny-contention", objective="max_min")
    if family == "compression":
        yield from with_lanes()
    if family == "cluster":
        for objective in ("makespan", "weighted_tardiness"):
            yield generate("cluster", "jobs", 1, jobs=2, servers=2, mode="slots", objective=objective)


def with_lanes():
    """A measured timeline on two lanes: with an error budget, and for the least error."""
    data = ddlopt.load("compression/measured-digits-w8-1g").model_dump(mode="json")
    for option in itertools.chain.from_iterable(data["menus"]):
        wire = {"lane": "wire", "launch_s": option["launch_s"], "busy_s": option["wire_s"]}
        coded = [{"lane": "coding", "busy_s": option["decode_s"]}] if option["decode_s"] else []
        option |= {"launch_s": 0.0, "wire_s": 0.0, "decode_s": 0.0, "stages": [wire, *coded]}
    menus = {"menus": data["menus"], "lanes": ["wire", "coding"]}
    budget = {"error_budget": 0.3, "time_budget_s": None}
    yield changed("compression/measured-digits-w8-1g", **menus, goal="time", **budget)
    least = {"error_budget": None, "time_budget_s": 0.1}
    yield changed("compression/measured-digits-w8-1g", **menus, goal="error", **least)


@cache
def loaded(name):
    """A bundled instance."""
    return ddlopt.load(name)


def instances(family):
    """Three bundled ones, those in the smallest files, then the further ones, then the rest."""
    folder = ddlopt.instances.library_folder(family)
    names = sorted(ddlopt.names(family), key=lambda name: (folder.parent / f"{name}.json").stat().st_size)
    yield from map(loaded, names[:3])
    yield from further(family)
    yield from map(loaded, names[3:])


OF_DESIGNS = (LinksInBlock,)
"""Formulations of topology that are made of a design's figures."""


def pairs(case):
    """(formulation, instance) for all instances covered, the smallest first."""
    for instance in instances(case.family):
        if case.kind in OF_DESIGNS and not isinstance(instance, TopologyInstance):
            continue
        formulation = case.make(instance)
        if outside_of_room(formulation, instance) is None and formulation.refuses(instance) is None:
            yield formulation, instance


def smallest(case):
    """The first such pair; the test is skipped where there is none."""
    found = next(pairs(case), None)
    return pytest.skip("it covers no bundled instance") if found is None else found


def two_of(case):
    """The two smallest such pairs; the same one twice where there is no other or it takes long."""
    one, *others = itertools.islice(pairs(case), 2) if smallest(case) else ()
    return [one, *(others if others and case.name not in SLOW else [one])]


def build(block, formulation, instance):
    """Fill the block, and where the host has to say what is sent, let that be what the instance says."""
    formulation.build(block, instance)
    if getattr(formulation, "demand", "fixed") == "open":
        for k, units in block.group_units.items():
            units.fix(instance.allreduce_groups[k].hop_bytes / block.unit_bytes)
        for (s, t), units in block.traffic_units.items():
            units.fix(instance.traffic_bytes[s, t] / block.unit_bytes)


def convex(kind, instance):
    """A class of convex programs, with the options that it needs for an instance."""
    return NEEDING.get(kind, lambda _: kind())(instance)


def program(kind, instance):
    """A convex program; that of bandwidths for the schedule that a heuristic finds."""
    given = [ddlopt.solve(instance, "srtf").solution] if kind is BandwidthShares else []
    return convex(kind, instance).problem(instance, *given)


def table_of_ports():
    """The lines of the table in ``docs/howto/embedding.md``."""
    found = {(family, kind.__name__, kind) for method in ("build", "problem") for family, kind in classes(method)}
    lines = []
    for family, name, kind in sorted(found, key=lambda each: each[:2]):
        ports = ", ".join(f"`{port}`" + (f" ({port.where})" if port.where else "") for port in ports_of(kind))
        lines.append(f"| {family} | `{name}` | {ports.replace('``', '`')} |")
    return lines


if __name__ == "__main__":
    print("\n".join(table_of_ports()))
