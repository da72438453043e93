"""Writes proofs for throughput where a device has any set of blocks: the cases of branch and price."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from ddlopt.certificates.deployment.partition.device_sets.cases import ONE, Case
from ddlopt.certificates.deployment.partition.device_sets.certificate import MULTIPLIER_ONE, SetsCertificate
from ddlopt.frontier.deployment.partition.device_sets.method import DeviceSets
from ddlopt.frontier.deployment.partition.device_sets.relaxation import Relaxed
from ddlopt.frontier.deployment.partition.device_sets.tree import Node, Tree
from ddlopt.models.deployment.partition.instance import Partition, PartitionInstance
from ddlopt.models.errors import NotApplicableError, SolverError
from ddlopt.solvers.heuristic import Asked

_SPARE = 0.4
"""Part of what a leaf proves beyond the claim that each kind of device gives to the values of its sets."""


def prove(
    instance: PartitionInstance, solution: Partition, target: Fraction, expired: Callable[[], bool]
) -> SetsCertificate | None:
    """The certificate that proves ``target``; None where a partition is better, or there is none in the time."""
    if target <= 0 or DeviceSets().refuses(instance) is not None:
        return None
    nodes: list[list[Any]] = []
    devices = instance.accelerators, instance.processors

    def told(case: Case, how: Node | Relaxed) -> None:
        nodes.append(leaf_of(case, how, devices) if isinstance(how, Relaxed) else list(how))

    tree = Tree(instance, float(target), Asked(expired), told)
    tree.use(tree.blocks.devices_of_blocks(solution.devices))
    try:
        if tree.next() is not None or not tree.done:
            return None
    except (NotApplicableError, SolverError):
        return None
    return SetsCertificate(instance.name, instance.digest, target, nodes)


def leaf_of(case: Case, relaxed: Relaxed, devices: tuple[int, int]) -> list[Any]:
    """The node of a closed case, for numbers of accelerators and processors."""
    prices = np.bincount(case.group, relaxed.prices[:-2])[case.groups]
    spare = relaxed.bound - devices[0]
    least = [
        math.ceil((spare * _SPARE / count - value) * ONE) if count else 0
        for value, count in zip(relaxed.least, devices, strict=True)
    ]
    multipliers = [[round(each * MULTIPLIER_ONE) for each in pair] for pair in relaxed.multipliers]
    return ["leaf", [round(price * ONE) for price in prices.tolist()], *least, *multipliers]
