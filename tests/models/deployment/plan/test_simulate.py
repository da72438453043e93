import itertools

import numpy as np
import pytest
from deployment_plans import random_deployment, random_instance
from deployment_reference import Slow
from volume import for_each, seeds

from ddlopt.models.deployment import Deployment, DeploymentInstance, GroupPlan
from ddlopt.models.deployment.plan.shares import UNITS, borders, parts, time_at
from ddlopt.models.deployment.plan.simulator.simulate import simulate
from ddlopt.models.deployment.plan.simulator.tasks import Resource


def instance(operators, tensors=(), device_groups=(("a", 2), ("b", 1)), **more):
    """Operators (group, time, gradient, resident) on devices of which b is half as fast; 1 byte/s, 2 within a group."""
    return DeploymentInstance.from_data(
        {
            "name": "by hand",
            "operators": [
                {
                    "name": f"op{place}",
                    "group": group,
                    "times_s": {"a": [time], "b": [2 * time]},
                    "gradient_bytes": gradient,
                    "resident_bytes": resident,
                }
                for place, (group, time, gradient, resident) in enumerate(operators)
            ],
            "tensors": [
                {"producer": producer, "consumers": list(consumers), "size_bytes": size}
                for producer, consumers, size in tensors
            ],
            "device_groups": [
                {"type": kind, "count": count, "memory_bytes": 1000, "bandwidth_bytes_per_s": 2}
                for kind, count in device_groups
            ],
            "bandwidth_bytes_per_s": [[1] * len(device_groups)] * len(device_groups),
            "all_reduce": {"s_per_byte": [1, 0], "fixed_s": [0, 3], "at_bytes_per_s": 2},
            **more,
        }
    )


def deployment(*plans, duplicated=()):
    made = []
    for plan in plans:
        groups, mode, *rest = plan
        made.append(GroupPlan(device_groups=groups, mode=mode, **(rest[0] if rest else {})))
    return Deployment(instance="by hand", groups=made, duplicated=duplicated)


def spans(timeline, kind):
    return [(task.start, task.finish) for task in timeline.tasks if task.kind == kind]


@for_each("seed", seeds(4, 40))
def test_a_second_simulator_agrees_exactly(seed):
    rng = np.random.default_rng(seed)
    case = random_instance(
        rng,
        operators=int(rng.integers(3, 10)),
        groups=int(rng.integers(1, 4)),
        device_groups=int(rng.integers(1, 4)),
        whole_numbers=bool(seed % 2),
    )
    for _ in range(3):
        plan = random_deployment(rng, case)
        fast, slow = simulate(case, plan, exact=True), Slow(case, plan)
        assert fast.time_s == slow.time
        assert list(fast.peak_bytes) == slow.peaks
        both = sorted((slow.starts[node], slow.ends[node]) for node in slow.ends)
        assert sorted((task.start, task.finish) for task in fast.tasks) == both
        assert simulate(case, plan).time_s == pytest.approx(float(slow.time), rel=1e-9)


def test_even_parts_and_parts_by_speed():
    case = instance([(0, 6, 0, 0)])
    assert simulate(case, deployment(((0, 1), "all_reduce"))).time_s == pytest.approx(4)  # 12 / 3 on b
    assert simulate(case, deployment(((0, 1), "all_reduce", {"split": "speed"}))).time_s == pytest.approx(2.4)
    assert [replica.units / UNITS for replica in parts(case, (0, 1), "speed")] == pytest.approx([0.4, 0.4, 0.2])


def test_an_all_reduce_after_the_last_replica():
    case = instance([(0, 6, 10, 0)])
    within = simulate(case, deployment(((0,), "all_reduce")))
    assert within.time_s == 3 + 10  # the line 1 s/byte at 2 bytes/s
    across = simulate(case, deployment(((0, 1), "all_reduce")))
    assert across.time_s == 4 + 20  # half the bandwidth
    small = simulate(instance([(0, 6, 1, 0)]), deployment(((0,), "all_reduce")))
    assert small.time_s == 3 + 3  # the other line
    alone = simulate(case, deployment(((1,), "all_reduce")))
    assert (alone.time_s, len(alone.tasks)) == (12, 1)


def test_collectives_are_done_one_at_a_time():
    case = instance([(0, 6, 10, 0), (1, 6, 10, 0)], device_groups=(("a", 2), ("a", 2)))
    timeline = simulate(case, deployment(((0,), "all_reduce"), ((1,), "all_reduce")))
    assert spans(timeline, "collective") == [(3, 13), (13, 23)]
    assert timeline.busy_s[Resource("collective")] == 20


def test_a_server_adds_up_and_sends_back():
    case = instance([(0, 6, 10, 0)], latency_s=0.5)
    timeline = simulate(case, deployment(((0,), "parameter_server")))
    assert spans(timeline, "transfer") == [(3, 8.5), (8.5, 14)]
    assert (timeline.tasks[-1].source, timeline.tasks[-1].target) == (0, 1)  # operator 0 is served by replica 0
    assert timeline.peak_bytes == (20, 10, 0)
    three = simulate(case, deployment(((0, 1), "parameter_server")))
    assert three.time_s == 4 + 2 * 10.5  # b is behind the link of 1 byte/s


def test_what_is_lacking_is_sent_and_links_between_groups_are_shared():
    case = instance([(0, 6, 0, 0), (1, 6, 0, 0)], [(0, [1], 8)])
    timeline = simulate(case, deployment(((0,), "all_reduce"), ((1,), "all_reduce")))
    assert spans(timeline, "transfer") == [(3, 7), (7, 11)]  # two halves over one link
    assert timeline.time_s == 11 + 12
    assert timeline.busy_s[Resource("group link", 0, 1)] == 8
    gathered = simulate(case, deployment(((0,), "all_reduce"), ((0,), "model_parallel", {"devices": (1,)})))
    assert spans(gathered, "transfer") == [(3, 5)]  # the other half, within the group
    assert gathered.time_s == 5 + 6


def test_tensors_without_bytes_order_all_the_same():
    case = instance([(0, 6, 0, 0), (1, 6, 0, 0)], [(0, [1], 0)], latency_s=1)
    timeline = simulate(case, deployment(((0,), "all_reduce"), ((1,), "all_reduce")))
    assert (timeline.time_s, spans(timeline, "transfer")) == (15, [])


def test_consumers_on_one_device_share_a_transfer():
    case = instance([(0, 6, 0, 0), (1, 6, 0, 0), (1, 1, 0, 0)], [(0, [1, 2], 8)])
    timeline = simulate(case, deployment(((0,), "all_reduce"), ((1,), "all_reduce")))
    assert len(spans(timeline, "transfer")) == 2
    # Outputs go when they have been sent, what was received when both have read it.
    assert timeline.peak_bytes == (4, 4, 8)


def test_duplicated_operators_need_everything_and_no_reduction():
    case = instance([(0, 6, 0, 0), (0, 6, 10, 0)], [(0, [1], 8)])
    timeline = simulate(case, deployment(((0,), "all_reduce"), duplicated=(1,)))
    assert spans(timeline, "transfer") == [(3, 5), (3, 5)]  # both halves, each to the other
    assert spans(timeline, "collective") == []
    assert timeline.time_s == 5 + 6


def test_of_several_that_have_everything_the_nearest_sends():
    operators = [(0, 6, 0, 0), (1, 6, 0, 0)]
    case = instance(operators, [(0, [1], 8)], device_groups=(("b", 1), ("a", 2), ("a", 1)))
    everywhere = ((0, 1), "all_reduce")
    for at, source in (((1,), 1), ((2,), 2)):
        timeline = simulate(case, deployment(everywhere, ((1,), "model_parallel", {"devices": at}), duplicated=(0,)))
        assert spans(timeline, "transfer") == []
        assert next(task for task in timeline.tasks if task.operator == 1).source == source
    far = simulate(case, deployment(everywhere, ((2,), "all_reduce"), duplicated=(0,)))
    assert [(task.source, task.target) for task in far.tasks if task.kind == "transfer"] == [(0, 3)]


def test_memory_of_what_is_kept_made_received_and_reduced():
    case = instance([(0, 6, 10, 100), (1, 6, 0, 50)], [(0, [1], 8)])
    timeline = simulate(case, deployment(((0,), "all_reduce"), ((1,), "all_reduce")))
    # On a: the weights, half the output and the gradient; on b: the weights, then both halves.
    assert timeline.peak_bytes == (114, 114, 58)


def test_times_lie_on_lines_between_shares():
    shares, times = (1.0, 0.5, 0.25), (10.0, 6.0, 5.0)
    assert time_at(shares, times, UNITS) == 10
    assert time_at(shares, times, UNITS * 3 // 4) == 8
    assert time_at(shares, times, UNITS // 4) == 5
    assert time_at(shares, times, UNITS // 8) == 4.5
    assert time_at(shares, (10.0, 6.0, 1.0), UNITS // 8) == 0  # the last line would be below
    assert time_at((1.0,), (10.0,), UNITS // 8) == 1.25


def test_borders_of_even_splits_are_exact():
    for count in (*range(1, 25), 32, 40, 48, 64):
        cuts = borders([1] * count)
        assert {later - before for before, later in itertools.pairwise(cuts)} == {UNITS // count}


def test_no_part_is_empty():
    case = instance([(0, 6, 0, 0)])
    times = {"a": [1.0], "b": [1e12]}
    slow = DeploymentInstance.from_data(
        case.model_dump() | {"operators": [{"name": "op", "group": 0, "times_s": times}]}
    )
    assert {replica.units for replica in parts(slow, (0, 1), "speed")} == {UNITS // 3}
