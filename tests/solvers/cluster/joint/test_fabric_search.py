"""Jobs in a fabric: bounds against brute force over orders, widths, places and speeds, and every method's answers."""

import itertools
import random
from collections import Counter
from fractions import Fraction

import pytest
from volume import for_each, seeds, slow

import ddlopt
from ddlopt.models.cluster import JointInstance, JointPlan, evaluate
from ddlopt.models.cluster.joint.bounds import joint_bound
from ddlopt.solvers.cluster.jobs.relaxation import relaxed
from ddlopt.solvers.cluster.joint.fabric_search import FabricSearch, uplinks
from ddlopt.solvers.cluster.joint.plans import Plans
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.heuristic import Clock

OBJECTIVES = ("makespan", "weighted_completion", "weighted_tardiness")
SPEEDS = (Fraction(1), Fraction(3, 2), Fraction(2), Fraction(4))
"""By which jobs are slowed down by brute force."""


def drawn(seed, jobs=3, racks=3, hosts=2, blocks=False):
    """A few jobs whose steps are told, on racks with little uplink; now and then in two blocks."""
    draw = random.Random(seed)
    groups = [{"name": f"b{k}", "uplink_bytes_per_s": draw.choice((1.0, 2.0))} for k in range(2 * blocks)]
    for k in range(racks):
        groups.append({"name": f"r{k}", "hosts": hosts, "uplink_bytes_per_s": draw.choice((1.0, 2.0, 3.0))})
        groups[-1] |= {"inside": k % 2} if blocks else {}
    servers = racks * hosts
    choices = [
        {
            "servers": width,
            "step_s": draw.choice((2.0, 3.0, 4.0)) / width,
            "crossing_bytes": draw.choice((0.0, 1.0, 2.0)),
        }
        for width in sorted(draw.sample(range(1, servers), 2))
    ]
    told = [
        {
            "name": f"j{k}",
            "workload": 0,
            "iterations": draw.randint(1, 4),
            "arrival_s": draw.choice((0.0, 1.5)),
            "weight": draw.randint(1, 3),
            "deadline_s": 3.0,
        }
        for k in range(jobs)
    ]
    data = {"name": "drawn", "servers": servers, "workloads": [{"name": "told", "choices": choices}], "jobs": told}
    return JointInstance.from_data(data | {"objective": OBJECTIVES[seed % 3], "fabric": {"groups": groups}})


def ways(instance, width):
    """All ways to have so many hosts."""
    groups = instance.fabric.groups
    racks = [place for place, group in enumerate(groups) if group.hosts]
    for counts in itertools.product(*(range(groups[rack].hosts + 1) for rack in racks)):
        if sum(counts) == width:
            yield tuple((rack, count) for rack, count in zip(racks, counts, strict=True) if count)


def crossed(instance, places):
    """The groups that hold some of the workers and not all: who leaves them takes their uplinks."""
    found = Counter()
    for rack, count in places:
        group = rack
        while group is not None:
            found[group] += count
            group = instance.fabric.groups[group].inside
    width = sum(count for _, count in places)
    return tuple(group for group, count in found.items() if count < width)


def fits(room, uplink, busy, start, end, places, over, rate):
    for moment in {start, *(each[0] for each in busy if start < each[0] < end)}:
        hosts, rates = Counter(dict(places)), Counter(dict.fromkeys(over, rate))
        for begins, ends, own, uses, speed in busy:
            if begins <= moment < ends:
                for rack, count in own:
                    hosts[rack] += count
                for group in uses:
                    rates[group] += speed
        if any(count > room[rack] for rack, count in hosts.items()):
            return False
        if any(used > uplink[group] for group, used in rates.items()):
            return False
    return True


def brute_force(instance):
    """The best of all lists, widths and places, each job at one of some speeds and as early as all is free."""
    best = None
    room = [group.hosts for group in instance.fabric.groups]
    uplink = [Fraction(group.uplink_bytes_per_s) for group in instance.fabric.groups]
    options = [
        (step, places, crossed(instance, places), Fraction(choice.crossing_bytes) / step)
        for choice in instance.workloads[0].choices
        for places in ways(instance, choice.servers)
        for speed in (SPEEDS if choice.crossing_bytes else SPEEDS[:1])
        for step in [Fraction(choice.step_s) * speed]
    ]
    told = instance.at(lambda *_: None)

    def go_on(busy, ends):
        nonlocal best
        value = told.cost([ends.get(place, Fraction(0)) for place in range(len(instance.jobs))])
        if best is not None and value >= best:
            return
        if len(ends) == len(instance.jobs):
            best = value
            return
        for place, job in enumerate(instance.jobs):
            if place in ends:
                continue
            arrival = Fraction(job.arrival_s)
            starts = sorted({arrival, *(each[1] for each in busy if each[1] > arrival)})
            for step, places, over, rate in options:
                length = Fraction(job.iterations) * step
                for start in starts:
                    if fits(room, uplink, busy, start, start + length, places, over, rate):
                        go_on([*busy, (start, start + length, places, over, rate)], ends | {place: start + length})
                        break

    go_on([], {})
    return best


def bounds(instance):
    plans = Plans(instance, Clock(Limits(), None), 1e-6)
    found = [relaxed(plans.low(), end, others=uplinks(instance)).value for end in (1.0, 8.0, 30.0)]
    return [*found, joint_bound(instance)]


@pytest.mark.parametrize("seed", seeds(3, 60))
def test_bounds_and_methods_beside_brute_force(seed):
    instance = drawn(seed, jobs=2 if seed % 2 else 3, racks=2 if seed % 4 else 3, blocks=seed % 3 == 2)
    best = brute_force(instance)
    if best is None:  # some speed that is not among these would do
        return
    for found in bounds(instance):
        assert found <= float(best) * (1 + 1e-9)
    result = ddlopt.solve(instance, "refinement", time_limit=2)
    assert result.checked
    assert result.bound <= float(best) * (1 + 1e-9)
    assert ddlopt.check(instance, result.solution, exact=True).feasible
    # A list places greedily, so it may miss the optimum; a speed in between may be better than brute force.
    assert result.objective <= float(best) * 1.5 + 1e-6


@for_each("method", ["refinement", "apart", "apart:widths=search,order=search", "rolling"])
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_every_method_keeps_to_the_fabric(method, objective):
    instance = drawn(3, jobs=8, racks=4, hosts=3, blocks=True).changed(objective=objective)
    result = ddlopt.solve(instance, method, time_limit=2)
    assert result.checked
    found = evaluate(instance, result.solution, exact=True)
    assert found.feasible
    assert float(found.objective) >= joint_bound(instance) * (1 - 1e-9)


def shared(uplink, hosts=2, sent=2.0, jobs=2):
    """Two jobs on three servers each, in racks of two: both cross."""
    groups = [{"name": str(k), "hosts": hosts, "uplink_bytes_per_s": uplink} for k in range(3)]
    told = [{"name": str(k), "workload": 0, "iterations": 10} for k in range(jobs)]
    choices = [{"servers": 3, "step_s": 1.0, "crossing_bytes": sent}]
    data = {"name": "two", "servers": 3 * hosts, "workloads": [{"name": "w", "choices": choices}], "jobs": told}
    return JointInstance.from_data(data | {"fabric": {"groups": groups}})


@for_each(("uplink", "value"), [(8.0, 10), (4.0, 10), (2.0, 20), (1.0, 40)])
def test_jobs_wait_or_are_slowed_down_for_an_uplink(uplink, value):
    """Each is in two racks, so one is shared, whose uplink has room for both at once, for one, or for half a one."""
    result = ddlopt.solve(shared(uplink), "refinement", time_limit=1)
    assert result.objective == pytest.approx(value, rel=1e-6)
    assert result.checked
    # Four crossings of 20 bytes over three uplinks, or one job alone.
    assert result.bound >= max(10, 20 / uplink, 80 / 3 / uplink) * (1 - 1e-9)
    assert ddlopt.solve(shared(uplink).changed(fabric=None), "refinement", time_limit=1).objective == pytest.approx(10)


@pytest.mark.parametrize("objective", ["makespan", *map(slow, ["weighted_completion", "weighted_tardiness"])])
def test_seconds_of_a_calendar_take_as_long(objective):
    """Beside 10^9 s the lengths of jobs are rounded, and no rate was enough.

    Uplinks of 1/3 byte/s: whoever takes one whole is slowed down by what is kept of it for rounding.
    """
    now, later = (shared(1 / 3, jobs=3).model_dump(mode="json") | {"objective": objective} for _ in range(2))
    for place, (early, late) in enumerate(zip(now["jobs"], later["jobs"], strict=True)):
        early |= {"arrival_s": 0.1 * place, "deadline_s": 50.0 + place}
        late |= {"arrival_s": 1.75e9 + early["arrival_s"], "deadline_s": 1.75e9 + early["deadline_s"]}
    found = [ddlopt.solve(JointInstance.from_data(data), "apart", time_limit=1) for data in (now, later)]
    before = {"makespan": 1.75e9, "weighted_completion": 3 * 1.75e9, "weighted_tardiness": 0}[objective]
    assert found[1].objective - before == pytest.approx(found[0].objective, rel=1e-4)


def test_uplinks_bound_sums_as_well():
    instance = shared(1.0, jobs=4).changed(objective="weighted_completion")
    plans = Plans(instance, Clock(Limits(), None), 1e-6)
    without, within = (relaxed(plans.low(), 60.0, others=others).value for others in ((), uplinks(instance)))
    assert within > without * 1.1
    assert within <= ddlopt.solve(instance, "refinement", time_limit=1).objective


def test_wider_is_kept_where_it_sends_less():
    """The narrow width takes no longer, but sends more: without the wide one rows of uplinks would be no bound."""
    instance = shared(1.0)
    narrow, wide = {"servers": 3, "step_s": 1.0, "crossing_bytes": 9.0}, {"servers": 4, "step_s": 1.0}
    instance = instance.changed(workloads=[{"name": "w", "choices": [narrow, wide]}])
    plans = Plans(instance, Clock(Limits(), None), 1e-6)
    low = plans.low()
    equal = low.changed(jobs=[job.model_dump() | {"step_s": [None, None, 1.0, 1.0]} for job in low.jobs])
    best = JointPlan.from_data(
        {
            "instance": "two",
            "runs": [{"start": str(10 * k), "servers": 4, "places": [(0, 2), (1, 2)]} for k in range(2)],
            "plans": [{"workload": 0, "servers": 4, "step_s": 1.0}],
        }
    )
    value = evaluate(instance, best, exact=True).objective
    assert value == 20
    assert relaxed(equal, 20.0, others=uplinks(instance)).value <= value


def test_the_exact_list_is_the_kernel_s():
    instance = drawn(5, jobs=10, racks=4, hosts=3)
    plans = Plans(instance, Clock(Limits(), None), 1e-6)
    search = FabricSearch(plans.high(), instance, 0)
    search.run(1)
    steps = {choice.servers: choice.step_s for choice in instance.workloads[0].choices}
    runs = search.runs()
    ends = [Fraction(run.start) + Fraction(job.iterations) * Fraction(run.step_s)
            for job, run in zip(instance.jobs, runs, strict=True)]  # fmt: skip
    assert float(plans.high().cost(ends)) == pytest.approx(search.value, rel=1e-6)
    assert all(run.step_s >= steps[run.servers] for run in runs)


def test_the_program_of_private_links_refuses_a_fabric():
    with pytest.raises(ddlopt.DdloptError, match="its jobs share a fabric, and this program has links of their own"):
        ddlopt.solve(shared(1.0), "plans-and-flows", time_limit=1)
