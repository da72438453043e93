"""A disjunctive host model: which of several jobs get optical links, and which get ports of a packet switch.

Each job must keep an iteration time, at the least price for all. Either its servers are joined by links through a patch
panel, laid as suits the job, or each of them has a port of a packet switch, over which everybody reaches everybody. The
panel has few ports, and the switch must be bought before its first port is. In generalized disjunctive programming each
alternative is a block with constraints of its own; in the optical ones there is a :class:`RingsAndRoutes`, coupled by
its ports ``throughput`` and ``link``. Pyomo makes a mixed-integer model of that, here by the convex hull of the
alternatives. That needs no constants but bounds of all variables; those that are missing are found by propagation.
"""

import numpy as np
import pyomo.environ as pyo
from pyomo.contrib.fbbt.fbbt import fbbt
from pyomo.gdp import Disjunct, Disjunction

import ddlopt
from ddlopt.models.topology import AllReduceGroup, TopologyInstance
from ddlopt.models.topology.formulations.rings_and_routes import RingsAndRoutes
from ddlopt.solvers.backends import Highs
from ddlopt.solvers.contracts import Limits

SERVERS, BANDWIDTH = 4, 12.5e9
LINK, SWITCH, SWITCH_PORT = 2.0, 30.0, 3.0  # prices
JOBS = {  # bytes of the gradient, bytes from each server to each other, seconds that an iteration may take
    "vision": (4e9, 0.0, 0.50),
    "experts": (0.5e9, 1.5e9, 0.45),
    "language": (3e9, 0.2e9, 0.45),
}
formulation = RingsAndRoutes()


def job(name):
    """All servers reduce gradients, and exchange some bytes between all pairs."""
    gradient_bytes, pair_bytes, _ = JOBS[name]
    return TopologyInstance(
        name=name,
        servers=SERVERS,
        degree=2,
        link_bandwidth_bytes_per_s=BANDWIDTH,
        allreduce_groups=(AllReduceGroup(members=tuple(range(SERVERS)), gradient_bytes=gradient_bytes),),
        traffic_bytes=pair_bytes * (1 - np.eye(SERVERS)),
    )


instances = {name: job(name) for name in JOBS}
for panel_ports in (16, 12):
    host = pyo.ConcreteModel("fabrics")
    host.JOBS = pyo.Set(initialize=list(JOBS))
    host.links = pyo.Var(host.JOBS, bounds=(0, 2 * SERVERS))
    host.switch_ports = pyo.Var(host.JOBS, bounds=(0, SERVERS))
    host.switch = pyo.Var(domain=pyo.Binary)
    host.optical = Disjunct(host.JOBS)
    host.electrical = Disjunct(host.JOBS)
    for name, instance in instances.items():
        limit_s = JOBS[name][2]
        chosen = host.optical[name]
        chosen.network = pyo.Block()
        formulation.build(chosen.network, instance)
        least = formulation.unit_bytes(instance) / (limit_s * BANDWIDTH)  # throughput = unit / bytes of busiest link
        chosen.is_in_time = pyo.Constraint(expr=chosen.network.throughput >= (1 - 1e-9) * least)
        chosen.has_links = pyo.Constraint(expr=host.links[name] >= sum(chosen.network.link.values()))
        fbbt(chosen)

        chosen = host.electrical[name]
        chosen.has_ports = pyo.Constraint(expr=host.switch_ports[name] >= SERVERS)
        chosen.has_a_switch = pyo.Constraint(expr=host.switch >= 1)
        switched_s = instance.iteration_time_s(instance.node_bytes.max() / 2)  # a port is as fast as two links
        if switched_s > limit_s:
            chosen.deactivate()
    host.one_of_both = Disjunction(host.JOBS, rule=lambda m, name: [m.optical[name], m.electrical[name]])
    host.panel_is_large_enough = pyo.Constraint(expr=sum(host.links.values()) <= panel_ports)
    price = SWITCH * host.switch + LINK * sum(host.links.values()) + SWITCH_PORT * sum(host.switch_ports.values())
    host.price = pyo.Objective(expr=price)
    pyo.TransformationFactory("gdp.hull").apply_to(host)
    outcome = Highs().solve(host, Limits(time_s=60))

    print(f"panel for {panel_ports} links: {outcome.status}, price {outcome.objective:.0f}")
    for name, instance in instances.items():
        if host.optical[name].binary_indicator_var.value > 0.5:
            design = formulation.read(host.optical[name].network, instance)
            evaluation = ddlopt.check(instance, design)
            assert evaluation.feasible
            assert evaluation.objective <= JOBS[name][2] * (1 + 1e-6)
            links = sum(count for _, _, count in design.links)
            print(f"    {name:8} {links} links, {1e3 * float(evaluation.objective):.0f} ms")
        else:
            print(f"    {name:8} {SERVERS} ports of the switch")
