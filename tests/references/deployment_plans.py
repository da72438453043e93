"""Small random instances of the problem ``plan``, and random deployments for them."""

import itertools
from dataclasses import replace

from ddlopt.models.deployment import Deployment, DeploymentInstance, DeviceGroup, GroupPlan, Operator, Tensor

TYPES = ("v100", "p100", "1080ti")


def random_instance(
    rng,
    operators=8,
    groups=3,
    device_groups=2,
    most_devices=3,
    whole_numbers=False,
    memory_bytes=1e9,
    counts=None,
    shares=None,
):
    """A layered graph of operators; with ``whole_numbers`` many things happen at the same time."""
    shares = shares or [(1.0,), (1.0, 0.5), (1.0, 0.5, 0.25, 0.125)][rng.integers(3)]
    counts = counts or [int(rng.integers(1, most_devices + 1)) for _ in range(device_groups)]
    kinds = [TYPES[int(rng.integers(len(TYPES)))] for _ in counts]

    def figure(high):
        return float(rng.integers(1, high + 1)) if whole_numbers else float(rng.uniform(0.1, high))

    made = [0] * operators
    group_of = [*range(groups), *(int(rng.integers(groups)) for _ in range(operators - groups))]
    rng.shuffle(group_of)
    for place in range(operators):
        speed = {kind: figure(2) for kind in TYPES}
        fixed, work = figure(2), figure(6)
        made[place] = Operator(
            name=f"op{place}",
            group=group_of[place],
            times_s={
                kind: tuple(speed[kind] * (fixed + work * share) for share in shares) for kind in sorted(set(kinds))
            },
            gradient_bytes=figure(20) if rng.random() < 0.4 else 0.0,
            resident_bytes=figure(20) if rng.random() < 0.5 else 0.0,
        )
    names = rng.permutation(operators)
    tensors = []
    for place in range(operators - 1):
        for _ in range(int(rng.integers(0, 3))):
            ahead = rng.choice(
                range(place + 1, operators), size=min(operators - place - 1, int(rng.integers(1, 4))), replace=False
            )
            size = 0.0 if rng.random() < 0.15 else figure(20)
            consumers = tuple(int(names[node]) for node in ahead)
            tensors.append(Tensor(producer=int(names[place]), consumers=consumers, size_bytes=size))
    size = len(counts)
    return DeploymentInstance(
        name="random",
        operators=tuple(made),
        tensors=tuple(tensors),
        device_groups=tuple(
            DeviceGroup(type=kind, count=count, memory_bytes=memory_bytes, bandwidth_bytes_per_s=figure(12))
            for kind, count in zip(kinds, counts, strict=True)
        ),
        bandwidth_bytes_per_s=[[figure(6) for _ in range(size)] for _ in range(size)],
        shares=shares,
        latency_s=0.0 if rng.random() < 0.3 else figure(1),
        all_reduce={"s_per_byte": [0.1, 0.2], "fixed_s": [0.5, 0.25], "at_bytes_per_s": 4.0},
    )


def masks(instance):
    """All choices of device groups."""
    known = range(len(instance.device_groups))
    return [chosen for size in range(1, len(known) + 1) for chosen in itertools.combinations(known, size)]


def random_deployment(rng, instance, duplicate=0.25, modes=("all_reduce", "parameter_server", "model_parallel")):
    """A plan of any kind: any mode, any devices within the device groups, any operators duplicated that may be."""
    plans, duplicated = [], []
    choices = masks(instance)
    for members in instance.members:
        chosen = choices[int(rng.integers(len(choices)))]
        mode = modes[int(rng.integers(len(modes)))]
        split = ("even", "speed")[int(rng.integers(2))]
        at = instance.devices_of(chosen)
        devices = tuple(int(rng.choice(at)) for _ in members) if mode == "model_parallel" else None
        plans.append(GroupPlan(device_groups=chosen, mode=mode, split=split, devices=devices))
        if mode == "all_reduce" and len(at) > 1:
            duplicated += [place for place in members if rng.random() < duplicate]
    return Deployment(instance=instance.name, groups=tuple(plans), duplicated=tuple(sorted(duplicated)))


def queues():
    """(what waits, instance, deployment, seconds of its step): tasks that are late as others were ready before them.

    In any other order of work each step would take less.
    """

    def instance(times, tensors, counts=(1, 1), gradient_bytes=0.0):
        return DeploymentInstance(
            name="queue",
            operators=tuple(
                Operator(name=name, group=group, times_s={"v100": (float(time_s),)}, gradient_bytes=gradient_bytes)
                for group, (name, time_s) in enumerate(times.items())
            ),
            tensors=tuple(
                Tensor(producer=producer, consumers=consumers, size_bytes=float(size))
                for producer, consumers, size in tensors
            ),
            device_groups=tuple(
                DeviceGroup(type="v100", count=count, memory_bytes=1e9, bandwidth_bytes_per_s=1.0) for count in counts
            ),
            bandwidth_bytes_per_s=[[1.0, 1.0], [1.0, 1.0]],
        )

    def on(*device_groups):
        groups = tuple(GroupPlan(device_groups=(group,), mode="all_reduce") for group in device_groups)
        return Deployment(instance="queue", groups=groups)

    # The first sends 10 bytes from 1 to 11, so that what the second has from 2 on is sent at 11, and read from 12 on.
    link = instance({"first": 1, "second": 1, "late": 0.5, "long": 5}, [(0, (2,), 10), (0, (1,), 1), (1, (3,), 1)])
    yield "link", link, on(0, 0, 1, 1), 17
    # The weights are ready when the first ends, as the error is, and come before it.
    device = instance({"first": 1, "weights": 5, "error": 1, "far": 3}, [(0, (1, 2), 1), (2, (3,), 1)])
    yield "device", device, on(0, 0, 0, 1), 11
    # The same with what the first and the weights read from another device.
    come = [(0, (1, 2, 3), 1), (1, (2, 3), 0), (3, (4,), 1)]
    device = instance({"from": 1, "first": 1, "weights": 5, "error": 1, "far": 3}, come)
    yield "what has come", device, on(1, 0, 0, 0, 1), 13
    # Four bytes and six come over one link.
    arrivals = instance({"one": 1, "other": 1, "both": 2}, [(0, (2,), 4), (1, (2,), 6)], counts=(2, 1))
    groups = [
        GroupPlan(device_groups=(0,), mode="model_parallel", devices=(0,)),
        GroupPlan(device_groups=(0,), mode="model_parallel", devices=(1,)),
        GroupPlan(device_groups=(1,), mode="all_reduce"),
    ]
    yield "arrivals", arrivals, Deployment(instance="queue", groups=groups), 13
    # Three gradients of six bytes to the server one after the other, and back.
    served = instance({"step": 4}, [], counts=(1, 3), gradient_bytes=6.0)
    group = GroupPlan(device_groups=(0, 1), mode="parameter_server")
    yield "server", served, Deployment(instance="queue", groups=(group,)), 37


def tied_instance(rng):
    """Three to five operators on three devices: parts are thirds, and ends of tasks are often at the same time."""
    operators = int(rng.integers(3, 6))
    groups = int(rng.integers(2, min(3, operators) + 1))
    shares = [(1.0,), (1.0, 0.5, 0.25)][rng.integers(2)]

    def one_of(*figures):
        return float(rng.choice(figures))

    group_of = [*range(groups), *(int(rng.integers(groups)) for _ in range(operators - groups))]
    rng.shuffle(group_of)
    made = [
        Operator(
            name=f"op{place}",
            group=group,
            times_s={"v100": tuple(sorted((one_of(0, 0.5, 1, 1, 2, 3) for _ in shares), reverse=True))},
            gradient_bytes=one_of(0, 1, 2),
        )
        for place, group in enumerate(group_of)
    ]
    tensors = []
    for place in range(operators - 1):
        for _ in range(int(rng.integers(1, 3))):
            after = rng.choice(
                range(place + 1, operators), size=min(operators - place - 1, int(rng.integers(1, 3))), replace=False
            )
            tensors.append(Tensor(producer=place, consumers=tuple(map(int, after)), size_bytes=one_of(0, 1, 2, 3, 6)))
    return DeploymentInstance(
        name="ties",
        operators=tuple(made),
        tensors=tuple(tensors),
        device_groups=(DeviceGroup(type="v100", count=3, memory_bytes=1e9, bandwidth_bytes_per_s=one_of(1, 2)),),
        bandwidth_bytes_per_s=[[1.0]],
        shares=shares,
        all_reduce={"s_per_byte": [0.5, 0.0], "fixed_s": [0.25, 1.0], "at_bytes_per_s": 4.0},
    )


def thirds():
    """An instance and a plan whose step takes 5 s, and 4 s if 1 + 2/3 + 1/3 is more than 2.

    Gradients of the first operator are at the server at 2 s, when the last operator ends. They became ready before, so
    that the links back take them first, and the last operator's gradients have to wait for a second.
    """
    instance = DeploymentInstance(
        name="thirds",
        operators=tuple(
            Operator(name=name, group=group, times_s={"v100": (time_s,)}, gradient_bytes=gradient)
            for name, group, time_s, gradient in (
                ("first", 1, 3.0, 1.0),
                ("second", 1, 2.0, 0.0),
                ("last", 0, 1.0, 1.0),
            )
        ),
        tensors=tuple(
            Tensor(producer=producer, consumers=consumers, size_bytes=6.0)
            for producer, consumers in ((0, (1, 2)), (1, (2,)))
        ),
        device_groups=(DeviceGroup(type="v100", count=3, memory_bytes=1e9, bandwidth_bytes_per_s=1.0),),
        bandwidth_bytes_per_s=[[1.0]],
        all_reduce={"s_per_byte": [0.5, 0.0], "fixed_s": [0.25, 1.0], "at_bytes_per_s": 4.0},
    )
    groups = (GroupPlan(device_groups=(0,), mode="parameter_server"),) * 2
    return instance, Deployment(instance="thirds", groups=groups)


def anneal_little(monkeypatch):
    """Exact methods begin with some poor plan: they have to find the best one themselves, and the test is quick."""
    from ddlopt.frontier.deployment.plan import methods
    from ddlopt.frontier.deployment.plan.prices import method as prices
    from ddlopt.frontier.deployment.plan.tree import method as tree

    monkeypatch.setattr(prices, "_MOVES", 200)
    monkeypatch.setattr(tree, "_EFFORT", replace(tree._EFFORT, moves=200))
    monkeypatch.setattr(methods, "_EFFORT", replace(methods._EFFORT, few_moves=200))
