"""A capacity-planning model with a topology inside: which optical modules to buy for which links.

The network is planned for a language model's training job: pipeline stages that send activations to each other, and an
all-reduce over everybody. Each link needs a pair of modules, of one of three speeds and prices, and there is a budget.
The host builds :class:`RingsAndRoutes` into a block of its own and couples to three of its ports: ``link``,
``link_load`` and ``throughput``.

That a link with modules of speed s carries its load in time, ``load <= time * s``, is a product of two decisions. It is
linear after division by the time, which is what the throughput form has done already: its loads are bytes divided by
those that a link of full speed carries in an iteration. So ``load <= speeds bought``, exactly, and no big constant.
"""

import math
from collections import Counter
from itertools import pairwise

import pyomo.environ as pyo

import ddlopt
from ddlopt.models.topology import AllReduceGroup, TopologyInstance
from ddlopt.models.topology.formulations.rings_and_routes import RingsAndRoutes
from ddlopt.solvers.backends import Highs
from ddlopt.solvers.contracts import Limits

MODULES = {"25G": (1 / 16, 40.0), "100G": (1 / 4, 100.0), "400G": (1.0, 360.0)}  # speed, price of one of the two
SERVERS = 5
activations = [[0.0] * SERVERS for _ in range(SERVERS)]
for stage in range(SERVERS - 1):
    activations[stage][stage + 1] = activations[stage + 1][stage] = 3e9

instance = TopologyInstance(
    name="pipeline",
    servers=SERVERS,
    degree=3,
    optics="duplex",
    link_bandwidth_bytes_per_s=50e9,  # of the fastest module
    allreduce_groups=(AllReduceGroup(members=tuple(range(SERVERS)), gradient_bytes=1e9),),
    traffic_bytes=activations,
    compute_s=0.2,
)
formulation = RingsAndRoutes()


def carried_bytes(design):
    """Bytes on each pair's links in an iteration, counted on the design's paths."""
    found = Counter()
    for ring in design.rings:
        for path in ring.paths:
            for hop in pairwise(path):
                found[hop] += ring.share * instance.allreduce_groups[ring.group].hop_bytes
    for route in design.routes:
        for path, fraction in zip(route.paths, route.fractions, strict=True):
            for hop in pairwise(path):
                found[hop] += fraction * instance.traffic_bytes[route.source, route.target]
    return found


for budget in (400, 800, 3200):
    host = pyo.ConcreteModel("capacity planning")
    host.network = network = pyo.Block()
    formulation.build(network, instance)
    # The formulation leaves out what is slower than everything over one link of full speed; slow modules may be.
    network.throughput.setlb(network.throughput.lb * min(speed for speed, _ in MODULES.values()))

    host.bought = pyo.Var(network.LINKS, list(MODULES), domain=pyo.NonNegativeIntegers, bounds=(0, instance.degree))

    @host.Constraint(network.LINKS, doc="every link has its modules")
    def links_have_modules(m, i, j):
        return sum(m.bought[i, j, kind] for kind in MODULES) == m.network.link[i, j]

    @host.Constraint(network.ARCS, doc="modules carry the load, in either direction")
    def modules_carry_the_load(m, i, j):
        pair = min(i, j), max(i, j)
        return m.network.link_load[i, j] <= sum(speed * m.bought[pair, kind] for kind, (speed, _) in MODULES.items())

    price = sum(2 * MODULES[kind][1] * bought for (_, _, kind), bought in host.bought.items())
    host.budget_is_kept = pyo.Constraint(expr=price <= budget)
    host.fastest = pyo.Objective(expr=network.objective, sense=pyo.minimize)
    outcome = Highs().solve(host, Limits(time_s=60))

    design = formulation.read(network, instance)
    assert ddlopt.check(instance, design).feasible  # degrees, planes, rings and routes
    speeds = Counter()
    for (i, j, kind), bought in host.bought.items():
        for arc in ((i, j), (j, i)):
            speeds[arc] += MODULES[kind][0] * round(bought.value) * instance.link_bandwidth_bytes_per_s
    time = instance.compute_s + max(load / speeds[arc] for arc, load in carried_bytes(design).items())
    assert math.isclose(time, formulation.objective_value(instance, outcome.objective), rel_tol=1e-5)

    kinds = Counter({kind: sum(round(host.bought[link, kind].value) for link in network.LINKS) for kind in MODULES})
    links = ", ".join(f"{count} × {kind}" for kind, count in kinds.items() if count)
    paid = pyo.value(price)
    print(f"budget {budget:4}: {outcome.status}, {1e3 * time:6.1f} ms an iteration, price {paid:4.0f}: {links}")
