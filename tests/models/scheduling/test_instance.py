"""Scheduling instances: what they say of themselves, the way through JSON, and a line for everything that is wrong."""

import copy
import json

import numpy as np
import pytest
from scheduling_brute_force import UTILITIES, random_instance
from volume import for_each

from ddlopt.models.errors import InstanceError
from ddlopt.models.scheduling import Network, Run, Schedule, SchedulingInstance
from ddlopt.models.scheduling.instance import most_workers

RING = {"kind": "ring", "gradient_bytes": 1e8, "bandwidth_bytes_per_s": 1e9, "forward_s_per_sample": 0.1}
POLLUX = {"kind": "pollux", "compute_s": 0.1}
GOOD = {
    "name": "small",
    "slots": 4,
    "slot_s": 60.0,
    "servers": [{"count": 2, "capacity": {"gpu": 4, "cpu": 16}}, {"capacity": {"gpu": 2}, "idle_w": 90}],
    "network": {"switches": 1, "links": [[0, 3, 1e9], [1, 3, 1e9], [2, 3, 2e9]]},
    "jobs": [
        {"name": "a", "max_workers": 10, "timing": RING, "minibatches": 1000},
        {"name": "b", "max_workers": 4, "timing": POLLUX, "minibatches": 10, "demand": {"gpu": 1, "cpu": 8}},
    ],
}


def with_changes(changes):
    """GOOD with values at paths such as ``jobs.0.name`` replaced; None removes."""
    data = copy.deepcopy(GOOD)
    for path, value in changes.items():
        *parents, last = [int(part) if part.isdigit() else part for part in path.split(".")]
        place = data
        for part in parents:
            place = place[part]
        if value is None:
            del place[last]
        else:
            place[last] = value
    return data


def test_what_an_instance_says_of_itself():
    instance = SchedulingInstance.from_data(GOOD)
    assert instance.server_count == 3
    assert instance.resources == ("cpu", "gpu")
    assert instance.capacity.tolist() == [[16, 4], [16, 4], [0, 2]]
    assert instance.demand.tolist() == [[0, 1], [8, 1]]
    assert instance.idle_w.tolist() == [0, 0, 90]
    assert instance.worker_w.tolist() == [0, 0, 0]
    assert instance.needs_rings
    assert instance.last_slot(0) == 4
    assert list(instance.jobs[1].widths) == [1, 2, 3, 4]
    assert instance.progress(0, 0) == 0
    assert instance.progress(0, 2) == 60 * 2 / (0.1 + 0.1)


@for_each(
    ("objective", "sense", "unit"),
    [
        ("utility", "maximize", ""),
        ("max_min", "maximize", ""),
        ("makespan", "minimize", "s"),
        ("completion", "minimize", "s"),
    ],
)
def test_sense_and_unit(objective, sense, unit):
    instance = SchedulingInstance.from_data({**GOOD, "objective": objective})
    assert (instance.sense, instance.objective_unit) == (sense, unit)


def test_workers_that_servers_hold():
    capacity = np.array([[16.0, 4.0], [16.0, 4.0], [0.0, 2.0]])
    assert most_workers(capacity, np.array([8.0, 1.0])).tolist() == [2, 2, 0]
    assert most_workers(capacity, np.array([0.0, 1.0])).tolist() == [4, 4, 2]
    assert most_workers(np.array([[0.3]]), np.array([0.1])).tolist() == [3]  # 0.3 / 0.1 is less than 3 in floats


def test_networks():
    star = Network(switches=1, links=((0, 2, 1.0), (1, 2, 3.0), (1, 2, 0.5)))
    assert star.arcs == {(0, 2): 1.0, (2, 0): 1.0, (1, 2): 3.5, (2, 1): 3.5}
    assert star.neighbours == {0: (2,), 1: (2,), 2: (0, 1)}
    assert star.is_tree(2)
    triangle = Network(links=((0, 1, 1.0), (1, 2, 1.0), (2, 0, 1.0)))
    assert not triangle.is_tree(3)
    one_way = Network(links=((0, 1, 1.0), (1, 2, 1.0), (2, 0, 1.0)), duplex=False)
    assert not one_way.is_tree(3)
    assert one_way.unreachable(3) == []
    assert Network(links=((0, 1, 1.0), (2, 0, 1.0)), duplex=False).unreachable(3) == [1, 2]
    assert Network(links=((0, 1, 1.0),)).unreachable(3) == [2]
    assert not Network(switches=1, links=((0, 1, 1.0),)).is_tree(2)  # a switch that hangs in the air
    assert not Network(links=((0, 1, 1.0), (1, 0, 1.0), (1, 2, 1.0)), duplex=False).is_tree(3)


@pytest.mark.parametrize(
    "shape",
    [
        {"utilities": tuple(UTILITIES), "energy": True, "deadlines": True, "min_workers": True, "places": (2, 2)},
        {"network": "mesh", "places": (2, 2), "pollux": True, "uneven": True},
        {"contention": True, "places": (2, 2), "objective": "makespan", "preemptive": False},
    ],
    ids=["utilities", "network", "contention"],
)
def test_round_trip_through_json(shape):
    rng = np.random.default_rng(0)
    for _ in range(5):
        instance = random_instance(rng, **shape)
        again = SchedulingInstance.from_json(instance.to_json())
        assert again == instance
        assert again.to_json() == instance.to_json()
        assert json.loads(instance.to_json())["family"] == "scheduling"


def test_without_a_cost_of_change_a_file_is_as_it_was():
    plain = SchedulingInstance.from_data(GOOD)
    told = SchedulingInstance.from_data(with_changes({"jobs.0.change_s": 0.0}))
    costly = SchedulingInstance.from_data(with_changes({"jobs.0.change_s": 60}))
    assert "change_s" not in plain.to_json()
    assert told.digest == plain.digest != costly.digest
    # As it was before there was such a cost.
    assert plain.digest == "9fe54e28f57a95c9daf6ed48a7671b50a6ca787a2e485eb730d76516c2d7c8a6"
    assert SchedulingInstance.from_json(costly.to_json()) == costly
    assert (plain.changes.cost_time, costly.changes.cost_time) == (False, True)
    assert not costly.model_copy(update={"preemptive": False}).changes.cost_time


TYPED = {
    "jobs.0.max_workers": 9,
    "servers.0.type": "v100",
    "servers.1.type": "k80",
    "jobs.0.speeds": {"v100": 1.0, "k80": 0.25},
}


def test_without_types_a_file_is_as_it_was():
    plain = SchedulingInstance.from_data(GOOD)
    told = with_changes({"servers.0.type": "", "jobs.0.speeds": {}}) | {"mixed_types": True}
    typed = SchedulingInstance.from_data(with_changes(TYPED))
    apart = SchedulingInstance.from_data(with_changes({**TYPED, "jobs.0.max_workers": 8}) | {"mixed_types": False})
    assert not {"type", "speeds", "mixed_types"} & set(plain.to_json().split('"'))
    assert SchedulingInstance.from_data(told).digest == plain.digest
    assert len({plain.digest, typed.digest, apart.digest}) == 3
    for one in (typed, apart):
        assert SchedulingInstance.from_json(one.to_json()) == one
    assert (plain.accelerators.matter, typed.accelerators.matter) == (False, True)
    assert [typed.accelerators.type_of(server) for server in range(3)] == ["v100", "v100", "k80"]
    assert typed.accelerators.speeds.tolist() == [[1, 0.25], [1, 1]]


def test_round_trip_of_a_schedule():
    runs = (
        Run(job=0, start=1, slots=2, workers=((0, 1), (2, 1)), ring=(0, 3, 2, 3), bandwidth_bytes_per_s=5e8),
        Run(job=1, start=0, slots=1, workers=((1, 2),)),
    )
    schedule = Schedule(instance="small", runs=runs)
    again = Schedule.from_json(schedule.to_json())
    assert again == schedule
    assert again.runs == runs
    assert (runs[0].width, runs[0].end) == (2, 3)


CONTENTION = {"between_servers_bytes_per_s": 1e9, "within_server_bytes_per_s": 1e9}
BAD = {
    "too-wide": (
        {"jobs.0.max_workers": 11},
        "jobs[0] 'a': max_workers is 11, but the cluster holds 10 of its workers; lower it or add servers",
    ),
    "too-wide-by-cpus": (
        {"jobs.1.max_workers": 5},
        "jobs[1] 'b': max_workers is 5, but the cluster holds 4 of its workers; lower it or add servers",
    ),
    "late": ({"jobs.1.arrival": 4}, "jobs[1] 'b': arrival is 4, but there are 4 slots (0..3)"),
    "deadline-before-arrival": (
        {"jobs.1.arrival": 2, "jobs.1.deadline": 2},
        "jobs[1] 'b': deadline is 2, but the arrival is 2 and there are 4 slots; use a deadline of 3..4",
    ),
    "deadline-after-the-end": (
        {"jobs.0.deadline": 5},
        "jobs[0] 'a': deadline is 5, but the arrival is 0 and there are 4 slots; use a deadline of 1..4",
    ),
    "widths": ({"jobs.0.min_workers": 11}, "jobs[0] 'a': min_workers is 11, more than max_workers 10"),
    "no-demand": (
        {"jobs.0.demand": {"gpu": 0}},
        "jobs[0] 'a': demand is empty; a worker needs something, such as {'gpu': 1}",
    ),
    "negative-demand": (
        {"jobs.0.demand": {"gpu": -1}},
        "jobs[0] 'a': demand['gpu'] is -1.0; it must be finite and >= 0",
    ),
    "unknown-resource": (
        {"jobs.0.demand": {"tpu": 1}},
        "jobs[0] 'a': demand names 'tpu', but the servers have cpu, gpu",
    ),
    "no-capacity": ({"servers.1.capacity": {}}, "servers[1].capacity is empty; give amounts such as {'gpu': 8}"),
    "negative-capacity": (
        {"servers.0.capacity.gpu": -4},
        "servers[0].capacity['gpu'] is -4.0; it must be finite and >= 0",
    ),
    "link-to-nowhere": (
        {"network.links.2": [2, 4, 1e9]},
        "network.links[2] ends at node 4, but there are 3 servers and 1 switches (0..3)",
    ),
    "link-to-itself": ({"network.links.2": [3, 3, 1e9]}, "network.links[2] leads from node 3 to itself; remove it"),
    "no-bandwidth": ({"network.links.0": [0, 3, 0.0]}, "network.links[0] has bandwidth 0.0; it must be finite and > 0"),
    "server-apart": (
        {"network.links": [[0, 3, 1e9], [1, 3, 1e9]]},
        "network does not connect server 2 with server 0 in both directions (1 such servers); add links",
    ),
    "one-way": (
        {"network.duplex": False},
        "network does not connect server 1 with server 0 in both directions (2 such servers); add links",
    ),
    "network-and-contention": (
        {"contention": CONTENTION, "jobs.1.timing": RING},
        "there are both a network and contention; give the one that limits bandwidth",
    ),
    "contention-needs-rings": (
        {"network": None, "contention": CONTENTION},
        "jobs[1] 'b': timing is 'pollux', but contention needs 'ring' timing",
    ),
    "shared-needs-rings": (
        {"bandwidth": "shared"},
        "jobs[1] 'b': timing is 'pollux', but shared bandwidth needs 'ring' timing",
    ),
    "shared-needs-a-network": (
        {"bandwidth": "shared", "network": None, "jobs.1.timing": RING},
        "bandwidth is 'shared', but there is no network to share; give one",
    ),
    "energy-price": (
        {"energy_price_per_j": 1e-6, "objective": "makespan"},
        "energy_price_per_j counts in objective 'utility' only, but objective is 'makespan'",
    ),
    "no-time": (
        {"jobs.0.timing.forward_s_per_sample": 0},
        "jobs[0].timing.ring: an iteration of one worker takes no time; give forward_s_per_sample or backward_s",
    ),
    "no-time-pollux": (
        {"jobs.1.timing.compute_s": 0},
        "jobs[1].timing.pollux: an iteration of one worker takes no time; give compute_s or compute_s_per_sample",
    ),
    "negative-time": ({"jobs.0.timing.backward_s": -1}, "jobs[0].timing.ring.backward_s", "greater than or equal to 0"),
    "unknown-timing": ({"jobs.0.timing.kind": "tree"}, "jobs[0].timing", "'ring', 'pollux'"),
    "unknown-utility": ({"jobs.0.utility": {"kind": "sigmoid"}}, "jobs[0].utility", "sigmoid", "'capped'"),
    "worthless": ({"jobs.0.utility": {"kind": "capped", "value": 0}}, "jobs[0].utility.capped.value", "greater than 0"),
    "no-minibatches": ({"jobs.0.minibatches": 0}, "jobs[0].minibatches", "greater than 0", "got 0"),
    "negative-arrival": ({"jobs.0.arrival": -1}, "jobs[0].arrival", "greater than or equal to 0", "got -1"),
    "no-jobs": ({"jobs": []}, "jobs", "at least 1 item"),
    "no-servers": ({"servers": []}, "servers", "at least 1 item"),
    "no-slots": ({"slots": 0}, "slots", "greater than or equal to 1", "got 0"),
    "no-width": ({"jobs.0.max_workers": None}, "jobs[0].max_workers", "is missing"),
    "misspelt": ({"jobs.0.min_worker": 2}, "jobs[0].min_worker", "there is no such field"),
    "unknown-objective": ({"objective": "utilty"}, "objective", "'utility', 'max_min'", "utilty"),
    "infinite": ({"slot_s": float("inf")}, "slot_s", "finite"),
    "type-without-a-speed": (
        {**TYPED, "jobs.0.speeds": {"v100": 1.0}},
        "jobs[0] 'a': speeds has no type 'k80', but servers have it; add it, 0 if it cannot run there",
    ),
    "speed-of-no-type": (
        {**TYPED, "servers.1.type": "v100"},
        "jobs[0] 'a'",
        "speeds names type 'k80', but the servers have v100",
    ),
    "negative-speed": ({**TYPED, "jobs.0.speeds": {"v100": 1.0, "k80": -1}}, "jobs[0] 'a'", "speeds['k80'] is -1.0"),
    "no-speed": ({**TYPED, "jobs.0.speeds": {"v100": 0, "k80": 0}}, "jobs[0] 'a'", "speeds are all 0"),
    "too-wide-for-the-type": (
        {**TYPED, "jobs.0.speeds": {"v100": 1, "k80": 0}},
        "jobs[0] 'a'",
        "max_workers is 9, but the cluster holds 8",
    ),
    "too-wide-for-one-type": (
        {**TYPED, "mixed_types": False},
        "jobs[0] 'a'",
        "max_workers is 9, but the cluster holds 8",
    ),
    "speeds-and-shares": ({**TYPED, "bandwidth": "shared"}, "jobs[0] 'a'", "speeds and shared bandwidth"),
    "change-of-nan": ({"jobs.1.change_s": float("nan")}, "jobs[1].change_s", "finite"),
    "negative-change": ({"jobs.1.change_s": -1}, "jobs[1].change_s", "greater than or equal to 0", "got -1"),
    "long-change": (
        {"jobs.1.change_s": 90},
        "jobs[1] 'b': change_s is 90, longer than a slot of 60 s; lower it, or use longer slots",
    ),
}


@for_each("case", BAD)
def test_bad_data_gets_one_line(case):
    changes, *said = BAD[case]
    with pytest.raises(InstanceError) as caught:
        SchedulingInstance.from_data(with_changes(changes))
    line = str(caught.value)
    assert "\n" not in line
    assert line.startswith("scheduling instance 'small': ")
    if len(said) == 1:
        assert line == f"scheduling instance 'small': {said[0]}"
    for part in said:
        assert part in line
