"""Small instances of micro-batches, odd on purpose, and all orders of one, tried one by one."""

import itertools
import random

from ddlopt.models.deployment import MicroBatchInstance, MicroBatchOrder
from ddlopt.models.deployment.microbatches.evaluate import evaluate_order
from ddlopt.models.deployment.microbatches.solution import Pass, kinds_of


def drawn(seed, chunks=3, zeros=True):
    """Few chunks: one or two chains, shared devices, zeros, ties, transfers, W within B, tight memory."""
    draw = random.Random(seed)
    count = draw.randint(1, chunks)
    devices = draw.randint(1, min(count, 2))
    places = [*range(devices), *(draw.randrange(devices) for _ in range(count - devices))]
    draw.shuffle(places)
    cut = draw.random() < 0.3
    lag = draw.choice((0, 0, 1, 0.5))
    edges = [
        {"maker": u, "user": u + 1, "forward_s": lag, "backward_s": draw.choice((0, lag))}
        for u in range(count - 1)
        if not (cut and u == 0)
    ]
    fused, times = draw.random() < 0.3, (0, 1, 1, 2, 3, 0.5) if zeros else (1, 1, 2, 3, 0.5)
    parts = []
    for place in range(count):
        held = draw.choice((0, 1, 2, 2))
        parts.append(
            {
                "name": f"chunk {place}",
                "device": places[place],
                "forward_s": draw.choice(times),
                "backward_s": draw.choice(times),
                "weights_s": None if fused else draw.choice(times),
                "held_bytes": held,
                "freed_bytes": draw.choice((0, held / 2, held)),
            }
        )
    need = [sum(part["held_bytes"] for part in parts if part["device"] == device) for device in range(devices)]
    objective = draw.choice(("makespan", "span", "span", "barrier"))
    n, most = draw.choice((2, 2, 2, 3)), max(places.count(device) for device in range(devices)) * (2 if fused else 3)
    while n > 1 and n * most > (6 if count > 1 else 9):
        n -= 1
    return MicroBatchInstance.from_data(
        {
            "name": f"drawn-{seed}",
            "chunks": parts,
            "edges": edges,
            "memory_bytes": [most * draw.choice((1, 1, 1.5, 3)) for most in need],
            "micro_batches": n,
            "objective": objective,
            "optimizer_s": [draw.choice((0, 1, 3)) for _ in range(devices)] if objective == "barrier" else [],
        }
    )


def orders(instance, alike=True):
    """All of them; ``alike``: only those in which micro-batches have the passes of each kind in their order."""
    own = [[] for _ in range(instance.devices)]
    for chunk in range(len(instance.chunks)):
        for kind in kinds_of(instance, chunk):
            own[instance.chunks[chunk].device].append((chunk, kind))
    some = [list(_words(instance, kinds, alike)) for kinds in own]
    for words in itertools.product(*some):
        yield MicroBatchOrder(instance=instance.name, orders=words)


def best_of_all(instance, alike=True):
    """The least objective in rational numbers; None if nothing fits."""
    found = (evaluate_order(instance, order, exact=True) for order in orders(instance, alike))
    return min((each.objective for each in found if each.feasible), default=None)


def _words(instance, kinds, alike):
    """Orders of a device's passes in which those of a micro-batch on a chunk are in turn."""
    n = instance.micro_batches
    every = [(chunk, kind, j) for chunk, kind in kinds for j in range(n)]

    def grown(word, done):
        if len(word) == len(every):
            yield tuple(str(Pass(*each)) for each in word)
            return
        for chunk, kind, j in every:
            if (chunk, kind, j) in done:
                continue
            names = kinds_of(instance, chunk)
            before = names.index(kind)
            if before and (chunk, names[before - 1], j) not in done:
                continue
            if alike and j and (chunk, kind, j - 1) not in done:
                continue
            yield from grown([*word, (chunk, kind, j)], done | {(chunk, kind, j)})

    yield from grown([], frozenset())
