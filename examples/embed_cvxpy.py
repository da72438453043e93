"""A convex host model in CVXPY: how strongly to compress gradients, and which way they take through a given network.

Two of our formulations meet in it. :class:`ContinuousLevels` is a program in CVXPY itself: the rank of each gradient,
whose error is a convex function of it. :class:`RingsAndRoutes` on given links is a linear program in Pyomo: rings and
routes over the links that are laid, for bytes that somebody else decides. Its arrays become CVXPY constraints, its
ports expressions: the ranks decide what the group all-reduces (``group_units``), beside traffic that is as it is
(``traffic_units``). The time is that of the slower, the timeline of the backward pass or the busiest link. Energy has a
price, and that of a link grows with the square of its load, of which neither formulation knows.
"""

import cvxpy as cp
import numpy as np

import ddlopt
from ddlopt.models.compression.levels.arrays import arrays_of
from ddlopt.models.compression.levels.formulations.continuous_levels import ContinuousLevels, units_of
from ddlopt.models.compression.levels.instance import LevelPlan
from ddlopt.models.topology import AllReduceGroup, TopologyInstance
from ddlopt.models.topology.formulations.rings_and_routes import RingsAndRoutes
from ddlopt.solvers.backends.convex import Convex
from ddlopt.solvers.backends.cvxpy_block import CvxpyBlock
from ddlopt.solvers.contracts import Limits, Status

SERVERS, BANDWIDTH = 8, 1.25e9
levels = ddlopt.generate(
    "compression", "levels-network", model="vgg16", compressor="powersgd", workers=SERVERS, network_gigabit_per_s=10.0
)
arrays, levels_units = arrays_of(levels), units_of(arrays_of(levels))


def network(hop_bytes):
    """The job's network, in which the all-reduce sends ``hop_bytes`` bytes over each hop of a ring."""
    traffic = np.zeros((SERVERS, SERVERS))
    traffic[:4, 4:] = 4e6  # activations from the first half of the servers to the second
    group = AllReduceGroup(members=tuple(range(SERVERS)), gradient_bytes=hop_bytes * SERVERS / (2 * (SERVERS - 1)))
    return TopologyInstance(
        name="network",
        servers=SERVERS,
        degree=2,
        link_bandwidth_bytes_per_s=BANDWIDTH,
        allreduce_groups=(group,),
        traffic_bytes=traffic,
    )


most_bytes = BANDWIDTH * arrays.wire.at(arrays.highest).sum()
laid = tuple((i, (i + hop) % SERVERS, 1) for i in range(SERVERS) for hop in (1, 3))
links = RingsAndRoutes(links=laid, form="congestion", demand="open")
open_network = network(most_bytes)

for price_of_energy in (0.01, 30.0):
    embedded = CvxpyBlock(links, open_network)
    unit_bytes = embedded.block.unit_bytes
    problem = ContinuousLevels().problem(levels)
    part, there = problem.var_dict["part"], problem.var_dict["there"]

    more_s = arrays.wire.rate * (arrays.highest - arrays.lowest)  # on the wire at the highest rank than at the lowest
    sent = BANDWIDTH * (arrays.wire.at(arrays.lowest) + cp.multiply(more_s, part))
    group_is_served = embedded.port("group_units", 0) == cp.sum(sent) / unit_bytes
    traffic = [open_network.traffic_bytes[pair] / unit_bytes for pair in embedded.block.TRAFFIC]
    traffic_is_served = embedded.port("traffic_units") == np.array(traffic)
    timeline_s = levels_units.time_s * there[-1]
    congestion_s = unit_bytes / BANDWIDTH * embedded.port("congestion")
    time_s = cp.maximum(timeline_s, congestion_s)
    energy = cp.sum_squares(unit_bytes / BANDWIDTH * embedded.port("link_load"))
    host = cp.Problem(
        cp.Minimize(time_s + price_of_energy * energy),
        [*problem.constraints, *embedded.constraints, group_is_served, traffic_is_served],
    )
    outcome = Convex().solve(host, Limits())
    assert outcome.status is Status.OPTIMAL

    # Whole ranks: the next allowed ones, with which the error is less and the bytes are a few more.
    wanted = ContinuousLevels().read(problem, levels)
    chosen = [
        next(level for level in gradient.curve.allowed if level >= value - 1e-6)
        for gradient, value in zip(levels.gradients, wanted, strict=True)
    ]
    compression = ddlopt.check(levels, LevelPlan(instance=levels.name, levels=tuple(chosen)))
    whole_network = network(BANDWIDTH * float(arrays.wire.at(np.array(chosen, dtype=float)).sum()))
    design = ddlopt.check(whole_network, embedded.read(whole_network))
    assert compression.feasible
    assert design.feasible
    assert design.objective <= 1.1 * congestion_s.value  # a few more bytes than with parts of ranks
    checked_s = max(float(compression.objective), float(design.objective))
    print(
        f"energy at {price_of_energy:5.2f}: {1e3 * time_s.value:.2f} ms, energy {energy.value:.5f}; with whole ranks "
        f"{1e3 * checked_s:.2f} ms, error {float(compression.details['error']):.3f} of {levels.error_budget:.3f}"
    )
