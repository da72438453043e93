"""A compression formulation inside somebody else's model: pipeline stages that share what accuracy may be lost.

Each stage of a pipeline has gradients and links of its own, and an iteration takes as long as the slowest stage. The
host builds one :class:`OverlapTimeline` for every stage and couples them by their ports ``time`` and ``excess``.
"""

import pyomo.environ as pyo

import ddlopt
from ddlopt.models.compression import CompressionInstance
from ddlopt.models.compression.timeline.formulations.overlap_timeline import OverlapTimeline
from ddlopt.models.compression.timeline.units import error_unit, time_unit_s
from ddlopt.solvers.backends import Highs
from ddlopt.solvers.contracts import Limits

STAGES = 2
BUDGET = 0.3
whole = ddlopt.generate("compression", "network", model="resnet50", nodes=8, gpus_per_node=1)


def stage(number):
    """Every gradient of a stretch of layers, ready as if its stage began its backward pass at 0."""
    size = -(-whole.size // STAGES)
    own = whole.gradients[number * size : (number + 1) * size]
    early = [each.model_copy(update={"ready_s": each.ready_s - own[0].ready_s}) for each in own]
    data = {"name": f"stage-{number}", "gradients": early, "menus": whole.menus, "error_budget": BUDGET}
    return CompressionInstance.from_data(data)


instances = [stage(number) for number in range(STAGES)]
formulation = OverlapTimeline()
host = pyo.ConcreteModel("pipeline")
host.STAGES = pyo.RangeSet(0, STAGES - 1)
host.stage = pyo.Block(host.STAGES)
for number, instance in enumerate(instances):
    formulation.build(host.stage[number], instance)
host.iteration_ms = pyo.Var(bounds=(0, None))
host.slowest = pyo.Constraint(
    host.STAGES,
    rule=lambda m, k: m.iteration_ms >= 1e3 * time_unit_s(instances[k]) * m.stage[k].time,
)
lost = sum(
    error_unit(instance) * host.stage[number].excess + instance.least_error for number, instance in enumerate(instances)
)
# In thousandths of the budget: solvers drop coefficients below 1e-9.
host.accuracy = pyo.Constraint(expr=1e3 / BUDGET * lost <= 1e3)
host.objective = pyo.Objective(expr=host.iteration_ms)
outcome = Highs().solve(host, Limits(time_s=60, gap=1e-3))
print(f"{outcome.status}: {outcome.objective:.2f} ms an iteration")

for number, instance in enumerate(instances):
    plan = formulation.read(host.stage[number], instance)
    evaluation = ddlopt.check(instance, plan)
    assert evaluation.feasible
    figures = evaluation.details
    print(f"{instance.name}: {1e3 * figures['time_s']:.2f} ms, error {figures['error']:.3f} of {BUDGET} for all")
