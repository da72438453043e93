"""Whatever is tiny is proven by the default method, and agrees with all answers, tried one by one."""

import random
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from deployment_plans import anneal_little
from partition_cases import add_backward, node, slots_of
from volume import for_each, seeds, some

from ddlopt.frontier.deployment.plan.brute_force import BruteForce
from ddlopt.frontier.deployment.plan.choices import Choices
from ddlopt.instances.generators.deployment.random import random_plan
from ddlopt.models.contracts import Instance
from ddlopt.models.deployment.partition.evaluate import evaluate_partition
from ddlopt.models.deployment.partition.instance import Partition, PartitionInstance
from ddlopt.models.errors import InstanceError
from ddlopt.solvers.catalogue import default_method, method
from ddlopt.solvers.contracts import Limits, Status

NODES = 8
MOST_PARTITIONS = 60_000
MOST_PLANS = 1e6
EXACT = 1e-6
LIMITS = Limits(gap=0)
"""By default a bound within 1e-4 is enough, and that is where a method may stop."""
WHOLE_NUMBERS = 0.5
"""Part of the instances, where many partitions take the same time."""


def partition(draw: random.Random, goal: str) -> PartitionInstance | None:
    """At most eight nodes with colours, with unsupported ones and little memory; None if it is bad or too large."""
    count = draw.randint(2, NODES)
    density = draw.choice([0.2, 0.35, 0.6])
    edges = [(u, v) for v in range(count) for u in range(v) if draw.random() < density]
    nodes = [node(draw, place) for place in range(count)]
    for place, each in enumerate(nodes):
        if draw.random() < 0.4:
            each["colour"] = place if draw.random() < 0.6 else draw.randint(0, count)
    fields: dict[str, Any] = {"goal": goal}
    if goal == "latency":
        fields["subgraphs"] = draw.choice([1, 2, 2, 3, 4])
    else:
        if count <= NODES - 3 and draw.random() < 0.6:
            add_backward(draw, nodes, edges, count)
        fields |= {"contiguous": draw.random() < 0.5, "separate_passes": draw.random() < 0.5}
    if draw.random() > WHOLE_NUMBERS:
        for each in nodes:
            for name in ("accelerator_s", "processor_s", "transfer_s"):
                each[name] = each[name] and each[name] * draw.uniform(0.5, 1.5)
    numbers = {"accelerators": draw.randint(0, 3), "processors": draw.randint(0, 2)}
    data = {"name": "tiny", "nodes": nodes, "edges": edges, "memory_bytes": draw.choice([4, 6, 100]), **numbers}
    if len(nodes) > NODES:
        return None
    try:
        instance = PartitionInstance.from_data({**data, **fields})
    except InstanceError:
        return None
    return instance if len(slots_of(instance)) ** len(nodes) <= MOST_PARTITIONS else None


def drawn(seed: int, goal: str) -> PartitionInstance:
    """The first that is good."""
    draw = random.Random(seed)
    while True:
        instance = partition(draw, goal)
        if instance is not None:
            return instance


def best_of_all_partitions(instance: PartitionInstance) -> float | None:
    """Every node in every slot; None if nothing is feasible."""
    best = None
    for slots in product(slots_of(instance), repeat=len(instance.nodes)):
        devices, subgraphs = zip(*slots, strict=True)
        found = evaluate_partition(instance, Partition(instance=instance.name, devices=devices, subgraphs=subgraphs))
        if found.feasible and found.objective is not None and (best is None or found.objective < best):
            best = float(found.objective)
    return best


def proven(instance: Instance) -> float | None:
    """The optimum by the default method, with a bound for all answers; None if it is proven that there is none."""
    result = method(default_method(instance), instance.family).solve(instance, LIMITS)
    assert result.status in (Status.OPTIMAL, Status.INFEASIBLE)
    assert result.scope is None
    if result.status is Status.INFEASIBLE:
        return None
    assert result.objective == pytest.approx(result.bound, rel=EXACT, abs=1e-9)
    return result.objective


def agrees(instance: Instance, best: Callable[[], float | None]) -> None:
    found, tried = proven(instance), best()
    assert found == (None if tried is None else pytest.approx(tried, rel=EXACT, abs=1e-9))


@for_each("seed", seeds(3, 200))
def test_partitions_for_throughput(seed: int) -> None:
    instance = drawn(seed, "throughput")
    agrees(instance, lambda: best_of_all_partitions(instance))


@for_each("seed", seeds(2, 200))
def test_partitions_for_latency(seed: int) -> None:
    instance = drawn(1000 + seed, "latency")
    agrees(instance, lambda: best_of_all_partitions(instance))


# 50 is one of which the bound by prices is within 1e-4, and not the optimum.
@for_each("seed", some(range(200), {1, 50}))
def test_plans(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Up to four groups on three machines with up to three devices; of the largest, the proof only.

    The enumeration's simulator and its list of deployments are compared with the statement elsewhere.
    """
    anneal_little(monkeypatch)
    instance = random_plan(
        np.random.default_rng(seed),
        groups=2 + seed % 3,
        device_groups=1 + seed // 3 % 3,
        most_devices=3,
        communication=(0.3, 1.0, 3.0)[seed // 9 % 3],
        memory=(0.6, 1.5, 4.0)[seed // 27 % 3],
    )
    if Choices(instance, every=True).log_plans > np.log(MOST_PLANS):
        proven(instance)
        return
    agrees(instance, lambda: BruteForce().solve(instance, Limits()).objective)
