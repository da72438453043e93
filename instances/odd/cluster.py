"""Small instances of clusters to begin with."""

import random

from ddlopt.instances.generators import generate
from ddlopt.instances.odd.optional import PLAIN, RARE
from ddlopt.instances.workloads.racks import in_racks
from ddlopt.models.cluster.joint.instance import JointInstance
from ddlopt.models.contracts import Instance


def jobs(draw: random.Random, seed: int) -> Instance:
    """A few jobs with tables of step times, of either mode and every objective."""
    return generate(
        "cluster",
        "jobs",
        seed,
        jobs=draw.randint(1, 3),
        servers=draw.randint(1, 4),
        mode=draw.choice(("rigid", "rigid", "slots")),
        objective=draw.choice(("makespan", "weighted_completion", "weighted_tardiness")),
        spread=draw.choice((0.0, 0.5)),
        known=draw.choice((1.0, 0.8)),
    )


def placement(draw: random.Random, seed: int) -> Instance:
    """A few hosts in racks and blocks, some busy, for every objective."""
    pods = draw.choice((0, 0, 2))
    return generate(
        "cluster",
        "placement",
        seed,
        pods=pods,
        blocks=draw.randint(1, 2),
        racks=draw.randint(1, 2),
        hosts=draw.randint(1, 4),
        busy=draw.choice((0.0, 0.4)),
        asked=draw.choice((0.7, 1.0)),
        largest=draw.randint(1, 5),
        bound_to_block=draw.choice((0.0, 0.3)),
        bound_to_rack=draw.choice((0.0, 0.3)),
        objective=draw.choice(("pairs", "crossings", "max_gangs", "fits")),
        prices=() if draw.random() < PLAIN else (4, 2, 1)[-(3 if pods else 2) :],
    )


def joint(draw: random.Random, seed: int) -> Instance:
    """A few jobs whose plans take an instant, or with given step times, on a few servers, which may be in racks."""
    made = generate(
        "cluster",
        "joint",
        seed,
        jobs=draw.randint(1, 3),
        servers=draw.randint(3, 5),
        workloads=draw.choice((("tiny-step",), ("tiny-codesign",), ("tiny-step", "tiny-codesign"))),
        widths=draw.choice(((2, 3), (2,), (3,))),
        spread=draw.choice((0.0, 0.5)),
        objective=draw.choice(("makespan", "weighted_completion", "weighted_tardiness")),
    )
    assert isinstance(made, JointInstance)
    if draw.random() >= PLAIN:
        made = _in_racks(draw, made)
    return made if draw.random() < PLAIN else _with_known_steps(draw, made)


def _step_s(instance: JointInstance, workload: int) -> float:
    """About what an iteration takes, as the generator guessed; 1 s of what no job trains."""
    job = next((job for job in instance.jobs if job.workload == workload), None)
    return 1.0 if job is None else _JOB_S / job.iterations


def _in_racks(draw: random.Random, instance: JointInstance) -> JointInstance:
    """Racks of unequal sizes, some in a block, whose uplinks take about as long as an iteration or not."""
    shared = in_racks(instance, 1, 1.0)
    rate = max(
        choice.crossing_bytes / _step_s(instance, place)
        for place, menu in enumerate(shared.workloads)
        for choice in menu.choices
    )
    hosts: list[int] = []
    while sum(hosts) < instance.servers:
        hosts.append(draw.randint(1, instance.servers - sum(hosts)))
    uplinks = [draw.choice((0.3, 1.0, 1.0, 3.0)) * (rate or 1.0) for _ in (None, *hosts)]
    inside = [0 if draw.random() < RARE else None for _ in hosts] if draw.random() < PLAIN else [None] * len(hosts)
    block = [{"name": "block", "uplink_bytes_per_s": uplinks[0]}] if 0 in inside else []
    racks = [
        {"name": f"rack{place}", "hosts": count, "uplink_bytes_per_s": uplink, "inside": around}
        for place, (count, uplink, around) in enumerate(zip(hosts, uplinks[1:], inside, strict=True))
    ]
    return shared.changed(name=f"{instance.name}-racks", fabric={"groups": block + racks})


def _with_known_steps(draw: random.Random, instance: JointInstance) -> JointInstance:
    """Some workloads, or all, have times of an iteration in place of problems."""
    known = [draw.random() < PLAIN for _ in instance.workloads]
    menus = [
        {
            "name": menu.name,
            "choices": [
                {
                    "servers": choice.servers,
                    "step_s": draw.choice((0.5, 1.0, 1.0, 2.0)) * _step_s(instance, place),
                    "crossing_bytes": choice.crossing_bytes,
                }
                if known[place]
                else choice
                for choice in menu.choices
            ],
        }
        for place, menu in enumerate(instance.workloads)
    ]
    return instance.changed(workloads=menus, problems=() if all(known) else instance.problems)


_JOB_S = 7200.0
"""What a job of the generator takes in the mean."""
