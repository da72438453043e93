"""How many plans the fast simulator runs in a second of processor time, and how many the readable one.

Every plan is of 40 groups. "one action": the same for all groups; "near": every group but four as the first; "random":
every group anything. "aborted" gives a limit of the best time of "near". Tasks are those of the last plan. Several
threads are by the wall clock, which says little where other work runs.
"""

import math
import os

import numpy as np

from benchmarks.harness import Benchmark, Option, timed
from ddlopt.instances import load
from ddlopt.models.deployment import DeploymentInstance, DeviceGroup, Operator, Tensor
from ddlopt.models.deployment.plan.simulator.simulate import simulate
from ddlopt.solvers.deployment.plan.simulator.fast import Simulator


def network(rng: np.random.Generator, groups: int = 40, layers: int = 50) -> DeploymentInstance:
    """A chain with skips, forward and backward, on 16 devices in three groups."""
    speed = {"v100": 1.0, "1080ti": 2.0, "p100": 1.9}
    operators, tensors = [], []
    for place in range(2 * layers):
        layer = min(place, 2 * layers - 1 - place)
        work = float(rng.uniform(1e-3, 20e-3)) * (2 if place >= layers else 1)
        times = {
            kind: tuple(factor * (2e-4 + work * share) for share in (1.0, 0.5, 0.25, 0.125))
            for kind, factor in speed.items()
        }
        gradient = float(rng.choice([0, 4e5, 4e6, 4e7])) if place >= layers else 0.0
        operators.append(
            Operator(name=f"op{place}", group=layer * groups // layers, times_s=times, gradient_bytes=gradient)
        )
        size = float(rng.uniform(1e6, 5e7))
        if place + 1 < 2 * layers:
            consumers = {place + 1, 2 * layers - 1 - place} if place < layers else {place + 1}
            tensors.append(Tensor(producer=place, consumers=tuple(sorted(consumers - {place})), size_bytes=size))
    groups_of_devices = [("v100", 4, 30, 8e9), ("1080ti", 8, 9, 3e9), ("p100", 4, 10, 3e9)]
    return DeploymentInstance(
        name="chain",
        operators=tuple(operators),
        tensors=tuple(tensors),
        device_groups=tuple(
            DeviceGroup(type=kind, count=count, memory_bytes=memory * 2**30, bandwidth_bytes_per_s=rate)
            for kind, count, memory, rate in groups_of_devices
        ),
        bandwidth_bytes_per_s=[[2.81e9] * 3] * 3,
        shares=(1.0, 0.5, 0.25, 0.125),
        latency_s=12e-6,
    )


def speeds(asked):
    """Plans a second, by how similar they are."""
    rng = np.random.default_rng(0)
    instance = load(asked.instance) if asked.instance else network(rng)
    simulator, threaded = Simulator(instance), Simulator(instance, threads=asked.threads)
    count, groups = len(simulator.actions), instance.groups
    yield (
        f"{instance.name}: {len(instance.operators)} operators in {groups} groups, {instance.devices} devices, "
        f"{count} actions."
    )
    uniform = np.repeat(rng.integers(count, size=(asked.plans, 1)), groups, axis=1)
    near = uniform.copy()
    for row in near:
        row[rng.choice(groups, size=min(4, groups), replace=False)] = rng.integers(count, size=min(4, groups))
    anything = rng.integers(count, size=(asked.plans, groups))
    for each in (simulator, threaded):  # kernels are compiled
        each.run_all(near[:4])
    limit = float(simulator.run_all(near)[0].min())
    kinds = {"one action": (uniform, math.inf), "near": (near, math.inf), "random": (anything, math.inf),
             "aborted": (near, limit)}  # fmt: skip
    for name, (rows, above) in kinds.items():
        found, readable = timed(simulate, instance, simulator.deployment(rows[-1]))
        one = timed(simulator.run_all, rows, above=above)[1].processor_s
        more = timed(threaded.run_all, rows, above=above)[1].wall_s
        yield {
            "plans": name, "tasks": len(found.tasks), "fast /s": f"{len(rows) / one:.0f}",
            f"{asked.threads} threads /s": f"{len(rows) / more:.0f}", "readable /s": f"{1 / readable.processor_s:.1f}",
        }  # fmt: skip


BENCH = Benchmark(
    speeds,
    plans=Option(2000, "how many", quick=50),
    threads=Option(os.cpu_count()),
    instance=Option(None, "a bundled instance, in place of a chain with skips"),
)
