"""Which operators of a plan to duplicate for sufficient factors, decided together with the plan.

VGG19 with 6 samples a step on two machines of one GPU each. The host builds a :class:`MakespanBound` for the plan and
an :class:`SfbMilp` for the factors. In general the factors' costs are a matter of the plan: replicas and bandwidth.
Here there is one way only to all-reduce, on both GPUs, so that they are data, and the coupling is exact:

- an operator is duplicated in one block if it is in the other, and only if its group all-reduces;
- the makespan block knows what duplication costs in computation and saves in all-reduces, but not that what duplicated
  operators read must be broadcast. The factor block knows (port ``broadcast``), for inputs that are halved between the
  GPUs; so a broadcast counts where the group that produces the tensor has replicas. Half of the tensor and a latency
  then load each of the two links, once, so that the step takes at least their sum: a row with the makespan block's
  port ``time``. The rest of the factor block's costs is not added, as the makespan block has it already.

So the optimum is a bound for all plans with factors. Its plan is compared with deciding on factors after the plan, by a
minimum cut as TAG does, and with searches; every time is that of ``evaluate``.
"""

import pyomo.environ as pyo

import ddlopt
from ddlopt.models.compression.sfb.formulations.sfb_milp import SfbMilp
from ddlopt.models.deployment import Deployment, GroupPlan
from ddlopt.models.deployment.plan.figures import PlanFigures
from ddlopt.models.deployment.plan.formulations.makespan_bound import MakespanBound
from ddlopt.solvers.backends import Highs
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.deployment.plan.sufficient_factors import duplicated_by_cut, factor_instance

instance = ddlopt.load("deployment/vgg19-two-machines")
planning, factoring = MakespanBound(), SfbMilp()
figures = PlanFigures(instance)
both = next(place for place, layout in enumerate(figures.layouts) if layout.replicas == 2)
all_reduce = next(a for a, each in enumerate(figures.decisions) if each.layout == both and each.mode == "all_reduce")
halved = [a for a, each in enumerate(figures.decisions) if each.layout == both]

# The factors' costs where everything all-reduces; those of operators that in the end do not are not used.
everywhere = GroupPlan(device_groups=(0, 1), mode="all_reduce")
factors = factor_instance(instance, Deployment(instance=instance.name, groups=(everywhere,) * instance.groups))


def solve(together):
    """Milliseconds that no plan undercuts, and the plan; without factors unless ``together``."""
    host = pyo.ConcreteModel("deployment")
    host.plan, host.factors = pyo.Block(), pyo.Block()
    planning.build(host.plan, instance)
    factoring.build(host.factors, factors)
    group = [operator.group for operator in instance.operators]
    host.OPERATORS = pyo.RangeSet(0, len(group) - 1)
    if not together:
        host.factors.duplicated.fix(0)

    @host.Constraint(host.OPERATORS, doc="the blocks agree")
    def duplicated_in_both(m, o):
        return m.factors.duplicated[o] == m.plan.duplicated[o, both]

    @host.Constraint(host.OPERATORS, doc="only what all-reduces is duplicated")
    def only_what_all_reduces(m, o):
        return m.factors.duplicated[o] <= m.plan.decided[group[o], all_reduce]

    host.sent = pyo.Var(host.factors.broadcast.index_set(), bounds=(0, 1), doc="broadcasts of what is halved")

    @host.Constraint(host.sent.index_set(), doc="a broadcast counts unless its producer is elsewhere")
    def is_sent(m, t):
        replicated = sum(m.plan.decided[group[instance.tensors[t].producer], a] for a in halved)
        return m.sent[t] >= m.factors.broadcast[t] + replicated - 1

    seconds = {t: factors.broadcast_s[t] + instance.latency_s for t in host.sent if factors.broadcast_s[t]}
    unit_s = planning.objective_value(instance, 1.0)
    host.links_are_busy = pyo.Constraint(
        expr=host.plan.time >= sum(each / unit_s * host.sent[t] for t, each in seconds.items())
    )
    host.time = pyo.Objective(expr=host.plan.objective)
    outcome = Highs().solve(host, Limits(time_s=60, gap=1e-4))
    plan = planning.read(host.plan, instance)
    if together:
        assert plan.duplicated == factoring.read(host.factors, factors).duplicated
    return 1e3 * planning.objective_value(instance, outcome.bound), plan


def shown(name, plan, bound_ms=None):
    """Print and return what ``evaluate`` says, in milliseconds."""
    evaluation = ddlopt.check(instance, plan)
    assert evaluation.feasible
    time_ms = 1e3 * float(evaluation.objective)
    least = "" if bound_ms is None else f", none below {bound_ms:.2f} ms"
    print(f"{name:41} {time_ms:6.2f} ms, {len(plan.duplicated):2} operators duplicated{least}")
    return time_ms


times = {}
for options in ("search=data-parallel", "search=tag", "search=plan-search"):
    times[options] = shown(options, ddlopt.solve(instance, f"sufficient-factors:{options}").solution)
bound_ms, plan = solve(together=False)
times["plan"] = shown("makespan bound without factors", plan, bound_ms)
later = Deployment.model_validate(plan.model_dump() | {"duplicated": duplicated_by_cut(instance, plan)})
times["later"] = shown("the same, then factors by a minimum cut", later)
bound_ms, plan = solve(together=True)
times["together"] = shown("makespan bound and factors together", plan, bound_ms)
assert all(time_ms >= bound_ms * (1 - 1e-6) for time_ms in times.values())
print(f"together against later: {1 - times['together'] / times['later']:.0%} less")
