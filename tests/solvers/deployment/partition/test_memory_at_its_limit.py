"""Memory that partitions use up to the last digit: what the check lets pass all methods and proofs know of."""

from typing import Any

import pytest

from ddlopt.analysis.certify import certified
from ddlopt.certificates.own import exact_bound_of
from ddlopt.models.deployment.partition.evaluate import evaluate_partition
from ddlopt.models.deployment.partition.instance import PartitionInstance
from ddlopt.solvers.catalogue import entries
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.deployment.partition.dynamic_program import IdealProgram

SIDES = [{"contiguous": True}, {}, {"goal": "latency"}]


def pair(sizes: tuple[float, ...], memory_bytes: float, **fields: Any) -> PartitionInstance:
    """Nodes of a second in a row; together they send nothing, and apart that takes five seconds."""
    nodes = [
        {"name": f"n{place}", "accelerator_s": 1, "transfer_s": 5, "memory_bytes": size}
        for place, size in enumerate(sizes)
    ]
    data = {"name": "pair", "nodes": nodes, "edges": [(0, 1)], "accelerators": 2, "memory_bytes": memory_bytes}
    return PartitionInstance.from_data(data | fields)


@pytest.mark.parametrize("fields", SIDES, ids=str)
def test_all_methods_put_decimals_together_that_fit(fields: dict[str, Any]) -> None:
    """As the fractions that they are, and added up in floating point, 0.1 and 0.2 are more than 0.3."""
    instance = pair((0.1, 0.2), 0.3, **fields)
    for entry in entries("deployment"):
        method = entry.make("highs")
        if method.refuses(instance) is not None:
            continue
        found = method.solve(instance, Limits(gap=0.0))
        assert found.objective == pytest.approx(6.0 if entry.name == "graph-cut" else 2.0, rel=1e-6), entry.name
        assert found.bound is None or found.bound <= 2.0 * (1 + 1e-9), entry.name
        assert evaluate_partition(instance, found.solution, exact=True).feasible


@pytest.mark.parametrize("fields", SIDES, ids=str)
def test_proofs_know_of_decimals_that_fit(fields: dict[str, Any]) -> None:
    instance = pair((0.1, 0.2), 0.3, **fields)
    assert certified(instance, None, None, Limits(), 0, None).proven.bound == pytest.approx(2.0, rel=1e-3)
    if fields.get("contiguous"):
        bound = exact_bound_of("deployment/partition")
        assert bound is not None
        assert bound(instance) == 2


def test_the_bound_of_the_dynamic_program_holds_for_what_the_check_may_let_pass() -> None:
    """Half as much again as the check lets pass: no answer has it, and no bound may count on that."""
    instance = pair((1.0, 2.0), 3.0 / (1 + 1.5e-9), contiguous=True)
    found = IdealProgram().solve(instance, Limits())
    assert (found.objective, found.bound) == (6.0, 2.0)
    assert found.status is Status.FEASIBLE
    alone = pair((1.0, 2.0), 3.0 / (1 + 1.5e-9), contiguous=True, accelerators=1)
    assert IdealProgram().solve(alone, Limits()).status is Status.NO_SOLUTION
