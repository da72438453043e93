"""Packing of widths on servers and links."""

import numpy as np
import pytest
from scheduling_brute_force import random_instance
from volume import for_each, slow

from ddlopt.models.scheduling import Contention, Job, Network, RingTiming, SchedulingInstance, ServerGroup, evaluate
from ddlopt.models.scheduling.pool import schedule_of_places
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.heuristic import Clock
from ddlopt.solvers.scheduling.online.engine import simulate
from ddlopt.solvers.scheduling.slot.packing import Packer, Place

TIMING = RingTiming(gradient_bytes=1e8, bandwidth_bytes_per_s=2.0, forward_s_per_sample=1.0)


def instance(gpus, widths, slots=4, **more):
    servers = tuple(ServerGroup(capacity={"gpu": float(count)}) for count in gpus)
    jobs = tuple(
        Job(name=f"j{k}", max_workers=width, timing=TIMING, minibatches=100.0) for k, width in enumerate(widths)
    )
    return SchedulingInstance(name="few", slots=slots, slot_s=1.0, servers=servers, jobs=jobs, **more)


def star(*bandwidths):
    hub = len(bandwidths)
    return Network(switches=1, links=tuple((server, hub, rate) for server, rate in enumerate(bandwidths)))


class Random:
    """Random widths of jobs in random order, more than fit where the packer may make them smaller."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def choose(self, state):
        jobs = self.rng.permutation(state.active).tolist()
        wanted = self.rng.integers(state.rates.narrowest[jobs], state.rates.widest[jobs] + 1)
        if state.pool.exact:
            return state.admit(jobs, wanted)
        return {job: int(width) for job, width in zip(jobs, wanted, strict=True) if self.rng.integers(3)}


@for_each(
    "kind",
    [
        {"places": (2, 2), "network": "star"},
        {"places": (2, 1, 1, 2), "network": "tree"},
        {"places": (2, 1, 2), "network": "mesh"},
        {"places": (3, 2), "uneven": True},
        {"places": (2, 2, 1), "contention": True},
        {"places": (2, 2), "energy": True},
    ],
)
@for_each("preemptive", [True, False])
@pytest.mark.parametrize("draws", [20, slow(40)])
def test_what_is_packed_stands_the_check(kind, preemptive, draws):
    rng = np.random.default_rng(3)
    split = 0
    for seed in range(draws):
        drawn = random_instance(rng, jobs=4, slots=5, deadlines=True, min_workers=True, preemptive=preemptive, **kind)
        outcome = simulate(drawn, Random(seed), Clock(Limits(), None), "random")
        found = evaluate(drawn, outcome.schedule)
        assert not found.violations
        parts = np.minimum(1, outcome.done / [job.minibatches for job in drawn.jobs])
        utility = sum(job.utility.of(part) for job, part in zip(drawn.jobs, parts.tolist(), strict=True))
        assert float(found.details["utility"]) == pytest.approx(utility, rel=1e-9)
        split += sum(len(run.workers) > 1 for run in outcome.schedule.runs)
    assert split > 5


def test_a_job_goes_to_the_server_that_it_fills_best_or_to_the_fewest():
    packer = Packer(instance((8, 4, 3, 2), (3, 9, 2, 12), contention=quiet()))
    assert packer.find(0, 3) == Place(((2, 3),))
    assert packer.find(1, 9) == Place(((0, 8), (3, 1)))
    assert packer.find(3, 12) == Place(((0, 8), (1, 4)))
    packer.put(0, Place(((2, 3),)))
    assert packer.find(2, 2) == Place(((3, 2),))
    assert packer.find(3, 15) is None


def quiet():
    return Contention(between_servers_bytes_per_s=1.0, within_server_bytes_per_s=1.0)


def test_places_stay_while_widths_do():
    packer = Packer(instance((4, 4), (4, 2, 3), contention=quiet()))
    first = packer.place({1: 2, 2: 3})
    assert first == {1: Place(((0, 2),)), 2: Place(((1, 3),))}
    second = packer.place({0: 3, 2: 3})
    assert second == {0: Place(((0, 3),)), 2: first[2]}
    third = packer.place({0: 3, 1: 2, 2: 3})
    assert third == {0: second[0], 1: Place(((0, 1), (1, 1))), 2: first[2]}


def test_widths_shrink_to_what_fits_in_the_order_given():
    few = instance((2, 2), (4, 4, 4), contention=quiet())
    assert {job: place.width for job, place in Packer(few).place({2: 3, 0: 4}).items()} == {2: 3, 0: 1}
    assert {job: place.width for job, place in Packer(few).place({0: 4, 2: 3}).items()} == {0: 4}


def test_split_jobs_avoid_servers_with_split_jobs():
    packer = Packer(instance((3, 3, 2, 2), (4, 4), contention=quiet()))
    packer.put(0, Place(((0, 1), (1, 1))))
    assert packer.find(1, 4) == Place(((2, 2), (3, 2)))


def test_links_limit_who_is_split():
    few = instance((2, 2, 2), (4, 4, 2), network=star(2.0, 3.0, 3.9))
    packer = Packer(few)
    places = packer.place({0: 4, 1: 4})
    # One ring takes 2 bytes/s each way; what is left of every link is less.
    assert {job: place.width for job, place in places.items()} == {0: 4, 1: 2}
    assert len(places[1].workers) == 1
    assert sorted(packer.residual.values()) == pytest.approx(sorted([0, 0, 1, 1, 3.9, 3.9]))
    workers = {job: place.workers for job, place in places.items()}
    rings = {job: place.ring for job, place in places.items()}
    assert not evaluate(few, schedule_of_places(few, [workers], [rings])).violations
    packer.place({1: 2})
    assert packer.residual == few.network.arcs
    assert packer.fits(0, places[0])
    assert packer.find(0, 4).ring


def test_where_the_emptiest_servers_lack_bandwidth_nearer_ones_are_tried():
    # Racks {0, 1} and {2, 3}; the links between the racks are too thin for any ring.
    links = ((0, 4, 9.0), (1, 4, 9.0), (2, 5, 9.0), (3, 5, 9.0), (4, 6, 1.0), (5, 6, 1.0))
    few = instance((3, 2, 3, 2), (5,), network=Network(switches=3, links=links))
    place = Packer(few).find(0, 5)
    assert place.workers in (((0, 3), (1, 2)), ((2, 3), (3, 2)))
    assert Packer(few).find(0, 6) is None


def test_energy_counts_workers_and_servers_that_wake():
    frugal = ServerGroup(capacity={"gpu": 4.0}, idle_w=10, worker_w=1)
    hungry = ServerGroup(capacity={"gpu": 4.0}, idle_w=20, worker_w=2)
    few = instance((4, 4), (4, 4)).model_copy(update={"servers": (frugal, hungry), "energy_price_per_j": 1.0})
    packer = Packer(few)
    assert packer.energy_w(Place(((0, 2), (1, 1)))) == 34.0
    packer.put(0, Place(((1, 1),)))
    assert packer.energy_w(Place(((0, 2), (1, 1)))) == 14.0
    assert packer.find(1, 2) == Place(((1, 2),))


def test_a_ring_takes_bandwidth_each_time_that_it_passes():
    few = instance((2, 2, 2), (3,), network=star(9.0, 9.0, 9.0))
    packer = Packer(few)
    place = Place(((0, 1), (1, 1), (2, 1)), (0, 3, 1, 3, 0, 3, 2, 3))
    packer.put(0, place)
    assert packer.residual[0, 3] == packer.residual[3, 0] == 5.0
    assert packer.residual[1, 3] == packer.residual[3, 2] == 7.0
    assert packer.remove(0) == place
    assert packer.residual == few.network.arcs
