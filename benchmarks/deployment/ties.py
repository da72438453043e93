"""What it costs that ends of tasks tie exactly, and what becomes of plans where they do not.

"cost": processor time for a plan by the readable simulator, which counts in whole numbers, as a multiple of that of the
same simulation in floats, without memory and records. Best of several runs in alternating order, in one process.

"untied": plans of small instances, in thirds and with figures that are small whole numbers, all of them; how many take
another time if sums that are rounded apart count as different, and by how much at most.
"""

import heapq
import itertools
from unittest.mock import patch

import numpy as np

from benchmarks.harness import Benchmark, Option, timed
from ddlopt.frontier.deployment.plan.choices import Choices
from ddlopt.instances import best, load
from ddlopt.models.deployment import DeploymentInstance, DeviceGroup, Operator, Tensor
from ddlopt.models.deployment.plan.simulator import tasks
from ddlopt.models.deployment.plan.simulator.simulate import simulate
from ddlopt.solvers.deployment.plan.simulator.fast import Simulator


def in_floats(instance, deployment):
    """The readable simulation with floats for times: seconds of a step."""
    log, free, under_way, now = [], {}, [], 0.0

    def reserve(task):
        finish = max(now, free.get(task.resource, now)) + task.duration
        free[task.resource] = finish
        heapq.heappush(under_way, (finish, len(log)))
        log.append(task)

    with patch.object(tasks, "Fraction", float):
        expansion = tasks.Expansion(instance, deployment, float)
    for task in expansion.tasks:
        if not task.waits:
            reserve(task)
    while under_way:
        now, place = heapq.heappop(under_way)
        for later in log[place].next:
            later.waits -= 1
            if not later.waits:
                reserve(later)
    return now


def rounded_apart(simulator):
    """The fast simulator where sums are the same only if they are rounded to the same."""
    found = Simulator(simulator.instance, simulator.actions)
    found._tables = found._tables._replace(slack=np.uint64(0))
    return found


def least(runs, repeat):
    """Least seconds of each of several calls, made in turn."""
    rounds = [[timed(*run)[1].processor_s for run in runs] for _ in range(repeat)]
    return [min(column) for column in zip(*rounds, strict=True)]


def cost(asked):
    """Ratios, by instance."""
    for name in asked.instances:
        instance, plan = load(name), best(name)
        exact, readable, plain = least(
            [(simulate, instance, plan, True), (simulate, instance, plan), (in_floats, instance, plan)], asked.repeat
        )
        yield {
            "instance": instance.name, "tasks": len(simulate(instance, plan).tasks),
            "fractions out": f"{exact / plain:.2f}", "floats out": f"{readable / plain:.2f}",
        }  # fmt: skip


def drawn(rng):
    """A small instance on three devices, prone to ties."""
    operators = int(rng.integers(3, 6))
    return DeploymentInstance(
        name="drawn",
        operators=tuple(
            Operator(
                name=f"op{place}",
                group=min(place, 1),
                times_s={"a": (float(rng.choice([0, 0.5, 1, 1, 2, 3])),)},
                gradient_bytes=float(rng.choice([0, 1, 2])),
            )
            for place in range(operators)
        ),
        tensors=tuple(
            Tensor(
                producer=place,
                consumers=tuple({place + 1, int(rng.integers(place + 1, operators))}),
                size_bytes=float(rng.choice([1, 2, 3, 6])),
            )
            for place in range(operators - 1)
        ),
        device_groups=(DeviceGroup(type="a", count=3, memory_bytes=1e9, bandwidth_bytes_per_s=1.0),),
        bandwidth_bytes_per_s=[[1.0]],
    )


def untied(asked):
    """Plans that rounding gets wrong."""
    plans = wrong = instances = misled = 0
    most = 0.0
    for seed in range(asked.drawn):
        choices = Choices(drawn(np.random.default_rng(seed)), every=True)
        numbers = np.array(list(itertools.product(*(range(len(own)) for own in choices.of_groups))))
        simulator = Simulator(choices.instance, choices.actions)
        exact, _ = simulator.run_all(*choices.rows(numbers))
        other, _ = rounded_apart(simulator).run_all(*choices.rows(numbers))
        apart = abs(exact - other) / np.maximum(exact, 1e-9)
        differ = apart > 1e-9
        plans, wrong, instances = plans + len(exact), wrong + int(differ.sum()), instances + bool(differ.any())
        misled += bool(exact[other.argmin()] > exact.min() * (1 + 1e-9))
        most = max(most, float(apart.max()))
    yield {
        "instances": asked.drawn, "plans": plans, "plans that differ": wrong, "at most by": f"{most:.0%}",
        "instances with one": instances, "best plan is none": misled,
    }  # fmt: skip


BENCH = Benchmark(
    cost,
    untied,
    instances=Option(
        [
            "deployment/tiny-g4-m3-s5",
            "deployment/bert-small-two-machines",
            "deployment/vgg19-testbed-g8",
            "deployment/vgg19-testbed",
            "deployment/inception-v3-testbed",
        ],
        quick=["deployment/tiny-g4-m3-s5"],
    ),
    drawn=Option(2000, "small instances", quick=20),
    repeat=Option(5, quick=1),
)
