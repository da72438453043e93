"""A budget to be split between faster GPUs and faster links, with strategies and topology answering to both.

The host model buys a kind of GPU and a kind of link for four servers. It builds :class:`JointStrategyTopology` into a
block of its own and couples to two of its ports: ``compute``, the compute time on the GPUs of the instance, and
``congestion``, the time that the busiest link takes at the instance's bandwidth. How each layer is parallelized, which
links are laid, and which rings and routes are taken follows from what is bought.
"""

import math
from collections import Counter

import pyomo.environ as pyo

import ddlopt
from ddlopt.instances.generators import generate
from ddlopt.models.codesign import CodesignInstance
from ddlopt.models.codesign.formulations.joint_milp import JointStrategyTopology
from ddlopt.solvers.backends import Highs
from ddlopt.solvers.contracts import Limits

GPUS = {"slow": (0.5, 6.0), "middle": (1.0, 10.0), "fast": (2.0, 20.0)}  # speed, price of a server's
LINKS = {"25G": (0.25, 0.5), "100G": (1.0, 2.0), "400G": (4.0, 7.0)}  # speed, price of a link with its two ports

instance = generate(
    "codesign", kind="job", job="dlrm", servers=4, degree=2, groups=(4,), subsets=(1,), memory_gigabytes=None
)
formulation = JointStrategyTopology(achievable_s=math.inf)  # what is worst here may be best with other links
second = 1 / formulation.objective_value(instance, 1.0)  # in the block's unit of time


def choose(host, name, kinds, amount, longest):
    """Add a choice among kinds of the given speeds, and the time that ``amount``, at most ``longest``, takes then."""
    bought = pyo.Var(list(kinds), domain=pyo.Binary)
    time = pyo.Var(bounds=(0, None))
    host.add_component(f"{name}_bought", bought)
    host.add_component(f"{name}_time", time)
    host.add_component(f"one_{name}", pyo.Constraint(expr=sum(bought.values()) == 1))
    rows = [time >= amount / speed - longest / speed * (1 - bought[kind]) for kind, (speed, _) in kinds.items()]
    host.add_component(f"{name}_takes_time", pyo.ConstraintList(rule=rows))
    return bought, time


print(
    "data-1: the layer runs on one server; row-4, column-4: its matrix is split over all four; owner: a table is whole"
)
for budget in (60, 80, 110):
    host = pyo.ConcreteModel("machine room")
    host.job = pyo.Block()
    formulation.build(host.job, instance)
    gpu, compute = choose(host, "gpu", GPUS, host.job.compute, longest=0.2 * second)
    link, communication = choose(host, "link", LINKS, host.job.congestion, longest=0.2 * second)
    price = sum(4 * GPUS[kind][1] * gpu[kind] for kind in GPUS) + sum(8 * LINKS[kind][1] * link[kind] for kind in LINKS)
    host.budget_is_kept = pyo.Constraint(expr=price <= budget)
    host.iteration = pyo.Objective(expr=compute + communication)
    outcome = Highs().solve(host, Limits(time_s=120, gap=1e-3))

    # What was bought as an instance of its own, in which the plan is checked from scratch.
    gpu_kind = max(GPUS, key=lambda kind: gpu[kind].value)
    link_kind = max(LINKS, key=lambda kind: link[kind].value)
    data = instance.model_dump(mode="json")
    for rate in ("flops_per_s", "convolution_flops_per_s", "memory_bytes_per_s"):
        data["device"][rate] *= GPUS[gpu_kind][0]
    data["link_bandwidth_bytes_per_s"] *= LINKS[link_kind][0]
    plan = formulation.read(host.job, instance)
    evaluation = ddlopt.check(CodesignInstance.from_data(data), plan.model_copy(update={"instance_digest": None}))
    assert evaluation.feasible
    assert math.isclose(evaluation.objective * second, outcome.objective, rel_tol=1e-5)

    taken = ", ".join(f"{count} × {name}" for name, count in Counter(plan.strategies).most_common(3))
    print(
        f"budget {budget:3}: {outcome.status}, {gpu_kind:6} GPUs, {link_kind:4} links, "
        f"{1e3 * evaluation.objective:6.2f} ms, of them {1e3 * evaluation.details['communication_s']:6.2f} ms "
        f"communication; most taken: {taken}"
    )
