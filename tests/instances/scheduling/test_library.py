"""The bundled scheduling instances: what together they cover, and that each can be answered."""

import math
from collections import Counter
from functools import cache

import pytest

from ddlopt.instances import library_folder, names
from ddlopt.instances.generators.scheduling.tiny import FEATURES
from ddlopt.instances.library.scheduling.instances import instances
from ddlopt.models.scheduling import Run, Schedule, evaluate


@cache
def every():
    """All of them, by name."""
    return {instance.name: instance for instance in instances()}


def test_files_are_small_and_say_where_they_are_from():
    files = [library_folder("scheduling") / f"{name}.json" for name in every()]
    assert sum(file.stat().st_size for file in files) < 2_000_000
    assert {instance.source.partition(":")[0] for instance in every().values()} == {"generated", "philly.csv"}


def test_only_codesign_shares_names_with_another_family():
    """A job is a topology instance once its strategies are chosen; the bare name stands for that."""
    stems = Counter(name.split("/")[1] for name in names() if not name.startswith("codesign/"))
    assert max(stems.values()) == 1


def test_every_feature_is_bundled():
    tiny = {name for name in every() if name.startswith("tiny-")}
    assert tiny == {f"tiny-{feature.replace('_', '-')}" for feature in FEATURES}
    everything = every().values()
    jobs = [job for instance in everything for job in instance.jobs]
    assert {instance.objective for instance in everything} == {
        "utility",
        "max_min",
        "makespan",
        "completion",
        "finish_time_fairness",
    }
    kinds = {"capped", "logarithmic", "loss_curve", "fair", "all_or_nothing"}
    assert {job.utility.kind for job in jobs} == kinds
    assert {job.timing.kind for job in jobs} == {"ring", "pollux"}
    assert {instance.bandwidth for instance in everything} == {"reserved", "shared"}
    assert {instance.preemptive for instance in everything} == {True, False}
    assert any(instance.energy_price_per_j for instance in everything)
    assert any(instance.contention for instance in everything)
    trees = {instance.network.is_tree(instance.server_count) for instance in everything if instance.network}
    assert trees == {True, False}


@pytest.mark.parametrize(("jobs", "slots", "gpus"), [(10, 10, 8), (50, 20, 32), (200, 100, 64)])
def test_sizes_are_those_of_the_names(jobs, slots, gpus):
    instance = every()[f"elastic-j{jobs}-t{slots}-g{gpus}"]
    assert (len(instance.jobs), instance.slots, instance.capacity.sum()) == (jobs, slots, gpus)


def list_schedule(instance):
    """Jobs at full width, the widest first, as soon as there is room for them, on as few servers as may be."""
    free = [int(amount) for amount in instance.capacity[:, 0]]
    waiting = sorted(range(len(instance.jobs)), key=lambda job: -instance.jobs[job].max_workers)
    runs, slot = [], 0
    while waiting and slot < instance.slots:
        for run in runs:
            if run.end == slot:
                for server, count in run.workers:
                    free[server] += count
        for job in list(waiting):
            width = instance.jobs[job].max_workers
            if instance.jobs[job].arrival <= slot and sum(free) >= width:
                workers = packed(free, width)
                for server, count in workers:
                    free[server] -= count
                runs.append(Run(job=job, start=slot, slots=slots_of(instance, job, len(workers)), workers=workers))
                waiting.remove(job)
        slot += 1
    return Schedule(instance=instance.name, runs=tuple(runs))


def packed(free, width):
    fitting = [server for server, room in enumerate(free) if room >= width]
    order = (
        [min(fitting, key=lambda server: free[server])] if fitting else sorted(range(len(free)), key=lambda s: -free[s])
    )
    workers = []
    for server in order:
        count = min(width - sum(count for _, count in workers), free[server])
        if count:
            workers.append((server, count))
    return tuple(workers)


def slots_of(instance, job, servers):
    """Slots at full width; on several servers, where rings contend, with a ring for every GPU of the largest one."""
    job, rules = instance.jobs[job], instance.contention
    bandwidth, overhead_s = None, 0.0
    if rules is not None:
        at_once = max(1, rules.share * instance.capacity.max())
        between = rules.between_servers_bytes_per_s / (at_once + rules.degradation * (at_once - 1))
        bandwidth = between if servers > 1 else rules.within_server_bytes_per_s
        overhead_s = servers * rules.server_overhead_s
    iteration_s = job.timing.iteration_s(job.max_workers, bandwidth) + overhead_s
    return math.ceil(job.minibatches / job.max_workers * iteration_s / instance.slot_s - 1e-9)


def test_horizons_leave_room_for_plain_list_schedules():
    for name, instance in every().items():
        if instance.goal.must_finish:
            checked = evaluate(instance, list_schedule(instance))
            assert checked.violations == (), name
            assert checked.details["finished_jobs"] == len(instance.jobs), name
            assert checked.details["makespan_s"] <= instance.slots * instance.slot_s, name
