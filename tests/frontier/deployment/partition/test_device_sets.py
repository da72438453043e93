"""Branch and price over the sets that devices may have, and its proofs: against all partitions and all sets."""

import random
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from partition_cases import optimum, several
from volume import slow

from ddlopt.certificates.deployment.partition.device_sets.cases import ONE, Case, device_sets, figures_of
from ddlopt.certificates.deployment.partition.device_sets.certificate import SetsCertificate, has_set_below
from ddlopt.frontier.deployment.partition.device_sets.method import DeviceSets
from ddlopt.frontier.deployment.partition.device_sets.pricing import Pricing
from ddlopt.frontier.deployment.partition.device_sets.relaxation import Relaxation, load_of
from ddlopt.frontier.deployment.partition.prove import leaf_of, prove
from ddlopt.instances.generators.deployment import generate
from ddlopt.models.deployment.partition.contraction import contracted
from ddlopt.models.deployment.partition.evaluate import evaluate_partition
from ddlopt.models.deployment.partition.instance import Partition, PartitionInstance
from ddlopt.models.errors import RefutedError
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.deployment.partition.exact import limited_max_load
from ddlopt.solvers.heuristic import Clock

KINDS: tuple[dict[str, Any], ...] = (
    {},
    {"processors": 0},
    {"accelerators": 0},
    {"processors": 0, "memory_bytes": 4},
    {"accelerators": 3},
    {"processors": 2},
)


def never() -> bool:
    return False


def in_case(case: Case, instance: PartitionInstance, devices: tuple[int, ...]) -> bool:
    """Whether a partition by blocks is one of the case."""
    together = all(devices[block] == devices[first] for block, first in enumerate(case.group))
    apart = all(devices[one] != devices[other] for one, other in case.apart)
    processors = {block for block, device in enumerate(devices) if device >= instance.accelerators}
    return together and apart and case.on_processor <= processors and not case.on_accelerator & processors


def best_of(case: Case, instance: PartitionInstance) -> float:
    """The least largest load in a case; infinite if it has no partition."""
    blocks, best = contracted(instance), np.inf
    for devices in product(range(instance.devices), repeat=blocks.count):
        if in_case(case, instance, devices):
            answer = Partition(instance=instance.name, devices=blocks.devices_of_nodes(devices))
            found = evaluate_partition(instance, answer)
            if found.feasible and found.objective is not None:
                best = min(best, float(found.objective))
    return best


def divided(case: Case, draw: random.Random) -> tuple[list[Any], list[Case]] | None:
    """A pair or a kind that is not decided, and its parts; None if all are."""
    count = len(case.group)
    nodes: list[list[Any]] = [["pair", a, b] for a in range(count) for b in range(a)]
    nodes += [["kind", a] for a in range(count)]
    for node in draw.sample(nodes, len(nodes)):
        try:
            return node, case.parts(node)
        except RefutedError:
            continue
    return None


@pytest.mark.parametrize("fields", KINDS, ids=str)
@pytest.mark.parametrize("count", [4, slow(20)])
def test_it_finds_and_proves_the_best_of_all_partitions(fields: dict[str, Any], count: int) -> None:
    proven = infeasible = 0
    for instance in several(count, 1000, **fields):
        best = optimum(instance)
        result = DeviceSets().solve(instance, Limits(gap=1e-6))
        if best is None:
            assert result.status is Status.INFEASIBLE
            infeasible += 1
            continue
        assert result.status is Status.OPTIMAL
        assert result.objective == pytest.approx(best, rel=2e-6)
        assert result.bound is not None
        assert result.bound <= best * (1 + 1e-9)
        value = Fraction(best)
        if value:
            certificate = prove(instance, result.solution, value * (1 - Fraction(1, 10**5)), never)
            assert certificate is not None
            certificate.check(instance, never)
            assert prove(instance, result.solution, value * (1 + Fraction(1, 10**5)), never) is None
            for more in (Fraction(1, 10**5), Fraction(1, 10)):
                with pytest.raises(RefutedError):
                    SetsCertificate(
                        certificate.instance, certificate.instance_digest, value * (1 + more), certificate.nodes
                    ).check(instance, never)
            proven += 1
    assert proven
    assert infeasible or fields.get("memory_bytes") != 4


@pytest.mark.parametrize("count", [6, slow(40)])
def test_cases_are_closed_if_they_have_no_partition_below_the_limit(count: int) -> None:
    draw, closed, kept = random.Random(5), 0, 0
    for instance in [each for fields in KINDS for each in several(count, 3000, most=300, **fields)]:
        blocks = contracted(instance)
        if blocks.count < 2:
            continue
        case = Case(tuple(range(blocks.count)))
        for _ in range(3):
            more = divided(case, draw)
            case = draw.choice(more[1]) if more else case
        best = best_of(case, instance)
        limit = Fraction(draw.choice([0.5, 0.999, 1.001, 2.0]) * best if np.isfinite(best) and best else 3.0)
        figures = figures_of(instance, blocks.members, limit)
        relaxed = Relaxation(figures, case, [], None).solve(Clock(Limits(), None))
        assert relaxed is not None
        if relaxed.closed:
            assert best >= limit
            closed += 1
        else:
            kept += 1
    assert min(closed, kept) >= count


@pytest.mark.parametrize("count", [5, slow(20)])
def test_a_tree_proves_what_its_leaves_do(count: int) -> None:
    draw, proven = random.Random(7), 0
    for instance in several(count, 5000, accelerators=2, processors=1, memory_bytes=6):
        best, blocks = optimum(instance), contracted(instance)
        if not best or blocks.count < 3:
            continue
        claim = Fraction(best) * Fraction(999, 1000)
        figures = figures_of(instance, blocks.members, claim)
        waiting, nodes, leaves = [Case(tuple(range(blocks.count)))], [], 0
        while waiting:
            case = waiting.pop()
            more = divided(case, draw) if len(nodes) < 6 else None
            if more:
                nodes.append(more[0])
                waiting += more[1]
                continue
            relaxed = Relaxation(figures, case, [], None).solve(Clock(Limits(), None))
            assert relaxed is not None
            assert relaxed.closed
            nodes.append(leaf_of(case, relaxed, (2, 1)))
            leaves += 1
        SetsCertificate(instance.name, instance.digest, claim, nodes).check(instance, never)
        with pytest.raises(RefutedError, match="end before"):
            SetsCertificate(instance.name, instance.digest, claim, nodes[:-1]).check(instance, never)
        with pytest.raises(RefutedError, match="after the last"):
            SetsCertificate(instance.name, instance.digest, claim, [*nodes, nodes[-1]]).check(instance, never)
        proven += leaves > 1
    assert proven


def test_labels_know_the_best_of_all_sets() -> None:
    draw = random.Random(3)
    for instance in several(12, 2000, accelerators=2, processors=1):
        blocks = contracted(instance)
        figures = figures_of(instance, blocks.members, Fraction(draw.choice([3.0, 8.0, 20.0])))
        case = Case(tuple(range(blocks.count)))
        for _ in range(2):
            more = divided(case, draw)
            case = draw.choice(more[1]) if more else case
        groups = case.groups
        prices = [draw.randrange(-ONE, 3 * ONE) for _ in groups]
        for processors in (False, True):
            sets = device_sets(figures, case, processors)
            assert sets is not None
            banned = case.on_accelerator if processors else case.on_processor
            least = 0
            for chosen in product((False, True), repeat=len(groups)):
                own = [first for first, inside in zip(groups, chosen, strict=True) if inside]
                members = frozenset(block for block, first in enumerate(case.group) if first in own)
                load = load_of(figures, members, processors)
                if load > ONE or banned.intersection(own) or any({*pair} <= {*own} for pair in case.apart):
                    continue
                worth = sum(price for price, inside in zip(prices, chosen, strict=True) if inside)
                least = min(least, (0 if processors else load) - worth)
            multipliers = draw.randrange(3000), draw.randrange(3000)
            assert has_set_below(sets, prices, least + 1, multipliers, never)
            assert not has_set_below(sets, prices, least, multipliers, never)
            found = Pricing(sets).better(np.array(prices, float), 0.0, 1000)
            assert found.complete
            assert found.least == pytest.approx(least, rel=1e-9)


@pytest.mark.slow
def test_it_agrees_with_the_integer_program() -> None:
    instance = generate("layered", 2, nodes=24, accelerators=3, memory=1.15)
    assert isinstance(instance, PartitionInstance)
    result = DeviceSets().solve(instance, Limits(gap=1e-6))
    model = limited_max_load().solve(instance, Limits(gap=1e-6, time_s=60), start=result.solution)
    assert result.objective is not None
    assert model.objective == pytest.approx(result.objective, rel=2e-6)
    assert model.bound is not None
    assert result.bound is not None
    assert model.bound <= result.objective * (1 + 1e-9)
    assert result.bound <= result.objective


def test_what_it_does_not_cover() -> None:
    for fields in ({"contiguous": True}, {"separate_passes": True, "training": True}, {"goal": "latency"}):
        assert DeviceSets().refuses(generate("layered", 1, nodes=8, **fields)) is not None
