"""One set of links for a job's traffic and for gossip: what a spectral gap costs in iteration time.

Sixteen servers with four optical links each train a recommendation model: all-to-all traffic for its tables, an
all-reduce for the rest. :class:`CirculantDesign` chooses links, rings and routes for that (ports ``links``,
``throughput``); a second job gossips over the same links, and :class:`CirculantGenerators` knows how fast that is
(ports ``chosen``, ``gap``). Neither knows of the other; the host ties links to links and asks for a gap. The symmetry
rows of the second stay out: servers that gossip cannot tell apart may differ in traffic.
"""

import pyomo.environ as pyo

import ddlopt
from ddlopt.frontier.topology.formulations.circulant import CirculantDesign
from ddlopt.models.gossip import CirculantInstance, evaluate
from ddlopt.models.gossip.circulant.formulations.circulant_generators import CirculantGenerators
from ddlopt.solvers.backends import Highs
from ddlopt.solvers.contracts import Limits

job = ddlopt.load("topology/dlrm-n16-d4-duplex")
gossip = CirculantInstance(name="gossip", nodes=job.servers, degree=job.degree)
designing, choosing = CirculantDesign(), CirculantGenerators(symmetry=False)
best_gap = ddlopt.solve(gossip).objective

for share in (0.5, 0.9, 1.0):
    host = pyo.ConcreteModel("traffic and gossip")
    host.traffic, host.gossip = pyo.Block(), pyo.Block()
    designing.build(host.traffic, job)
    choosing.build(host.gossip, gossip)

    @host.Constraint(host.gossip.GENERATORS, doc="gossip goes over links that are there")
    def links_are_there(m, g):
        return m.gossip.chosen[g] <= m.traffic.links[g]

    host.gap_is_kept = pyo.Constraint(expr=host.gossip.gap >= share * best_gap * (1 - 1e-9))
    host.fastest = pyo.Objective(expr=host.traffic.throughput, sense=pyo.maximize)
    Highs().solve(host, Limits(time_s=60, gap=1e-6))

    design, network = designing.read(host.traffic, job), choosing.read(host.gossip, gossip)
    checked, gap = ddlopt.check(job, design), evaluate(gossip, network).objective
    assert checked.feasible
    links = ", ".join(f"±{g}" for g in network.generators)
    took = f"iteration {1e3 * checked.objective:.2f} ms"
    print(f"gap at least {share * best_gap:.2f}: {took}, gap {gap:.3f} over {links}")
