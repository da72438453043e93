"""The independent check of a schedule against a slow second implementation, and against brute force."""

from collections import Counter
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from scheduling_brute_force import Choice, brute_force, job_rates, least_rings, random_instance, slot_energy_j
from volume import for_each, slow

from ddlopt.models.scheduling import Run, Schedule, evaluate

SHAPES = {
    "plain": {},
    "two-servers": {"places": (3, 2), "energy": True, "uneven": True},
    "pollux": {"pollux": True, "latency": True, "deadlines": True, "min_workers": True},
    "star": {"places": (2, 2), "network": "star"},
    "tree": {"places": (2, 1, 2), "network": "tree"},
    "mesh": {"places": (2, 2, 1), "network": "mesh"},
    "contention": {"places": (2, 2), "contention": True},
    "makespan": {"objective": "makespan", "places": (4, 4)},
    "completion": {"objective": "completion", "places": (4, 4), "contention": True},
    "max_min": {"objective": "max_min", "places": (4, 4)},
    "one-piece": {"preemptive": False, "places": (2, 2), "contention": True},
    "change": {"change": True, "places": (2, 2)},
    "change-contention": {"change": True, "places": (2, 2), "contention": True, "objective": "max_min"},
    "change-one-piece": {"change": True, "preemptive": False, "places": (4, 4)},
    "types": {"types": "mixed", "places": (3, 2, 2), "energy": True},
    "types-apart": {"types": "apart", "places": (2, 2, 3), "change": True},
    "types-makespan": {"types": "mixed", "objective": "makespan", "places": (4, 4)},
}


def kinds(evaluation):
    return {violation.kind for violation in evaluation.violations}


def random_schedule(rng, asked):
    """Some runs; half of the schedules keep to arrivals, deadlines and widths, none looks at the others."""
    runs, tame = [], rng.random() < 0.5
    for number, one in enumerate(asked.jobs):
        slot, last = (one.arrival, asked.last_slot(number)) if tame else (0, asked.slots)
        while slot < last:
            slots = int(rng.integers(1, (last if tame else asked.slots + 1) - slot + tame))
            fewest, most = (one.min_workers, one.max_workers) if tame else (1, one.max_workers + 1)
            counts = Counter(rng.integers(0, asked.server_count, size=rng.integers(fewest, most + 1)).tolist())
            workers, ring = tuple(sorted(counts.items())), ()
            if asked.needs_rings and len(counts) > 1:
                ring = least_rings(asked.network, sorted(counts))[0][0]
            if rng.random() < 0.6:
                runs.append(Run(job=number, start=slot, slots=slots, workers=workers, ring=ring))
            slot += slots + int(rng.integers(0, 2)) - (not tame and rng.random() < 0.1)
    rng.shuffle(runs)
    return Schedule(instance=asked.name, instance_digest=asked.digest, runs=tuple(runs))


def slow_check(asked, answer):
    """(objective, kinds of violations), slot by slot."""
    wrong = set()
    ran = [[] for _ in asked.jobs]
    where = [[] for _ in asked.jobs]
    energy = 0.0
    for slot in range(max([asked.slots, *(one.end for one in answer.runs)])):
        here = [one for one in answer.runs if one.start <= slot < one.end]
        used, loads = np.zeros_like(asked.capacity), Counter()
        for one in here:
            data = asked.jobs[one.job]
            if slot < data.arrival:
                wrong.add("job_has_arrived")
            if slot >= (asked.slots if data.deadline is None else data.deadline):
                wrong.add("deadline_is_kept")
            if one.width < data.min_workers:
                wrong.add("width_is_enough")
            if one.width > data.max_workers:
                wrong.add("width_is_allowed")
            for server, count in one.workers:
                used[server] += count * asked.demand[one.job]
            types = {asked.accelerators.type_of(server) for server, _ in one.workers}
            if data.speeds and not all(data.speeds[name] for name in types):
                wrong.add("type_suits_the_job")
            if data.speeds and len(types) > 1 and not asked.mixed_types:
                wrong.add("workers_are_of_one_type")
            if one.ring:
                for arc in pairwise((*one.ring, one.ring[0])):
                    loads[arc] += data.timing.bandwidth_bytes_per_s
        if len({one.job for one in here}) < len(here):
            wrong.add("job_runs_once_at_a_time")
        if (used > asked.capacity * (1 + 1e-9)).any():
            wrong.add("capacity")
        if any(load > asked.network.arcs[arc] * (1 + 1e-9) for arc, load in loads.items()):
            wrong.add("bandwidth")
        chosen = {one.job: Choice(one.workers, one.ring) for one in here}
        everybody = [chosen.get(number) for number in range(len(asked.jobs))]
        for number, rate in enumerate(job_rates(asked, everybody)):
            here = dict(everybody[number].workers) if everybody[number] else None
            if here and any(where[number]) and where[number][-1] != here and asked.preemptive:
                rate *= 1 - asked.jobs[number].change_s / asked.slot_s
            ran[number].append(rate)
            where[number].append(here)
        energy += slot_energy_j(asked, everybody)
    if not asked.preemptive and max(Counter(one.job for one in answer.runs).values(), default=0) > 1:
        wrong.add("job_runs_in_one_piece")
    done = [np.cumsum(rates) / data.minibatches for rates, data in zip(ran, asked.jobs, strict=True)]
    parts = [min(1.0, one[-1]) for one in done]
    ends = [int(np.argmax(one >= 1 - 1e-9)) + 1 if one[-1] >= 1 - 1e-9 else None for one in done]
    if asked.objective in ("makespan", "completion") and None in ends:
        return None, wrong | {"job_is_finished"}
    goals = {
        "utility": lambda: (
            sum(data.utility.of(part) for data, part in zip(asked.jobs, parts, strict=True))
            - asked.energy_price_per_j * energy
        ),
        "max_min": lambda: min(parts),
        "makespan": lambda: max(ends) * asked.slot_s,
        "completion": lambda: (
            sum(data.utility.value * (end - data.arrival) for data, end in zip(asked.jobs, ends, strict=True))
            * asked.slot_s
        ),
    }
    return goals[asked.objective](), wrong


@for_each("shape", SHAPES)
@pytest.mark.parametrize("draws", [20, slow(40)])
def test_a_slow_second_implementation_agrees(shape, draws):
    rng = np.random.default_rng(1)
    seen = Counter()
    for _ in range(draws):
        asked = random_instance(rng, slots=5, **SHAPES[shape])
        answer = random_schedule(rng, asked)
        objective, wrong = slow_check(asked, answer)
        floats, exact = evaluate(asked, answer), evaluate(asked, answer, exact=True)
        assert kinds(floats) == wrong
        seen.update(wrong)
        seen["right"] += not wrong
        if "job_runs_once_at_a_time" in wrong:
            continue  # then the slow one sees only one of the two runs
        assert floats.objective == (None if objective is None else pytest.approx(objective, rel=1e-9, abs=1e-12))
        assert kinds(exact) == kinds(floats)
        assert set(exact.details) == set(floats.details)
        for name, value in floats.details.items():
            assert float(exact.details[name]) == pytest.approx(float(value), rel=1e-9, abs=1e-9)
        if objective is not None:
            assert isinstance(exact.objective, Fraction)
            assert float(exact.objective) == pytest.approx(floats.objective, rel=1e-9, abs=1e-12)
    assert seen["right"], seen
    assert seen["capacity"] or shape in ("makespan", "types-makespan", "completion", "max_min"), seen


@pytest.mark.parametrize("shape", SHAPES)
def test_no_random_schedule_beats_brute_force(shape):
    rng = np.random.default_rng(2)
    for _ in range(1 if shape == "types-apart" else 3):
        asked = random_instance(rng, slots=3, jobs=2, **SHAPES[shape])
        best = brute_force(asked)
        for _ in range(30):
            evaluation = evaluate(asked, random_schedule(rng, asked))
            if evaluation.feasible:
                sign = 1 if asked.sense == "maximize" else -1
                assert best is not None
                assert sign * evaluation.objective <= sign * best.objective + 1e-9
