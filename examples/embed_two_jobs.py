"""Two training jobs on one optical fabric: which of each server's ports serve which job.

Three servers train a vision model together. All four train a recommendation model, whose tables are on one of them; the
others read from it and send gradients back. Each job has links of its own. The host builds one :class:`RingsAndRoutes`
for each, in an indexed block, and couples them by their ports ``link`` and ``congestion``: together they have as many
transmitters and receivers at every server as there are, whatever the split, which may differ from server to server. It
takes the congestion form, whose port is the load of the busiest link itself, so that iteration times are linear in it.
"""

import numpy as np
import pyomo.environ as pyo

import ddlopt
from ddlopt.models.topology import AllReduceGroup, TopologyInstance
from ddlopt.models.topology.formulations.rings_and_routes import RingsAndRoutes
from ddlopt.solvers.backends import Highs
from ddlopt.solvers.contracts import Limits

SERVERS, PORTS, BANDWIDTH = 4, 3, 12.5e9


lookups = np.zeros((SERVERS, SERVERS))
lookups[0, 1:] = lookups[1:, 0] = 1e9
JOBS = {
    "vision": {
        "allreduce_groups": (AllReduceGroup(members=(1, 2, 3), gradient_bytes=1.5e9),),
        "traffic_bytes": np.zeros((SERVERS, SERVERS)),
        "compute_s": 0.10,
    },
    "recommendation": {"traffic_bytes": lookups, "compute_s": 0.05},
}


def job(name, ports):
    """A job that may have ``ports`` ports of each server."""
    return TopologyInstance(
        name=name, servers=SERVERS, degree=ports, link_bandwidth_bytes_per_s=BANDWIDTH, **JOBS[name]
    )


instances = {name: job(name, PORTS) for name in JOBS}
formulation = RingsAndRoutes(form="congestion")


def solve(goal):
    """Milliseconds of each job's iteration, and its design, where ``goal`` of both times is least."""
    host = pyo.ConcreteModel("fabric")
    host.job = pyo.Block(list(instances))
    milliseconds = {}
    for name, instance in instances.items():
        formulation.build(host.job[name], instance)
        # One unit of the port is this long on a link.
        unit_ms = 1e3 * formulation.unit_bytes(instance) / BANDWIDTH
        milliseconds[name] = 1e3 * instance.compute_s + unit_ms * host.job[name].congestion
    host.SERVERS = pyo.RangeSet(0, SERVERS - 1)
    everybody = [(each, other) for each in instances for other in host.SERVERS]

    @host.Constraint(host.SERVERS, doc="transmitters of a server")
    def transmitters_suffice(m, i):
        return sum(m.job[name].link[i, j] for name, j in everybody if j != i) <= PORTS

    @host.Constraint(host.SERVERS, doc="receivers of a server")
    def receivers_suffice(m, j):
        return sum(m.job[name].link[i, j] for name, i in everybody if i != j) <= PORTS

    if goal == "slower":
        host.slower = pyo.Var(bounds=(0, None))
        host.slower_is_slower = pyo.Constraint(list(instances), rule=lambda m, name: m.slower >= milliseconds[name])
        host.goal = pyo.Objective(expr=host.slower)
    else:
        host.goal = pyo.Objective(expr=sum(milliseconds.values()))
    outcome = Highs().solve(host, Limits(time_s=60, gap=1e-3))
    designs = {name: formulation.read(host.job[name], instance) for name, instance in instances.items()}
    return outcome, designs


print("the same at every server:")
for split in range(1, PORTS):
    parts = dict(zip(JOBS, (split, PORTS - split), strict=True))
    alone = {name: ddlopt.solve(job(name, ports), "rings-and-routes") for name, ports in parts.items()}
    print("  " + ", ".join(f"{name} {1e3 * alone[name].objective:.0f} ms with {parts[name]}" for name in JOBS))

for goal in ("slower", "sum"):
    outcome, designs = solve(goal)
    times, ports = {}, {}
    for name, instance in instances.items():
        evaluation = ddlopt.check(instance, designs[name])
        assert evaluation.feasible
        times[name] = 1e3 * float(evaluation.objective)
        ports[name] = np.zeros((2, SERVERS), dtype=int)
        for i, j, count in designs[name].links:
            ports[name][0, i] += count
            ports[name][1, j] += count
    assert (sum(ports.values()) <= PORTS).all()
    reached = max(times.values()) if goal == "slower" else sum(times.values())
    assert reached <= outcome.objective * (1 + 1e-6)
    print(f"least {goal} of the two, {outcome.status}:")
    print("  " + ", ".join(f"{name} {times[name]:.0f} ms with {ports[name][0].tolist()}" for name in JOBS))
