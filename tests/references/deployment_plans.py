"""Small random instances of the problem ``plan``, and random deployments for them."""

import itertools

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
