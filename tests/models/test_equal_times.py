"""Times that are the same but for rounding: where an order hangs on them, or a whole slot, or where it does not matter.

Deployment plans, whose simulation takes ends of tasks in order, have tests of their own (``test_ties``).
"""

from fractions import Fraction

import numpy as np
import pytest
from volume import for_each, seeds

from ddlopt.models.aggregation.slots.delivery import Delivery, wait_exact, wait_s
from ddlopt.models.catalogue import family
from ddlopt.models.compression import CompressionInstance, CompressionPlan, ForwardInstance, ForwardPlan
from ddlopt.models.compression.timeline.instance import Gradient, Option, Stage
from ddlopt.models.deployment import Partition, PartitionInstance
from ddlopt.models.gossip.period.stragglers import Stragglers, slowest, slowest_exact
from ddlopt.models.scheduling import AllOrNothing, Job, RingTiming, Run, Schedule, SchedulingInstance, ServerGroup
from ddlopt.models.scheduling.evaluate import Piece, _outcome

SECONDS = (0.0, 0.1, 0.1, 0.2, 0.3, 1 / 3, 2 / 3, 0.5, 1.0)
"""Sums of them are often the same, and are not as floats add them up."""


def agree(instance, solution):
    """Floats find what fractions do, up to rounding."""
    evaluate = family(instance.family).evaluate
    found, exact = evaluate(instance, solution), evaluate(instance, solution, exact=True)
    assert found.objective == pytest.approx(float(exact.objective), rel=1e-12, abs=1e-12)
    assert {each.kind for each in found.violations} == {each.kind for each in exact.violations}
    assert found.details.keys() == exact.details.keys()
    for name, value in found.details.items():
        assert float(value) == pytest.approx(float(exact.details[name]), rel=1e-12, abs=1e-12), name


def timeline(rng, lanes=(), fusion=True):
    def seconds():
        return float(rng.choice(SECONDS))

    def option(label):
        if not lanes:
            return Option(
                label=label, compressor=label, encode_s=seconds(), launch_s=seconds(), wire_s=seconds(), error=0.1
            )
        passed = [Stage(lane=lane, launch_s=seconds(), busy_s=seconds()) for lane in lanes if rng.random() < 0.7]
        return Option(label=label, compressor=label, encode_s=seconds(), wire_s=0.0, stages=tuple(passed), error=0.1)

    ready = np.cumsum([seconds() for _ in range(6)]).tolist()
    return CompressionInstance(
        name="tied",
        gradients=tuple(Gradient(name=str(i), shape=(4,), ready_s=at, menu=i % 2) for i, at in enumerate(ready)),
        menus=tuple((option("none"), option("top_k")) for _ in range(2)),
        lanes=lanes,
        fusion=fusion,
    )


@for_each("seed", seeds(20, 300))
def test_lanes_and_wires_have_an_order_of_their_own(seed):
    rng = np.random.default_rng(seed)
    for lanes in ((), ("gpu", "wire")):
        instance = timeline(rng, lanes)
        same = int(rng.integers(2))
        plan = CompressionPlan(instance="tied", choices=(same,) * 6, buckets=((1,) * 6, (2, 1, 3), (6,))[seed % 3])
        agree(instance, plan)


@for_each("seed", seeds(20, 300))
def test_a_forward_pass_waits_for_the_later_of_two(seed):
    rng = np.random.default_rng(seed)
    forward = tuple(float(x) for x in rng.choice(SECONDS, size=6))
    instance = ForwardInstance(name="tied", timeline=timeline(rng, fusion=False), forward_s=forward, parts=(1, 3))
    parts = tuple(int(x) for x in rng.choice([1, 3], size=6))
    order = rng.permutation(np.repeat(np.arange(6), parts)).tolist()
    choices = tuple(int(x) for x in rng.integers(2, size=6))
    agree(instance, ForwardPlan(instance="tied", choices=choices, parts=parts, order=order))


@for_each("seed", seeds(20, 300))
def test_sets_of_nodes_start_when_the_last_that_they_need_is_there(seed):
    rng = np.random.default_rng(seed)
    nodes = [
        {
            "name": str(node),
            "accelerator_s": float(rng.choice(SECONDS)),
            "processor_s": float(rng.choice(SECONDS)),
            "transfer_s": float(rng.choice(SECONDS)),
            "memory_bytes": 1.0,
        }
        for node in range(7)
    ]
    edges = [(a, b) for b in range(7) for a in range(b) if rng.random() < 0.4]
    data = {"name": "tied", "nodes": nodes, "edges": edges, "accelerators": 2, "processors": 1, "memory_bytes": 100.0}
    instance = PartitionInstance.from_data({"family": "deployment", "problem": "partition", "goal": "latency",
                                            "subgraphs": 3} | data)  # fmt: skip
    # Sets in the order of the graph never wait for each other.
    devices = rng.integers(3, size=7)
    numbers = [0 if device == 2 else node // 3 for node, device in enumerate(devices)]
    solution = Partition(instance="tied", devices=devices.tolist(), subgraphs=numbers)
    if family("deployment").evaluate(instance, solution).objective is not None:
        agree(instance, solution)


@for_each("seed", seeds(10, 300))
def test_slots_of_a_job_are_counted_alike(seed):
    """What a job wants is often a whole number of slots' work: of thirds, of tenths."""
    rng = np.random.default_rng(seed)
    for _ in range(200):
        rates = [float(rng.choice(SECONDS[1:])) * float(rng.choice([1, 2, 3])) for _ in range(rng.integers(1, 4))]
        starts = np.cumsum(rng.integers(1, 40, size=len(rates))).tolist()
        slots = [int(rng.integers(1, 1 + after - at)) for at, after in zip(starts, [*starts[1:], 1000], strict=True)]
        pieces = [Piece(*each) for each in zip(starts, slots, rates, strict=True)]
        # Done within the last piece, at the end of a slot.
        last = int(rng.integers(1, slots[-1] + 1))
        wanted = float(sum(piece.slots * Fraction(piece.minibatches_per_slot) for piece in pieces[:-1])
                       + last * Fraction(rates[-1]))  # fmt: skip
        found = _outcome(wanted, pieces)
        exact = _outcome(
            Fraction(wanted),
            [piece._replace(minibatches_per_slot=Fraction(piece.minibatches_per_slot)) for piece in pieces],
        )
        assert found.end == exact.end == starts[-1] + last


@for_each("seed", seeds(10, 100))
def test_jobs_finish_in_the_same_slots(seed):
    rng = np.random.default_rng(seed)
    jobs, runs, at = [], [], 0
    for place in range(4):
        step_s, slots, width = float(rng.choice([0.1, 0.3, 0.7, 3.0, 1 / 3])), int(rng.integers(1, 30)), 1 + place % 2
        # A slot does width / step_s mini-batches, rounded.
        timing = RingTiming(gradient_bytes=0.0, bandwidth_bytes_per_s=1.0, forward_s_per_sample=step_s)
        wanted = float(slots * Fraction(width / step_s))
        jobs.append(Job(name=str(place), minibatches=wanted, max_workers=width, demand={"gpu": 1.0}, timing=timing,
                        utility=AllOrNothing()))  # fmt: skip
        runs.append(Run(job=place, start=at, slots=slots + 2, workers=((0, width),)))
        at += slots + 2
    servers = (ServerGroup(count=1, capacity={"gpu": 2.0}),)
    for objective in ("utility", "max_min", "makespan", "completion", "finish_time_fairness"):
        instance = SchedulingInstance(
            name="tied", servers=servers, jobs=tuple(jobs), slots=at, slot_s=1.0, objective=objective
        )
        schedule = Schedule(instance="tied", runs=tuple(runs))
        agree(instance, schedule)
        assert family("scheduling").evaluate(instance, schedule).details["finished_jobs"] == len(jobs)


@for_each("seed", seeds(20, 300))
def test_expected_waits_do_not_hang_on_an_order(seed):
    """Values that are the same have an interval of no length between them."""
    rng = np.random.default_rng(seed)
    delays = tuple(float(x) for x in rng.choice([0.1, 0.2, 0.3, 1 / 3, 0.6, 2 / 3, 0.9], size=3))
    delivery = Delivery(workers=(3,), delays_s=delays, chances=(0.25, 0.25, 0.25), loss=0.125,
                        timeout_s=float(rng.choice([0.1, 0.3, 1 / 3])))  # fmt: skip
    assert wait_s(delivery, 3) == pytest.approx(float(wait_exact(delivery, 3, up=True)), rel=1e-12)
    stragglers = Stragglers(factors=tuple(float(x) for x in rng.choice([0.1, 0.2, 0.3, 0.6], size=3)), chance=0.25,
                            slowdown=float(rng.choice([2.0, 3.0])))  # fmt: skip
    assert slowest(stragglers, 6) == pytest.approx(float(slowest_exact(stragglers, 6, up=True)), rel=1e-12)
