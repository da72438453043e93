"""A cluster model in which compression decides how long jobs communicate, and so how many slots they need.

Each job trains on four GPUs of a cluster and is worth something if it is done by its deadline. What it sends can be
compressed, gradient by gradient, which makes iterations shorter and gradients less exact. The host builds one
:class:`TimeIndexed` for the cluster and one :class:`OverlapTimeline` for each job, and ties them together: a finished
job has had the slots for all its iterations, at the length that its compression leaves them. Exactness has a price, so
that nothing is compressed that need not be.

The scheduling formulation has speeds as data. It gets those of the shortest iterations that there are, so that it
leaves out nothing, and the host adds the row for the length chosen. With one width for each job that row is linear in
the ports ``running`` and ``time``: slots times their length on one side, iterations times theirs on the other. A job
that is not finished needs no slots; the constant that says so is what it would need without compression. Afterwards the
schedule is read with the lengths chosen, and checked with them.
"""

import math

import pyomo.environ as pyo

import ddlopt
from ddlopt.models.compression.timeline.formulations.overlap_timeline import OverlapTimeline
from ddlopt.models.compression.timeline.units import error_unit, time_unit_s
from ddlopt.models.scheduling import AllOrNothing, Job, RingTiming, SchedulingInstance, ServerGroup
from ddlopt.models.scheduling.formulations.time_indexed.time_indexed import TimeIndexed
from ddlopt.solvers.backends import Highs
from ddlopt.solvers.contracts import Limits

WORKERS, SLOTS, SLOT_S, PRICE_OF_ERROR = 4, 8, 900.0, 2.0
JOBS = {  # model, iterations, arrival, deadline, worth
    "classify": ("resnet50", 36_000, 0, 6, 4.0),
    "detect": ("vgg16", 6_000, 0, 4, 3.0),
    "segment": ("vgg19", 6_000, 2, 8, 3.0),
    "search": ("vgg16", 7_000, 1, 8, 2.0),
}
FORWARD_PART = 0.5  # of the time of the backward pass


def compression_of(name):
    """A job's gradients as they become ready in the backward pass, and what may be done with each."""
    drawn = ddlopt.generate(
        "compression",
        "network",
        model=JOBS[name][0],
        nodes=WORKERS,
        gpus_per_node=1,
        network_gigabit_per_s=10.0,
        compressors=("none", "dgc:0.01", "dgc:0.001"),
    )
    # With a budget, though it does not bind, there is the port ``excess``, which the host prices.
    loosest = sum(max(option.error for option in drawn.menus[each.menu]) for each in drawn.gradients)
    return type(drawn).from_data(drawn.model_dump(mode="json") | {"name": name, "error_budget": loosest})


def cluster(gpus, exchange_s):
    """The cluster, where every iteration takes the forward pass and what ``exchange_s`` says of the job."""
    jobs = [
        Job(
            name=name,
            arrival=arrival,
            deadline=deadline,
            min_workers=WORKERS,
            max_workers=WORKERS,
            timing=RingTiming(
                gradient_bytes=0.0,  # their time is in the backward pass, which they overlap
                bandwidth_bytes_per_s=1.25e9,
                forward_s_per_sample=FORWARD_PART * compressions[name].gradients[-1].ready_s,
                backward_s=exchange_s[name],
            ),
            minibatches=WORKERS * iterations,
            utility=AllOrNothing(value=worth),
        )
        for name, (_, iterations, arrival, deadline, worth) in JOBS.items()
    ]
    servers = (ServerGroup(count=gpus, capacity={"gpu": 1.0}),)
    return SchedulingInstance(name="cluster", slots=SLOTS, slot_s=SLOT_S, servers=servers, jobs=jobs)


compressions = {name: compression_of(name) for name in JOBS}
plain_s = {name: ddlopt.solve(each, "none").objective for name, each in compressions.items()}
fastest_s = {name: ddlopt.solve(each).bound for name, each in compressions.items()}
scheduling, compressing = TimeIndexed(), OverlapTimeline(ordered=False)

for gpus in (4, 8, 16):
    optimistic = cluster(gpus, fastest_s)
    host = pyo.ConcreteModel("cluster")
    host.cluster = pyo.Block()
    scheduling.build(host.cluster, optimistic)
    host.job = pyo.Block(list(JOBS))
    host.has_slots_enough = pyo.ConstraintList()
    host.is_no_slower_than_plain = pyo.ConstraintList()
    lost = 0.0
    for number, (name, (_, iterations, *_)) in enumerate(JOBS.items()):
        block, data = host.job[name], compressions[name]
        compressing.build(block, data)
        exchange_s = time_unit_s(data) * block.time
        forward_s = FORWARD_PART * data.gradients[-1].ready_s
        slots = sum(running for (job, _, _), running in host.cluster.running.items() if job == number)
        needed = iterations / SLOT_S * (forward_s + exchange_s)
        at_most = iterations / SLOT_S * (forward_s + plain_s[name])
        host.has_slots_enough.add(slots >= needed - at_most * (1 - host.cluster.finished[number]))
        host.is_no_slower_than_plain.add(exchange_s <= plain_s[name])
        lost += error_unit(data) * block.excess / data.error_budget
    worth = scheduling.objective_value(optimistic, host.cluster.objective)
    host.worth = pyo.Objective(expr=worth - PRICE_OF_ERROR * lost, sense=pyo.maximize)
    outcome = Highs().solve(host, Limits(time_s=60, gap=1e-3))

    # What was chosen as data: plans and schedule are checked from scratch, the latter at the lengths of the former.
    plans = {name: compressing.read(host.job[name], data) for name, data in compressions.items()}
    checked = {name: ddlopt.check(compressions[name], plan) for name, plan in plans.items()}
    assert all(each.feasible for each in checked.values())
    chosen = cluster(gpus, {name: float(each.details["time_s"]) for name, each in checked.items()})
    schedule = scheduling.read(host.cluster, chosen)
    evaluation = ddlopt.check(chosen, schedule)
    assert evaluation.feasible
    errors = {name: float(each.details["error"]) / compressions[name].error_budget for name, each in checked.items()}
    assert math.isclose(
        float(evaluation.objective) - PRICE_OF_ERROR * sum(errors.values()), outcome.objective, rel_tol=1e-3
    )
    print(f"{gpus:2} GPUs: {outcome.status}, worth {float(evaluation.objective):.0f} of finished jobs")
    for number, name in enumerate(JOBS):
        slots = [t for run in schedule.runs if run.job == number for t in range(run.start, run.end)]
        took = f"slots {sorted(slots)}" if slots else "not run"
        wire_ms, exchange_ms = (1e3 * float(checked[name].details[figure]) for figure in ("wire_busy_s", "time_s"))
        print(f"    {name:9} {took:27} sends for {wire_ms:3.0f} of {exchange_ms:3.0f} ms, error {errors[name]:.2f}")
