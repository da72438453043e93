"""Plans, patterns, rows and figures of proofs by prices: small cases by hand, and against all plans there are."""

import itertools
import json
import math
import random
from fractions import Fraction

import numpy as np
import pytest
from refusals import one_line
from scheduling_brute_force import random_instance

from ddlopt import load
from ddlopt.certificates.scheduling import PriceCertificate
from ddlopt.certificates.scheduling.certificate import offer
from ddlopt.certificates.scheduling.deadlines import in_time
from ddlopt.certificates.scheduling.kept import KeptOffers, kept_beaten
from ddlopt.certificates.scheduling.patterns import dearest
from ddlopt.certificates.scheduling.plans import Offers, beaten
from ddlopt.certificates.scheduling.relaxed import PARTS, Cluster, offered, worths
from ddlopt.certificates.scheduling.ring_rows import ring_rows
from ddlopt.models.errors import SolutionError
from ddlopt.models.scheduling import AllOrNothing
from ddlopt.models.scheduling.instance import SchedulingInstance

RACKS = load("scheduling/leaf-spine-j20-t10-s8")
"""Rings of workers that take one of a server's two places each."""


def linear(worth):
    return lambda parts: np.asarray(parts) * worth // PARTS


def test_plans_by_hand():
    """Two halves are worth 10 and cost 5; one is worth 5 and costs 2; a quarter is too dear to go on from."""
    half, quarter = PARTS // 2, PARTS // 4
    offers = Offers(np.array([half, quarter]), np.array([[2, 1], [3, 3], [9, 9]]), linear(10), ordered=True)
    assert beaten(offers, 3) == (True, 4)  # two ways to begin, and from a half two to go on
    assert beaten(offers, 4) == (True, 4)
    assert beaten(offers, 5) == (False, 1)
    apart = Offers(np.array([half]), np.array([[3], [9], [2]]), linear(10), ordered=False)
    assert beaten(apart, 4)[0]
    assert not beaten(apart, 5)[0]


def best_offers(offers):
    """Worth less cost over all choices of an offer or none in each slot."""
    ways = itertools.product(range(-1, len(offers.gains)), repeat=len(offers.costs))
    return max(
        int(offers.worth(min(PARTS, sum(int(offers.gains[o]) for o in way if o >= 0))))
        - sum(int(offers.costs[k, o]) for k, o in enumerate(way) if o >= 0)
        for way in ways
    )


def test_no_plan_is_missed_and_none_is_made_up():
    rng = random.Random(1)
    for number in range(60):
        ordered = number % 2 == 0
        gains = np.array([PARTS * rng.randrange(1, 9) // 8 for _ in range(rng.randrange(1, 3))])
        costs = [[rng.randrange(12) for _ in gains] for _ in range(rng.randrange(1, 5))]
        if ordered:
            costs = [sorted(column) for column in zip(*costs, strict=True)]
            costs = [list(row) for row in zip(*costs, strict=True)]
        offers = Offers(gains, np.array(costs), linear(rng.randrange(5, 30)), ordered)
        best = best_offers(offers)
        assert not beaten(offers, best)[0]
        assert best == 0 or beaten(offers, best - 1)[0]


def best_kept(offers):
    """The same of plans of runs, tried one slot after the other."""
    slots, whole, best = len(offers.costs), int(offers.worth(PARTS)), 0

    def go(slot, done, spent, width, length, before):
        nonlocal best
        if done >= PARTS:
            best = max(best, whole - spent)
            return
        free = width < 0 or length >= offers.least or slot == slots
        if free:
            best = max(best, int(offers.worth(done)) - spent)
        if slot == slots:
            return
        if width >= 0:
            go(
                slot + 1,
                done + int(offers.gains[width]),
                spent + int(offers.costs[slot, width]),
                width,
                length + 1,
                True,
            )
        if free:
            go(slot + 1, done, spent, -1, 0, before)
            for w in range(len(offers.gains)):
                first = offers.changed[w] if before else offers.gains[w]
                go(slot + 1, done + int(first), spent + int(offers.costs[slot, w]), w, 1, True)

    go(0, 0, 0, -1, 0, False)
    return best


def test_no_plan_of_runs_is_missed_and_none_is_made_up():
    rng = random.Random(2)
    for _ in range(120):
        gains = [PARTS * rng.randrange(1, 5) // 8 for _ in range(rng.randrange(1, 3))]
        changed = [gain * rng.randrange(5) // 4 for gain in gains]
        costs = [[rng.randrange(9) for _ in gains] for _ in range(rng.randrange(1, 6))]
        least, worth = rng.randrange(1, 4), rng.randrange(5, 40)
        offers = KeptOffers(np.array(gains), np.array(changed), np.array(costs), least, linear(worth))
        best = best_kept(offers)
        assert not kept_beaten(offers, best)[0]
        assert best == 0 or kept_beaten(offers, best - 1)[0]


@pytest.mark.parametrize(
    ("rooms", "width", "fits"),
    [((0, 2), 2, True), ((2, 0), 2, True), ((1, 1), 2, True), ((1, 0), 2, False), ((4, 2), 4, True), ((2, 4), 6, True)],
)
def test_patterns_put_workers_on_types_in_any_way(rooms, width, fits):
    assert dearest(rooms, [(0, [((0, 1), width)], [7])]) == (7 if fits else 0)


def racks(servers=None, links=None, duplex=True, rate=None, **changes):
    """The jobs of :data:`RACKS` on other servers."""
    data = RACKS.model_dump(mode="json") | changes
    if servers:
        data["jobs"] = [job | {"max_workers": min(sum(servers), job["max_workers"])} for job in data["jobs"]]
        data["servers"] = [{"count": 1, "capacity": {"gpu": places}} for places in servers]
        data["network"] = {"switches": 1, "links": links, "duplex": duplex}
    if rate:
        data["jobs"] = [job | {"timing": job["timing"] | {"bandwidth_bytes_per_s": rate}} for job in data["jobs"]]
    return SchedulingInstance.from_data(data)


@pytest.mark.parametrize("rate", [12.5e9, 0.5])
@pytest.mark.parametrize("wider", [None, "out", "in"])
def test_servers_of_different_sizes_that_a_ring_each_leaves(rate, wider):
    """Four places, one and one: up to three workers leave room for the ring of another job, six take all three."""
    out = [(server, 3, rate) for server in range(3)]
    one, other = (10, 1) if wider == "out" else (1, 10)
    apart = [*((u, v, one * each) for u, v, each in out), *((v, u, other * each) for u, v, each in out)]
    (row,) = ring_rows(racks([4, 1, 1], apart if wider else out, not wider, rate))
    assert row.capacity == 3
    assert row.units[0].tolist()[:7] == [0, 0, 0, 0, 1, 2, 3]


def test_workers_that_take_different_amounts_are_counted_in_them():
    jobs = [job.model_dump(mode="json") for job in RACKS.jobs]
    cluster = Cluster(racks(jobs=[jobs[0] | {"demand": {"gpu": 2.0}}, *jobs[1:]]))
    assert cluster.demand == [[2], *[[1]] * (len(jobs) - 1)]
    assert 16 <= cluster.capacity[0] < 16.001
    cluster = Cluster(RACKS)
    assert (cluster.demand[0], cluster.capacity) == ([1], [16])


def test_what_a_slot_does_is_rounded_up_by_a_part():
    cluster = Cluster(RACKS)
    for place, job in enumerate(RACKS.jobs):
        for _, width, gain, _ in offered(RACKS, cluster, place):
            done = Fraction(job.timing.minibatches_per_s(width, None, Fraction)) * Fraction(RACKS.slot_s)
            assert gain == PARTS or 0 <= gain - done * PARTS / Fraction(job.minibatches) < 1


def test_widths_that_do_no_more_than_smaller_ones_are_left_out():
    quick = racks(jobs=[job.model_dump(mode="json") | {"minibatches": 1e-3} for job in RACKS.jobs])
    for place, job in enumerate(quick.jobs):
        assert offered(quick, Cluster(quick), place) == [((0,), job.min_workers, PARTS, PARTS)]


def test_worths_are_rounded_up_by_what_libraries_may_be_off():
    job = RACKS.jobs[0].model_copy(update={"utility": AllOrNothing(value=1.0)})
    nothing, whole = worths(job, np.array([0, PARTS]), 2**45).tolist()
    assert nothing <= 1
    assert 2**45 * (1 + 1e-12) <= whole < 2**45 * (1 + 2e-12)


def test_below_a_ratio_of_nothing_a_job_has_one_slot():
    for place, job in enumerate(in_time(RACKS, Fraction(0)).jobs):
        assert job.deadline == min(RACKS.last_slot(place), job.arrival + 1)


@pytest.mark.parametrize("more", [{"uneven": True, "places": (2, 2)}, {"energy": True, "places": (2, 2)}])
def test_workers_on_types_are_where_they_cost_least(more):
    scale, met = 2**20, 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        instance = random_instance(rng, jobs=2, slots=3, types="mixed", **more)
        if not instance.accelerators.matter:
            continue
        cluster = Cluster(instance)
        prices = [rng.integers(1, scale // 8, len(cluster.capacity)).tolist() for _ in range(instance.slots)]
        for place, job in enumerate(instance.jobs):
            choice, demand = offer(instance, cluster, place, scale, prices), cluster.demand[place]
            options, rooms = offered(instance, cluster, place), cluster.rooms(place)
            most = int(choice.worth(np.array([PARTS]))[0]) + 1
            for k, slot in enumerate(range(job.arrival, instance.last_slot(place))):
                unit = [
                    min(most, math.floor(cost * scale + sum(
                        price * taken
                        for price, taken in zip(prices[slot][kind * len(demand) :], demand, strict=False)
                    )))
                    for kind, cost in enumerate(cluster.worker_cost)
                ]  # fmt: skip
                for o, (own, width, _, _) in enumerate(options):
                    ways = itertools.product(
                        *(range(rooms[kind] + 1 if kind in own else 1) for kind in range(len(rooms)))
                    )
                    least = min(
                        sum(n * each for n, each in zip(way, unit, strict=True)) for way in ways if sum(way) == width
                    )
                    assert choice.costs[k, o] == least
                    met += 1
    assert met > 10


def _names(instance, types):
    """Names of types, in the order of the servers."""
    names = list(dict.fromkeys(group.type for group in instance.servers))
    return [names[kind] for kind in types]


@pytest.mark.parametrize("more", [{"uneven": True, "places": (2, 2)}, {"energy": True, "places": (2, 2)}])
def test_types_have_their_demands_their_energy_and_their_gains(more):
    met = set()
    for seed in range(8):
        instance = random_instance(np.random.default_rng(seed), jobs=2, slots=3, types="mixed", **more)
        if not instance.accelerators.matter:
            continue
        cluster, resources = Cluster(instance), instance.resources
        taken = [[Fraction(job.demand.get(name, 0.0)) for name in resources] for job in instance.jobs]
        met.add(taken[0] == taken[1])
        assert cluster.demand == ([[1], [1]] if taken[0] == taken[1] else taken)
        for place, job in enumerate(instance.jobs):
            choice = offer(instance, cluster, place, 2**20, [[0] * len(cluster.capacity)] * instance.slots)
            options = offered(instance, cluster, place)
            for gain, (own, width, _, _) in zip(choice.gains.tolist(), options, strict=True):
                pace = min(Fraction(job.speeds.get(name, 1.0)) for name in _names(instance, own))
                rate = Fraction(job.timing.minibatches_per_s(width, None, Fraction)) * pace
                parts = rate * Fraction(instance.slot_s) * PARTS / Fraction(job.minibatches)
                assert gain == PARTS <= parts or 0 <= gain - parts < 1
    assert False in met if "uneven" in more else met == {True}


def test_the_thriftiest_server_of_a_type_counts():
    """Servers of 2 places: 30 W a worker, and 10 + 20 / 2; at 0.5 for a joule and slots of 2 s."""
    servers = [
        {"count": 1, "capacity": {"gpu": 2}, "type": "a", "idle_w": idle, "worker_w": worker}
        for idle, worker in ((0.0, 30.0), (20.0, 10.0))
    ]
    data = RACKS.model_dump(mode="json") | {
        "servers": servers, "network": None, "energy_price_per_j": 0.5, "slot_s": 2.0, "bandwidth": "reserved",
        "jobs": [
            job.model_dump(mode="json") | {"max_workers": 2, "min_workers": 1, "speeds": {"a": 1.0}}
            for job in RACKS.jobs[:2]
        ],
    }  # fmt: skip
    instance = SchedulingInstance.from_data(data)
    assert Cluster(instance).worker_cost == [Fraction(1, 2) * (10 + 10) * 2]


def test_no_charge_makes_all_of_a_job_worth_its_cost():
    """Beyond what all progress is worth it may be any number, but not less."""
    cluster, free = Cluster(RACKS), [[0]] * RACKS.slots
    widths = np.array([option.width for option in offered(RACKS, cluster, 0)])
    window = range(RACKS.jobs[0].arrival, RACKS.last_slot(0))
    choice = offer(RACKS, cluster, 0, 2**20, free, [[10**15] * len(widths) for _ in window])
    assert (choice.costs > int(choice.worth(np.array([PARTS]))[0])).all()
    charged = offer(RACKS, cluster, 0, 2**20, free, [[5] * len(widths) for _ in window])
    assert (charged.costs == 5).all()
    paid = offer(RACKS, cluster, 0, 2**20, [[7]] * RACKS.slots, [[0] * len(widths) for _ in window])
    assert (paid.costs == 7 * widths).all()


def test_a_scale_is_one_or_more():
    data = json.loads(PriceCertificate("x", "0" * 64, Fraction(1), 1, [[0]], [0]).text)
    assert PriceCertificate.from_data(data).scale == 1
    with one_line(SolutionError, "scale is a whole number of 1 to"):
        PriceCertificate.from_data(data | {"scale": 0})
