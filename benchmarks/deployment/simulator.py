"""How many plans the fast simulator runs in a second of processor time, and how many the readable one.

Every plan is of 40 groups. "one action": all groups alike; "near": every group but four as the first; "random": every
group anything. "aborted" gives a limit of the best time of "near". Tasks are those of the last plan.

"n threads" is by the wall clock, and so says little where other work runs.

    python benchmarks/simulator.py [--plans 2000] [--threads 2] [--instance deployment/…]
"""

import argparse
import math
import os
import time
from collections.abc import Callable

import numpy as np

from ddlopt.instances import load
from ddlopt.models.deployment import DeploymentInstance, DeviceGroup, Operator, Tensor
from ddlopt.models.deployment.simulate import simulate
from ddlopt.solvers.deployment.fast_simulator import Simulator


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


def rate(simulator: Simulator, rows: np.ndarray, above: float, clock: Callable[[], float]) -> float:
    """Plans a second."""
    simulator.run_all(rows[:4])
    began = clock()
    simulator.run_all(rows, above=above)
    return len(rows) / (clock() - began)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plans", type=int, default=2000)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--instance")
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    instance = load(options.instance) if options.instance else network(rng)
    simulator, threaded = Simulator(instance), Simulator(instance, threads=options.threads)
    count, groups = len(simulator.actions), instance.groups
    print(
        f"{instance.name}: {len(instance.operators)} operators in {groups} groups, {instance.devices} devices, "
        f"{count} actions"
    )
    alike = np.repeat(rng.integers(count, size=(options.plans, 1)), groups, axis=1)
    near = alike.copy()
    for row in near:
        row[rng.choice(groups, size=min(4, groups), replace=False)] = rng.integers(count, size=min(4, groups))
    anything = rng.integers(count, size=(options.plans, groups))
    simulator.run_all(near[:1])
    limit = float(simulator.run_all(near)[0].min())
    print(f"{'plans':12}{'tasks':>8}{'fast /s':>10}{f'{options.threads} threads':>12}{'readable /s':>14}")
    for name, rows, above in (
        ("one action", alike, math.inf),
        ("near", near, math.inf),
        ("random", anything, math.inf),
        ("aborted", near, limit),
    ):
        deployment = simulator.deployment(rows[-1])
        began = time.process_time()
        tasks = len(simulate(instance, deployment).tasks)
        slow = 1 / (time.process_time() - began)
        one, more = rate(simulator, rows, above, time.process_time), rate(threaded, rows, above, time.perf_counter)
        print(f"{name:12}{tasks:8}{one:10.0f}{more:12.0f}{slow:14.1f}")


if __name__ == "__main__":
    main()
