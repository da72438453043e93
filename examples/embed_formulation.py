"""A formulation inside somebody else's model: the shortest cabling that an iteration time allows.

The host model knows where the racks stand. It builds :class:`RingsAndRoutes` into a block of its own, couples to two of
its ports, ``link`` and ``throughput``, and has an objective that the formulation knows nothing of.
"""

import pyomo.environ as pyo

import ddlopt
from ddlopt.models.topology.formulations.rings_and_routes import RingsAndRoutes
from ddlopt.models.topology.formulations.rows.throughput import unit_bytes
from ddlopt.solvers.backends import Highs
from ddlopt.solvers.contracts import Limits

instance = ddlopt.load("topology/tiny-n5-d3-duplex")
fastest = ddlopt.solve(instance, "rings-and-routes").objective
formulation = RingsAndRoutes()
RACK_M = (0, 2, 4, 20, 22)  # two rows of racks

for slack in (0.0, 0.1, 0.25):
    host = pyo.ConcreteModel("cabling")
    host.network = pyo.Block()
    formulation.build(host.network, instance)

    # throughput = (bytes of the busiest server over its links) / (bytes of the busiest link): a limit on time limits it
    bytes_allowed = ((1 + slack) * fastest - instance.compute_s) * instance.link_bandwidth_bytes_per_s
    host.time_is_kept = pyo.Constraint(
        expr=host.network.throughput >= (1 - 1e-9) * unit_bytes(instance) / bytes_allowed
    )
    host.fibre_m = pyo.Objective(
        expr=sum(abs(RACK_M[i] - RACK_M[j]) * host.network.link[i, j] for i, j in host.network.LINKS)
    )
    outcome = Highs().solve(host, Limits(time_s=60))

    design = formulation.read(host.network, instance)
    evaluation = ddlopt.check(instance, design)
    assert evaluation.feasible
    assert evaluation.objective <= (1 + slack) * fastest * (1 + 1e-6)
    print(
        f"iteration at most {slack:4.0%} slower: {outcome.status}, {outcome.objective:5.0f} m of fibre, "
        f"{evaluation.objective:.4g} s, {sum(count for _, _, count in design.links)} links"
    )
