"""Small instances of every problem to begin with, from the generators; of co-design also groups of all kinds."""

import random
from collections.abc import Callable
from typing import Any

import numpy as np

from ddlopt.instances.generators import generate
from ddlopt.instances.generators.codesign.random import random_job
from ddlopt.instances.odd import cluster, collective, gossip, scheduling
from ddlopt.instances.odd.changes import changed
from ddlopt.instances.odd.optional import PLAIN, RARE, some
from ddlopt.models.aggregation import HotInstance, RegisterInstance
from ddlopt.models.catalogue import problem as problem_named
from ddlopt.models.codesign import CodesignInstance
from ddlopt.models.compression import CompressionInstance
from ddlopt.models.contracts import Instance
from ddlopt.models.deployment import MicroBatchInstance
from ddlopt.models.errors import InstanceError, OptionError

_TRIES = 50
"""Draws of which some make no instance, as of sizes that do not go together."""


def odd_instance(path: str, setting: str | None, seed: int) -> Instance:
    """A small odd instance of a problem.

    Parameters
    ----------
    path : str
        Of the problem: ``"aggregation/tree"``.
    setting : str or None
        One of :data:`~ddlopt.instances.odd.changes.SETTINGS`; None for the instance to begin with.
    seed : int

    Returns
    -------
    Instance
        The same on every machine.
    """
    kind = problem_named(path).instance
    for number in range(_TRIES):
        draw = random.Random(f"{path} {seed} {number}")
        try:
            instance = _DRAWS[path](draw, seed * _TRIES + number)
        except (OptionError, InstanceError):
            continue
        assert isinstance(instance, kind), path
        return instance if setting is None else changed(instance, setting, seed)
    raise OptionError(f"seed {seed} makes no instance of {path} in {_TRIES} draws")


def _topology(draw: random.Random, seed: int) -> Instance:
    servers = draw.randint(3, 5)
    fabric: dict[str, Any] = {
        "servers": servers,
        "degree": draw.randint(1, 2 if servers < 4 else 3),
        "link_bandwidth_bytes_per_s": 1.0,
        "optics": draw.choice(("one_way", "one_way", "duplex")),
        "parallel_links": draw.random() < 0.7,
        "host_forwarding": draw.random() < 0.8,
        "compute_s": draw.choice((0.0, 2.0)),
        "overlap": draw.choice(("none", "none", "full")),
    }
    kind = draw.choice(("random", "all-to-all", "ring", "permutation", "hybrid", "hybrid"))
    if kind == "random":
        fabric |= {"density": draw.choice((0.4, 1.0))}
    if kind == "hybrid":
        sizes = [each for each in range(2, servers + 1) if servers % each == 0]
        fabric |= {"group_size": draw.choice(sizes), "gradient_bytes": 8.0, "group_gradient_bytes": 4.0}
        fabric |= {"mean_bytes": 3.0, "density": 0.5}
    return generate("topology", kind, seed, **fabric)


def _codesign(draw: random.Random, seed: int) -> Instance:
    rng, lossy = np.random.default_rng([40, seed]), np.random.default_rng([41, seed])
    servers = draw.randint(2, 6)
    instance = random_job(
        rng,
        servers=servers,
        degree=draw.randint(1, min(3, servers - 1)),
        layers=draw.randint(1, 3),
        strategies=draw.randint(1, 3),
        twins=draw.choice((0, 0, 1)),
        density=draw.choice((0.3, 1.0)),
        traffic=draw.choice((0.0, 0.5)),
        measured=draw.choice((0.0, 0.5)),
        memory_slack=draw.choice((None, None, 1.0)),
        optics=draw.choice(("one_way", "one_way", "duplex")),
        overlap=draw.choice(("none", "none", "full")),
        parallel_links=draw.random() < 0.8,
        host_forwarding=draw.random() < 0.85,
        compressors=1 if lossy.random() < RARE else None,
        error_slack=float(lossy.choice((0.0, 0.3, 0.7))) if lossy.random() < 0.5 else None,
    )
    return instance if draw.random() < 0.3 else any_groups(instance, draw)


def any_groups(instance: CodesignInstance, draw: random.Random) -> CodesignInstance:
    """The instance with as many sets of groups, each drawn: of any size, with servers that are in none."""

    def drawn() -> list[list[int]]:
        servers = list(range(instance.servers))
        draw.shuffle(servers)
        groups = []
        while len(servers) > 1:
            size = draw.randint(1, min(4, len(servers)))
            if size > 1:
                groups.append(sorted(servers[:size]))
            servers = servers[size:]
        return groups

    return instance.changed(group_sets=tuple(tuple(map(tuple, drawn())) for _ in instance.group_sets))


def _sfb(draw: random.Random, seed: int) -> Instance:
    return generate(
        "compression",
        "sfb-random",
        seed,
        operators=draw.randint(3, 8),
        width=2,
        cost_model=draw.choice(("per_link", "total_bytes", "tag_code")),
        broadcast=draw.choice(("per_tensor", "per_edge")),
        mixed_replicas=draw.random() < 0.3,
        memory_part=draw.choice((None, None, 0.5)),
        compute_part=draw.choice((None, None, 0.5)),
    )


def _timeline(draw: random.Random, seed: int) -> Instance:
    if draw.random() < 0.3:  # several lanes; the first gradients of a network that has more
        data = generate("compression", "network", seed, model="vgg16", nodes=2, lanes=True).model_dump(mode="json")
        data["gradients"] = data["gradients"][: draw.randint(1, 3)]
        data["menus"] = [menu[:1] + draw.sample(menu[1:], min(2, len(menu) - 1)) for menu in data["menus"]]
        return CompressionInstance.from_data(data)
    more = {"goal": draw.choice(("time", "error"))}
    return generate(
        "compression",
        "random",
        seed,
        gradients=draw.randint(1, 5),
        options=draw.randint(1, 3),
        error_budget_part=draw.choice((None, 0.5)) if more["goal"] == "time" else None,
        fusion=draw.random() < 0.3,
        **more,
    )


def _levels(draw: random.Random, seed: int) -> Instance:
    more = {"goal": draw.choice(("time", "error")), "overlap": draw.random() < 0.7}
    return generate("compression", "levels-random", seed, gradients=draw.randint(1, 4), points=3, **more)


def _forward(draw: random.Random, seed: int) -> Instance:
    return generate(
        "compression",
        "forward-random",
        seed,
        gradients=draw.randint(1, 4),
        options=draw.randint(1, 2),
        parts=draw.choice(((1,), (1, 2))),
        error_budget_part=draw.choice((None, 0.5)),
    )


def _plan(draw: random.Random, seed: int) -> Instance:
    return generate(
        "deployment",
        "random",
        seed,
        groups=draw.randint(1, 3),
        device_groups=draw.randint(1, 2),
        most_devices=draw.randint(1, 2),
        skips=draw.randint(0, 1),
        communication=draw.choice((0.2, 1.0)),
        memory=draw.choice((0.8, 2.0)),
    )


def _partition(draw: random.Random, seed: int) -> Instance:
    if draw.random() < 0.5:
        more: dict[str, Any] = {"goal": "latency", "subgraphs": draw.choice((1, 2))}
    else:
        more = {"training": draw.random() < 0.4, "contiguous": draw.random() < 0.5}
        more |= {"separate_passes": more["training"] and draw.random() < 0.5}
    return generate(
        "deployment",
        "layered",
        seed,
        nodes=draw.randint(2, 6),
        accelerators=draw.randint(1, 2),
        processors=1,
        memory=draw.choice((1.0, 3.0)),
        communication=draw.choice((0.2, 1.0)),
        unsupported=draw.choice((0.0, 0.2)),
        **more,
    )


def _strategies(draw: random.Random, seed: int) -> Instance:
    if draw.random() < PLAIN:
        nodes, memory = draw.randint(2, 6), draw.choice((None, 0.5))
        return generate("deployment", "strategies-tree", seed, nodes=nodes, layouts=3, memory=memory)
    return generate("deployment", "strategies", seed, layers=draw.randint(1, 3), kinds=2, layouts=3, leaves=1)


def _pipeline(draw: random.Random, seed: int) -> Instance:
    return generate(
        "deployment",
        "pipeline",
        seed,
        layers=draw.randint(1, 3),
        shape=draw.choice(("chain", "branches", "random")),
        devices=draw.randint(1, 4),
        tensors=draw.choice(((1,), (1, 2))),
        micro_batches=draw.choice((1, 2, 4)),
        memory=draw.choice((0.3, 1.0, 3.0)),
        alike=draw.random() < 0.5,
    )


def _microbatches(draw: random.Random, seed: int) -> Instance:
    shape, objective = draw.choice(("around", "v", "dual")), draw.choice(("makespan", "span", "barrier"))
    made = generate(
        "deployment",
        "microbatches",
        seed,
        stages=draw.randint(1, 3),
        micro_batches=draw.choice((2, 4)) if shape == "dual" else draw.randint(1, 4),
        memory=draw.choice((1.0, 1.5, 2.0, 5.0)),
        objective=objective,
        chunks=1 if shape == "dual" else draw.randint(1, 2),
        shape=shape,
        fused=draw.random() < 0.3,
        freed=draw.choice((0.0, 0.5, 1.0)),
        transfer_s=draw.choice((0.0, 0.0, 0.5)),
        uneven=draw.choice((0.0, 0.5)),
        optimizer_s=draw.choice((None, 0.0, 2.0)),
    )
    assert isinstance(made, MicroBatchInstance)
    # Numbers of chunks need not follow their chains.
    order = draw.sample(range(len(made.chunks)), len(made.chunks))
    edges = (
        each.model_copy(update={"maker": order.index(each.maker), "user": order.index(each.user)})
        for each in made.edges
    )
    return made.changed(chunks=[made.chunks[place] for place in order], edges=list(edges))


def _step(draw: random.Random, seed: int) -> Instance:
    return generate(
        "deployment",
        "step",
        seed,
        layers=draw.randint(1, 5),
        heads=draw.choice((1, 2, 4)),
        experts=draw.choice((0, 0, 2, 4)),
        sequence=draw.choice((32, 128)),
        global_batch=draw.choice((1, 4, 6)),
        servers=draw.randint(1, 3),
        gpus_per_server=draw.choice((1, 2)),
        memory_gigabytes=draw.choice((0.02, 0.1, 1.0, 1e3, 1e6)),
    )


def _hot(draw: random.Random, seed: int) -> Instance:
    jobs = []
    for number in range(draw.randint(1, 2)):
        count, workers = draw.randint(1, 5), draw.randint(1, 4)
        job: dict[str, Any] = {
            "name": f"job{number}",
            "workers": workers,
            "frequencies": [round(draw.random() ** 2, 3) for _ in range(count)],
            "registers": [draw.randint(1, 3) for _ in range(count)] if draw.random() < 0.7 else 2,
            "iterations_per_s": round(draw.uniform(0.5, 2), 2),
        }
        if draw.random() < 0.2:
            job["saved_messages"] = [round(draw.random() * (workers - 1), 3) for _ in range(count)]
        jobs.append(job)
    everybody = [job["workers"] for job in jobs]
    switches = [
        {"name": f"s{k}", "registers": draw.randint(0, 8), "workers": everybody if draw.random() < 0.5 else []}
        for k in range(draw.randint(1, 2))
    ]
    return HotInstance.from_data({"name": f"hot-{seed}", "jobs": jobs, "switches": switches})


def _registers(draw: random.Random, seed: int) -> Instance:
    instance = generate(
        "aggregation",
        "registers-zipf",
        seed,
        parameters=draw.randint(1, 6),
        arrays=draw.randint(1, 3),
        batches=draw.randint(1, 4),
        held_out=draw.randint(0, 2),
        rows=2,
        goal=draw.choice(("packets", "collisions")),
    )
    assert isinstance(instance, RegisterInstance)
    capacity = [draw.randint(0, 3) for _ in range(instance.arrays)]
    fits = sum(capacity) >= instance.parameters and draw.random() > PLAIN
    weights = some(draw, len(instance.batches), 1.0, 2.0, 0.5)
    return instance.changed(weights=weights, capacity=tuple(capacity) if fits else instance.capacity)


def _tree(draw: random.Random, seed: int) -> Instance:
    return generate(
        "aggregation",
        "tree-random",
        seed,
        nodes=draw.randint(2, 7),
        jobs=draw.randint(1, 2),
        loads="uniform",
        budget=draw.randint(0, 3),
        memory=draw.choice((None, 1)),
        capable=draw.choice((0.6, 1.0)),
        goal=draw.choice(("utilization", "congestion")),
    )


def _graph(draw: random.Random, seed: int) -> Instance:
    goal, switches = draw.choice(("utilization", "congestion", "rates")), draw.randint(2, 4)
    return generate(
        "aggregation",
        "graph-random",
        seed,
        switches=switches,
        degree=min(2, switches - 1),
        hosts=1,
        jobs=draw.randint(1, 2),
        workers=draw.randint(1, switches - 1),
        slots=draw.randint(0, 1),
        goal=goal,
        aggregators=draw.choice((None, 1)),
        merging=draw.random() < 0.5,
    )


def _slots(draw: random.Random, seed: int) -> Instance:
    return generate(
        "aggregation",
        "slots",
        seed,
        jobs=draw.randint(1, 3),
        racks=draw.randint(1, 2),
        workers=2,
        servers=draw.choice((0.0, 0.5)),
        goal=draw.choice(("total", "slowest")),
        whole=draw.random() < 0.5,
        memory=draw.choice((0.01, 0.25)),
        bucket_mb=draw.choice((None, 40.0)),
        at_once=draw.choice((None, 2)),
        loss=draw.choice((None, None, 0.01)),
        slow_chance=draw.choice((None, None, 0.1)),
    )


def _table(draw: random.Random, seed: int) -> Instance:
    return generate(
        "aggregation",
        "table",
        seed,
        bits=draw.randint(2, 4),
        shape=draw.choice(("integers", "mantissas", "random")),
        entries=draw.choice(("ranges", "prefixes")),
        goal=draw.choice(("sum", "max")),
        tables=draw.randint(1, 2),
    )


_DRAWS: dict[str, Callable[[random.Random, int], Instance]] = {
    "topology": _topology,
    "topology/collective": collective.drawn,
    "scheduling": scheduling.drawn,
    "codesign": _codesign,
    "compression/sfb": _sfb,
    "compression/timeline": _timeline,
    "compression/levels": _levels,
    "compression/forward": _forward,
    "deployment/plan": _plan,
    "deployment/partition": _partition,
    "deployment/strategies": _strategies,
    "deployment/pipeline": _pipeline,
    "deployment/microbatches": _microbatches,
    "deployment/step": _step,
    "aggregation/hot": _hot,
    "aggregation/registers": _registers,
    "aggregation/tree": _tree,
    "aggregation/graph": _graph,
    "aggregation/slots": _slots,
    "aggregation/table": _table,
    "gossip/weights": gossip.weights,
    "gossip/matchings": gossip.matchings,
    "gossip/period": gossip.period,
    "gossip/exchange": gossip.exchange,
    "gossip/circulant": gossip.circulant,
    "cluster/placement": cluster.placement,
    "cluster/jobs": cluster.jobs,
    "cluster/joint": cluster.joint,
}
