"""Small instances of training steps, odd on purpose, and all plans of one, tried one by one."""

import itertools
import random

from ddlopt.models.deployment import StepInstance, StepPlan
from ddlopt.models.deployment.step.evaluate import evaluate_step


def option(draw, name, factor=1.0):
    """An option; ``factor``: of its times."""
    return {
        "name": name,
        "forward_s": draw.choice([0, 1, 2, 3]) * factor,
        "backward_s": draw.choice([0, 1, 2, 4]) * factor,
        "kept_bytes": draw.choice([0, 1, 4, 9]),
        "transient_bytes": draw.choice([0, 0, 2, 5]),
        "tensor_bytes": draw.choice([0, 0, 3]),
        "context_bytes": draw.choice([0, 0, 2]),
        "expert_bytes": draw.choice([0, 4]),
        "messages": draw.choice([0, 1, 2]),
    }


def block(draw, name, count, experts, names, keys):
    """A block with ways for all keys; without experts those of an expert degree of 1."""
    ways = []
    for t, c, e, b, shared in keys:
        if e > 1 and not experts:
            continue
        options = [option(draw, each, 1 / t) for each in names]
        if not experts:
            options = [each | {"expert_bytes": 0} for each in options]
        if "full" in names and draw.random() < 0.6:
            # As it should be: made again is slower and leaner.
            first, last = options[0], options[-1]
            last |= {key: first[key] for key in first if key not in ("name", "backward_s", "kept_bytes")}
            last |= {"backward_s": first["backward_s"] + first["forward_s"], "kept_bytes": min(1, first["kept_bytes"])}
        ways.append(
            {
                "tensor": t,
                "context": c,
                "expert": e,
                "micro_batch": b,
                "sequence_parallel": shared,
                "parameters": draw.choice([0, 1, 3]),
                "expert_parameters": draw.choice([0, 2]) if experts else 0,
                "options": options,
            }
        )
    return {"name": name, "count": count, "experts": experts, "ways": ways}


def drawn(seed):
    """Two to eight blocks on one to eight devices: ties, zeros, experts, tight memory, slow servers, tied ends."""
    draw = random.Random(seed)
    experts = draw.random() < 0.4
    keys = list(itertools.product(draw.choice([(1,), (1, 2)]), draw.choice([(1,), (1, 2)]), (1, 2) if experts else (1,),
                                  draw.choice([(1,), (1, 2)]), (False,)))  # fmt: skip
    names = draw.choice([("none", "full"), ("none", "full"), ("none", "selective", "full"), ("none",), ("full",)])
    plain = [key for key in keys if key[2] == 1]
    blocks = [block(draw, "first", draw.randint(1, 3), False, names, plain)]
    if experts or draw.random() < 0.5:
        blocks.append(block(draw, "then", draw.randint(1, 5), experts, names, keys))
    size, devices = draw.choice([1, 2, 4]), draw.choice([1, 2, 3, 4, 6, 8])
    tiers = [{"name": "server", "size": size, "bandwidth_bytes_per_s": draw.choice([2, 8]), "latency_s": 0.25}]
    if size < devices:
        tiers.append(
            {"name": "network", "size": 8 * size, "bandwidth_bytes_per_s": draw.choice([1, 4]), "latency_s": 0.5}
        )
        tiers[-1]["collective"] = draw.choice(["ring", "switch"])
    return StepInstance.from_data(
        {
            "name": f"drawn-{seed}",
            "embedding": block(draw, "embedding", 1, False, ("none",), plain),
            "blocks": blocks,
            "head": block(draw, "head", 1, False, ("none",), plain),
            "devices": devices,
            "memory_bytes": draw.choice([20, 40, 60, 100, 300]),
            "tiers": tiers,
            "slower_inside": True,
            "global_batch": draw.choice([2, 4, 6, 8]),
            "handed_bytes": draw.choice([0, 1]),
            "weight_bytes": 1,
            "gradient_bytes": draw.choice([1, 2]),
            "optimizer_bytes": 6,
            "optimizer_s": draw.choice([0, 0.125]),
            "overlap": draw.choice([0, 0.5, 1]),
            "sharding": draw.choice([(0, 1, 2, 3), (0,), (1, 3)]),
            "interleaving": draw.choice([1, 2, 3]),
            "tied": draw.random() < 0.3,
        }
    )


def plans(instance):
    """Every plan with degrees of a block's way, feasible or not."""
    source = next((each for each in instance.blocks if each.experts), instance.blocks[0])
    divisors = [d for d in range(1, instance.devices + 1) if instance.global_batch % d == 0]
    for way in source.ways:
        names = [each.name for each in way.options]
        stages = range(1, instance.devices + 1)
        for p, d, v in itertools.product(stages, divisors, range(1, instance.interleaving + 1)):
            if p * v > instance.size or way.tensor * way.context * p * d > instance.devices:
                continue
            longest = -(-instance.size // (p * v))
            for z, name, r, order in itertools.product(instance.sharding, names, range(longest + 1), instance.orders):
                yield StepPlan(
                    instance=instance.name,
                    tensor=way.tensor,
                    context=way.context,
                    expert=way.expert,
                    micro_batch=way.micro_batch,
                    sequence_parallel=way.sequence_parallel,
                    pipeline=p,
                    data=d,
                    interleaving=v,
                    sharding=z,
                    option=name,
                    recomputed=r,
                    order=order,
                )


def best_of_all(instance):
    """The shortest step; None if no plan is feasible."""
    found = (evaluate_step(instance, plan) for plan in plans(instance))
    return min((each.objective for each in found if each.feasible), default=None)
