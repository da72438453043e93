"""Small instances of pipelines, odd on purpose, and all plans of one, tried one by one."""

import itertools
import random

from ddlopt.models.deployment import PipelineInstance, PipelinePlan, PlanStage
from ddlopt.models.deployment.pipeline.evaluate import evaluate_pipeline


def drawn(seed, most=4, options=2):
    """Few layers: zeros, ties, twins, missing degrees, memory that is tight or lavish."""
    draw = random.Random(seed)
    count = draw.randint(1, most)
    edges = [(u, v) for v in range(count) for u in range(v) if draw.random() < 0.5]
    twins, first = draw.random() < 0.4, _menus(draw, options)
    layers = []
    for place in range(count):
        menus = first if twins and draw.random() < 0.6 else _menus(draw, options)
        layers.append({"name": f"layer {place}", "menus": [_sent(draw, menu, place, edges) for menu in menus]})
    return PipelineInstance.from_data(
        {
            "name": f"drawn-{seed}",
            "layers": layers,
            "edges": [{"maker": u, "user": v, "size_bytes": draw.randint(0, 4)} for u, v in edges],
            "devices": draw.randint(1, 5),
            "memory_bytes": draw.choice([4, 8, 14, 30, 100]),
            "bandwidth_bytes_per_s": draw.choice([1, 2, 5]),
            "micro_batches": draw.choice([1, 2, 3, 4, 6]),
        }
    )


def _menus(draw, options):
    degrees = draw.choice([(1,), (1, 2), (1, 2), (2,)])
    return [
        {
            "tensor": tensor,
            "options": [
                {
                    "name": name,
                    "time_s": draw.randint(0, 6) / tensor,
                    "weight_bytes": draw.randint(0, 8),
                    "kept_bytes": draw.randint(0, 5),
                    "fixed_bytes": draw.randint(0, 3),
                }
                for name in "abc"[: draw.randint(1, options)]
            ],
        }
        for tensor in degrees
    ]


def _sent(draw, menu, place, edges):
    options = []
    for option in menu["options"]:
        gathered = [(u, draw.randint(0, 3)) for u, v in edges if v == place and draw.random() < 0.4]
        scattered = [(v, draw.randint(0, 3)) for u, v in edges if u == place and draw.random() < 0.4]
        options.append({**option, "gathered": gathered, "scattered": scattered})
    return {**menu, "options": options}


def _ordered(items):
    """All sequences of sets that have every item once."""
    if not items:
        yield []
    for mask in range(1, 1 << len(items)):
        one = [item for place, item in enumerate(items) if mask >> place & 1]
        rest = [item for place, item in enumerate(items) if not mask >> place & 1]
        for more in _ordered(rest):
            yield [one, *more]


def plans(instance):
    """Every plan with enough devices and no edge that leads back."""
    for sets in _ordered(list(range(instance.size))):
        where = {layer: place for place, layers in enumerate(sets) for layer in layers}
        if any(where[edge.maker] > where[edge.user] for edge in instance.edges):
            continue
        ways = [
            [
                (d, t, names)
                for d in range(1, instance.micro_batches + 1)
                for t in (1, 2)
                if d * t <= instance.devices and instance.micro_batches % d == 0
                for names in itertools.product(
                    *([option.name for option in instance.layers[layer].menu(t)] for layer in layers)
                )
            ]
            for layers in sets
        ]
        for chosen in itertools.product(*ways):
            if sum(d * t for d, t, _ in chosen) <= instance.devices:
                yield PipelinePlan(
                    instance=instance.name,
                    stages=tuple(
                        PlanStage(layers=tuple(layers), replicas=d, tensor=t, options=names)
                        for layers, (d, t, names) in zip(sets, chosen, strict=True)
                    ),
                )


def tight(seed, most=3):
    """Memories that are tenths, and a limit that they reach or are beyond by what the check counts as rounding."""
    instance = drawn(seed, most)
    draw, data = random.Random(seed), instance.model_dump(mode="json")
    for layer in data["layers"]:
        for option in (option for menu in layer["menus"] for option in menu["options"]):
            option |= {name: option[name] * 0.1 for name in ("kept_bytes", "fixed_bytes")}
    data["memory_bytes"] = draw.randint(1, 12) * 0.1 * (1 - draw.choice((0.0, 5e-10, 2e-9)))
    return PipelineInstance.from_data(data)


def best_of_all(instance, exact=True):
    """The least time of a sample; None if no plan is feasible."""
    found = (evaluate_pipeline(instance, plan, exact=exact) for plan in plans(instance))
    return min((each.objective for each in found if each.feasible), default=None)
