"""The optimum of tiny scheduling instances by trying everything, slot after slot, and random tiny instances.

It knows the problem statement only: progress, contention, energy, rings, changes and types are all
calculated here once more.
"""

import itertools
from collections import Counter
from functools import lru_cache
from math import ceil, fsum, inf
from typing import NamedTuple

import numpy as np
import pytest
from scipy.optimize import linprog

from ddlopt.models.scheduling import (
    AllOrNothing,
    Capped,
    Contention,
    Fair,
    Job,
    Logarithmic,
    LossCurve,
    Network,
    PolluxTiming,
    RingTiming,
    Run,
    Schedule,
    SchedulingInstance,
    ServerGroup,
    evaluate,
)


class Optimum(NamedTuple):
    objective: float
    schedule: Schedule


class Choice(NamedTuple):
    """Where a job's workers are in a slot, and the closed walk that its ring takes."""

    workers: tuple[tuple[int, int], ...]
    ring: tuple[int, ...] = ()

    @property
    def width(self):
        return sum(count for _, count in self.workers)


class Doing(NamedTuple):
    """A job so far: rate in each slot it ran (sorted), slot after which it was finished, and what it does if it stays.

    That is its one run, or where it was in the slot before if a change costs time; ``held`` are the slots that it has
    to stay there, where runs may not be short.
    """

    rates: tuple[float, ...] = ()
    end: int | None = None
    choice: Choice | None = None
    over: bool = False
    held: int = 0


def brute_force(instance):
    """The best objective and a schedule that has it; None where jobs must finish and cannot.

    Tried are all widths, placements and rings of all jobs in every slot. Only the past that can still matter is kept
    apart: how long each job ran at which rate. Finished jobs stop, which helps the others and saves energy. What a job
    may do in a slot and what becomes of it hangs on the job alone, so that it is found once for all states.
    """
    assert instance.bandwidth == "reserved"
    jobs = range(len(instance.jobs))
    layers = [{tuple(Doing() for _ in jobs): (0.0, None, None)}]
    known = {}
    for slot in range(instance.slots):
        there = tuple(_is_there(instance, job, slot) for job in jobs)
        if there not in known:
            known[there] = _actions(instance, slot)
        # What a job does is a number among all that it may do.
        options = [list(dict.fromkeys((action[job], rates[job]) for action, rates, _ in known[there])) for job in jobs]
        numbers = [{option: number for number, option in enumerate(own)} for own in options]
        actions = [
            ([numbers[job][action[job], rates[job]] for job in jobs], action, joules)
            for action, rates, joules in known[there]
        ]
        layer, following = {}, {}
        for state, (energy, _, _) in layers[-1].items():
            for job in jobs:
                if (job, state[job]) not in following:
                    following[job, state[job]] = [
                        _after(instance, job, slot, state[job], choice, rate)
                        if _may(instance, job, slot, state[job], choice)
                        else None
                        for choice, rate in options[job]
                    ]
            own = [following[job, state[job]] for job in jobs]
            for chosen, action, joules in actions:
                after = tuple([own[job][number] for job, number in enumerate(chosen)])
                if None not in after and energy + joules < layer.get(after, (inf,))[0]:
                    layer[after] = energy + joules, state, action
        layers.append(layer)
    sign = 1 if instance.sense == "maximize" else -1
    value, state = max(
        ((sign * _objective(instance, state, energy), state) for state, (energy, _, _) in layers[-1].items()),
        key=lambda pair: pair[0],
    )
    if value == -inf:
        return None
    actions = []
    for layer in reversed(layers[1:]):
        _, state, action = layer[state]
        actions.append(action)
    schedule = _schedule(instance, actions[::-1])
    evaluation = evaluate(instance, schedule)
    assert evaluation.violations == ()
    assert float(evaluation.objective) == pytest.approx(sign * value, rel=1e-7, abs=1e-9)
    return Optimum(sign * value, schedule)


def _actions(instance, slot):
    """(choice of every job, their rates, joules): all that fit; of equal rates the cheapest unless places stay."""
    capacity, demand = instance.capacity, instance.demand
    arcs = instance.network.arcs if instance.network else {}
    found, known = {}, {}

    def extend(chosen, used, loads):
        job = len(chosen)
        if job == len(instance.jobs):
            rates = job_rates(instance, chosen)
            joules = slot_energy_j(instance, chosen)
            key = tuple(chosen) if _places_matter(instance) else tuple(rates)
            if joules < found.get(key, (None, None, inf))[2]:
                found[key] = tuple(chosen), tuple(rates), joules
            return
        extend([*chosen, None], used, loads)
        if not _is_there(instance, job, slot):
            return
        if job not in known:
            known[job] = list(choices(instance, job))
        for choice, passes in known[job]:
            taken = used.copy()
            for server, count in choice.workers:
                taken[server] += count * demand[job]
            timing = instance.jobs[job].timing
            rate = timing.bandwidth_bytes_per_s if timing.kind == "ring" else 0.0
            carried = loads + Counter({arc: times * rate for arc, times in passes.items()})
            if (taken <= capacity * (1 + 1e-9)).all() and all(carried[a] <= arcs[a] * (1 + 1e-9) for a in carried):
                extend([*chosen, choice], taken, carried)

    extend([], np.zeros_like(capacity), Counter())
    return list(found.values())


def _is_there(instance, job, slot):
    return instance.jobs[job].arrival <= slot < instance.last_slot(job)


def _places_matter(instance):
    """Whether what comes next depends on who is where now."""
    return not instance.preemptive or any(job.change_s or job.least_run_slots > 1 for job in instance.jobs)


def choices(instance, job):
    """(choice, passes of its ring over arcs) for every width, placement and least ring of a job."""
    widths = instance.jobs[job].widths
    for counts in itertools.product(range(widths[-1] + 1), repeat=instance.server_count):
        if sum(counts) in widths:
            workers = tuple((server, count) for server, count in enumerate(counts) if count)
            if not suits(instance, job, workers):
                continue
            if instance.needs_rings and len(workers) > 1:
                for ring, passes in least_rings(instance.network, [server for server, _ in workers]):
                    yield Choice(workers, ring), passes
            else:
                yield Choice(workers), Counter()


def suits(instance, job, workers):
    """Whether a job may be on the types of these servers together."""
    speeds = instance.jobs[job].speeds
    types = {instance.accelerators.type_of(server) for server, _ in workers}
    return not speeds or (all(speeds[one] > 0 for one in types) and (instance.mixed_types or len(types) == 1))


def least_rings(network, servers):
    """(closed walk, passes over arcs) of those none of which passes over fewer arcs than another.

    Cut at the first visits to servers, a closed walk becomes paths between them, and these may as well be simple.
    """
    found = {}
    for order in itertools.permutations(servers[1:]):
        stops = (servers[0], *order, servers[0])
        for hops in itertools.product(*(list(_simple_paths(network, u, v)) for u, v in itertools.pairwise(stops))):
            walk = tuple(node for hop in hops for node in hop[:-1])
            passes = Counter(itertools.pairwise((*walk, walk[0])))
            found.setdefault(frozenset(passes.items()), (walk, passes))
    return [
        one for one in found.values() if not any(other is not one and other[1] <= one[1] for other in found.values())
    ]


def _simple_paths(network, u, v, before=()):
    if u == v:
        yield (*before, v)
    elif u not in before:
        for node in network.neighbours.get(u, ()):
            yield from _simple_paths(network, node, v, (*before, u))


def job_rates(instance, chosen):
    """Mini-batches that each job does in a slot in which jobs are placed as ``chosen`` says."""
    split = Counter(server for one in chosen if one and len(one.workers) > 1 for server, _ in one.workers)
    rates = []
    for job, choice in zip(instance.jobs, chosen, strict=True):
        if choice is None:
            rates.append(0.0)
            continue
        width, rules, bandwidth, extra = choice.width, instance.contention, None, 0.0
        if rules is not None:
            extra = rules.server_overhead_s * len(choice.workers)
            bandwidth = rules.within_server_bytes_per_s
            if len(choice.workers) > 1:
                k = max(1.0, rules.share * max(split[server] for server, _ in choice.workers))
                bandwidth = rules.between_servers_bytes_per_s / (k + rules.degradation * (k - 1))
        pace = min(job.speeds.get(instance.accelerators.type_of(server), 1.0) for server, _ in choice.workers)
        rates.append(pace * width * instance.slot_s / (iteration_s(job.timing, width, bandwidth) + extra))
    return rates


def iteration_s(timing, w, bandwidth=None):
    """Seconds of an iteration of w workers."""
    if timing.kind == "ring":
        b = timing.bandwidth_bytes_per_s if bandwidth is None else bandwidth
        compute = timing.forward_s_per_sample * timing.batch_samples + timing.backward_s + timing.overhead_s
        per_byte = 2 / b + (1 / timing.reduction_bytes_per_s if timing.reduction_bytes_per_s else 0.0)
        return compute + (w - 1) / w * timing.gradient_bytes * per_byte + 2 * (w - 1) * timing.latency_s
    gradient = timing.compute_s + timing.compute_s_per_sample * timing.batch_samples
    sync = timing.sync_s + timing.sync_s_per_worker * (w - 2) if w > 1 else 0.0
    return (gradient**timing.overlap + sync**timing.overlap) ** (1 / timing.overlap)


def slot_energy_j(instance, chosen):
    """Joules of one slot."""
    placed = [pair for choice in chosen if choice for pair in choice.workers]
    watts = sum(instance.idle_w[server] for server in {server for server, _ in placed})
    return float(watts + sum(instance.worker_w[server] * count for server, count in placed)) * instance.slot_s


def _may(instance, job, slot, doing, choice):
    if doing.held and slot < instance.last_slot(job):
        return choice is not None and choice.workers == doing.choice.workers
    if choice is None:
        return True
    if doing.end is not None:
        return False
    return instance.preemptive or (not doing.over and doing.choice in (None, choice))


def _after(instance, job, slot, doing, choice, rate):
    """A job after a slot."""
    if choice is None:
        return doing._replace(choice=None, over=True, held=0) if doing.choice else doing
    stays = doing.choice is not None and doing.choice.workers == choice.workers
    if doing.rates and not stays:
        rate *= 1 - instance.jobs[job].change_s / instance.slot_s
    rates = tuple(sorted((*doing.rates, rate)))
    if fsum(rates) >= instance.jobs[job].minibatches * (1 - 1e-9):
        # What is beyond the mini-batches wanted makes no difference.
        return Doing((min(fsum(rates), instance.jobs[job].minibatches),), slot + 1, None, True)
    held = max(0, doing.held - 1) if stays else instance.jobs[job].least_run_slots - 1
    return Doing(rates, None, choice if _places_matter(instance) else None, held=held)


def _objective(instance, state, energy):
    parts = [fsum(doing.rates) / job.minibatches for job, doing in zip(instance.jobs, state, strict=True)]
    if instance.objective == "utility":
        utility = sum(job.utility.of(part) for job, part in zip(instance.jobs, parts, strict=True))
        return utility - instance.energy_price_per_j * energy
    if instance.objective == "max_min":
        return min(parts)
    if any(doing.end is None for doing in state):
        return inf
    ends = [doing.end for doing in state]
    if instance.objective == "makespan":
        return max(ends) * instance.slot_s
    if instance.objective == "finish_time_fairness":
        return max(
            (end - job.arrival) * instance.slot_s / fair_time_s(instance, place)
            for place, (job, end) in enumerate(zip(instance.jobs, ends, strict=True))
        )
    pairs = zip(instance.jobs, ends, strict=True)
    return sum(job.utility.value * (end - job.arrival) for job, end in pairs) * instance.slot_s


@lru_cache
def fair_time_s(instance, place):
    """Seconds of a job that has the N-th part of all workers for itself, by a linear program over shares of time."""
    job = instance.jobs[place]
    if job.fair_s is not None:
        return job.fair_s
    ((name, each),) = job.demand.items()
    workers = sum(group.count * group.capacity[name] for group in instance.servers) / each / len(instance.jobs)
    widths = list(job.widths)
    rates = [w * instance.slot_s / iteration_s(job.timing, w) for w in widths]
    found = linprog([-rate for rate in rates], A_ub=[widths, [1.0] * len(widths)], b_ub=[workers, 1.0])
    return ceil(job.minibatches / -found.fun * (1 - 1e-8)) * instance.slot_s


def _schedule(instance, actions):
    """One run a slot, or one a job where that is asked for."""
    runs = []
    for job in range(len(instance.jobs)):
        held = [(slot, action[job]) for slot, action in enumerate(actions) if action[job]]
        if held and not instance.preemptive:
            runs.append(_run(job, held[0][0], len(held), held[0][1]))
        elif held:
            runs += [_run(job, slot, 1, choice) for slot, choice in held]
    return Schedule(instance=instance.name, instance_digest=instance.digest, runs=tuple(runs))


def _run(job, start, slots, choice):
    return Run(job=job, start=start, slots=slots, workers=choice.workers, ring=choice.ring)


UTILITIES = {
    "capped": lambda rng: Capped(value=_round(rng.uniform(0.5, 3))),
    "logarithmic": lambda rng: Logarithmic(value=_round(rng.uniform(0.5, 3)), curvature=_round(rng.uniform(1, 20))),
    "loss_curve": lambda rng: LossCurve(value=_round(rng.uniform(0.5, 3)), rate=_round(rng.uniform(1, 20))),
    "fair": lambda rng: Fair(alpha=float(rng.choice([0.0, 0.5, 1.0, 2.0])), epsilon=0.1),
    "all_or_nothing": lambda rng: AllOrNothing(value=_round(rng.uniform(0.5, 3))),
}
CONCAVE = ("capped", "logarithmic", "loss_curve", "fair")


def random_instance(
    rng,
    jobs=3,
    slots=3,
    places=(4,),
    objective="utility",
    utilities=CONCAVE,
    arrivals=True,
    deadlines=False,
    min_workers=False,
    latency=False,
    pollux=False,
    uneven=False,
    network=None,
    energy=False,
    contention=False,
    preemptive=True,
    change=False,
    types=None,
    least_runs=False,
):
    """A tiny random instance.

    ``places`` are the GPUs of each server; ``network`` is None, ``"star"``, ``"tree"`` (two switches) or ``"mesh"``
    (directed links between servers, not symmetric); with ``uneven`` workers take one or two GPUs; with ``energy`` it
    has a price and servers differ; with ``change`` most jobs lose a part of a slot when they change, or all of it; with
    ``least_runs`` most may not do so in every slot. Jobs that have to finish get few mini-batches, but some still
    cannot. ``types`` is ``"mixed"`` or ``"apart"``: servers are of two types in turn, most jobs have speeds, and some
    cannot run on one type.
    """
    slot_s = 10.0
    must = objective in ("makespan", "completion", "finish_time_fairness")
    made = []
    for number in range(jobs):
        per_worker = int(rng.integers(1, 3)) if uneven else 1
        most = int(rng.integers(1, min(4, sum(room // per_worker for room in places)) + 1))
        arrival = int(rng.integers(0, max(1, slots - 1))) if arrivals else 0
        ring = RingTiming(
            gradient_bytes=_round(rng.uniform(50, 200)) * 1e6,
            bandwidth_bytes_per_s=_round(rng.uniform(0.5, 2)) * 1e9,
            reduction_bytes_per_s=1e10 if rng.random() < 0.5 else None,
            forward_s_per_sample=0.002,
            batch_samples=32,
            backward_s=_round(rng.uniform(0.02, 0.2)),
            overhead_s=0.01,
            latency_s=_round(rng.uniform(0, 0.05)) if latency else 0.0,
        )
        timing = ring
        if pollux and rng.random() < 0.5:
            timing = PolluxTiming(compute_s=0.1, sync_s=0.05, sync_s_per_worker=0.02, overlap=1.5)
        span = int(rng.integers(1, slots - arrival + 1))
        one_slot = slot_s * most / iteration_s(timing, most)
        kind = str(rng.choice(list(utilities)))
        made.append(
            Job(
                name=f"job-{number}",
                arrival=arrival,
                deadline=arrival + span if deadlines and rng.random() < 0.5 else None,
                min_workers=int(rng.integers(1, most + 1)) if min_workers else 1,
                max_workers=most,
                timing=timing,
                minibatches=_round(one_slot * rng.uniform(0.3, 1.0 if must else 2.5) * (1.6 if change else 1)),
                demand={"gpu": float(per_worker)},
                utility=UTILITIES[kind](rng),
                change_s=float(rng.choice([0.0, 1.0, 4.0, 10.0])) if change else 0.0,
                least_run_slots=int(rng.integers(1, 4)) if least_runs else 1,
            )
        )
    servers = tuple(
        ServerGroup(
            capacity={"gpu": float(room)},
            idle_w=_round(rng.uniform(50, 200)) if energy else 0.0,
            worker_w=_round(rng.uniform(50, 300)) if energy else 0.0,
        )
        for room in places
    )
    if types:
        servers = tuple(one.model_copy(update={"type": "ab"[place % 2]}) for place, one in enumerate(servers))
        made = [_with_speeds(rng, one, places, types) for one in made]
    return SchedulingInstance(
        name=f"{objective}-{int(rng.integers(10**6))}",
        slots=slots,
        slot_s=slot_s,
        servers=servers,
        network=_network(rng, len(places), network) if network else None,
        contention=_contention(rng) if contention else None,
        jobs=tuple(made),
        objective=objective,
        energy_price_per_j=float(rng.choice([1e-5, 1e-4, 5e-4])) if energy and objective == "utility" else 0.0,
        preemptive=preemptive,
        mixed_types=types != "apart",
    )


def _with_speeds(rng, job, places, types):
    speeds = {"a": _round(rng.uniform(0.5, 2)), "b": _round(rng.choice([0.0, 0.3, 0.5, 1.0]))}
    if rng.random() < 0.3 or len(places) < 2:
        return job
    per_worker = job.demand["gpu"]
    rooms = [sum(room // per_worker for room in places[one::2]) for one in (0, 1)]
    room = int(sum(rooms) if types == "mixed" and speeds["b"] else max(rooms) if speeds["b"] else rooms[0])
    most = min(job.max_workers, max(1, room))
    return job.model_copy(update={"speeds": speeds, "max_workers": most, "min_workers": min(most, job.min_workers)})


def _network(rng, servers, shape):
    def rate():
        return _round(rng.uniform(0.8, 3)) * 1e9

    if shape == "star":
        return Network(switches=1, links=tuple((server, servers, rate()) for server in range(servers)))
    if shape == "tree":
        uplinks = tuple((server, servers + server % 2, rate()) for server in range(servers))
        return Network(switches=2, links=(*uplinks, (servers, servers + 1, rate())))
    around = [(server, (server + 1) % servers, rate()) for server in range(servers)] if servers > 1 else []
    others = [(u, v, rate()) for u, v in itertools.permutations(range(servers), 2) if rng.random() < 0.5]
    return Network(links=tuple(around + others), duplex=False)


def _contention(rng):
    return Contention(
        between_servers_bytes_per_s=_round(rng.uniform(0.5, 2)) * 1e9,
        within_server_bytes_per_s=5e9,
        degradation=_round(rng.uniform(0, 0.5)),
        share=float(rng.choice([0.3, 0.6, 1.0])),
        server_overhead_s=_round(rng.uniform(0, 0.02)),
    )


def _round(value):
    return float(np.format_float_positional(value, 4, fractional=False))
