"""Registers of rack switches for two jobs: the sums of a dense one, or hot parameters of a sparse one.

Four racks hang below one switch. A dense job would like rack switches to add its gradients up
(:class:`TreeAggregation`, port ``aggregates``), a sparse one would like its hot parameters on them
(:class:`HotParameters`, port ``used``). Both take registers of the same switches, which neither formulation knows of;
the host does. What counts is for how long the links above the racks are busy in a second.
"""

import pyomo.environ as pyo

from ddlopt.instances.generators import generate
from ddlopt.models.aggregation import AggregatingSwitches, TreeInstance, TreeJob, evaluate
from ddlopt.models.aggregation.hot.formulations.hot_parameters import HotParameters
from ddlopt.models.aggregation.tree.formulations.tree_aggregation import TreeAggregation
from ddlopt.solvers.backends import Highs
from ddlopt.solvers.contracts import Limits

REGISTERS, OF_A_SUM = 48, 40
MESSAGE_S, STEPS_PER_S = 2e-5, 6

sparse = generate("aggregation", "hot-zipf", seed=3, parameters=400, workers=16, switches=4, racks=True)
sparse = type(sparse).from_data(
    sparse.model_dump(mode="json") | {"switches": [
        switch.model_dump(mode="json") | {"registers": REGISTERS} for switch in sparse.switches
    ]}
)  # fmt: skip
workers = [switch.workers[0] for switch in sparse.switches]
dense = TreeInstance(
    name="racks",
    parents=(4, 4, 4, 4, None),
    seconds_per_message=(MESSAGE_S,) * 5,
    jobs=(TreeJob(name="dense", loads=(5, 2, 6, 3, 0), message_size=1.0),),
    memory=(1, 1, 1, 1, 0),
)


def solve(shared):
    """Switches that add up and parameters on switches, by rack; each job has all registers unless ``shared``."""
    placing, keeping = TreeAggregation(), HotParameters(reduced=False)
    host = pyo.ConcreteModel("two jobs")
    host.dense, host.sparse = pyo.Block(), pyo.Block()
    placing.build(host.dense, dense)
    keeping.build(host.sparse, sparse)

    @host.Constraint(pyo.RangeSet(0, 3), doc="registers of a rack's switch")
    def registers_suffice(m, rack):
        sums = m.dense.aggregates[0, rack] if shared else 0
        return OF_A_SUM * sums + m.sparse.used[rack] <= REGISTERS

    busy = STEPS_PER_S * placing.objective_value(dense, host.dense.objective)
    saved = MESSAGE_S * keeping.objective_value(sparse, host.sparse.objective)
    host.busy = pyo.Objective(expr=busy - saved)
    Highs().solve(host, Limits(gap=1e-6))
    return placing.read(host.dense, dense), keeping.read(host.sparse, sparse)


nothing = evaluate(dense, AggregatingSwitches(instance=dense.name, switches=((),))).objective
for shared in (False, True):
    switches, hot = solve(shared)
    saved = STEPS_PER_S * (nothing - evaluate(dense, switches).objective) + MESSAGE_S * evaluate(sparse, hot).objective
    print("registers shared:" if shared else "registers of its own for each job:")
    print(f"  links are busy for {1e3 * saved:.2f} ms a second less than without aggregation")
    for rack, count in enumerate(workers):
        adds = "adds the dense job up" if rack in switches.switches[0] else "passes the dense job on"
        print(f"  rack {rack}: {adds}; {len(hot.placed[rack][0])} hot parameters for {count} workers")
