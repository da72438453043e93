"""Instances that nobody has seen: ten of every problem from a seed, their kinds and sizes drawn from stated ranges.

``drawn:7`` means all of seed 7, ``drawn:7/gossip/matchings`` those of a problem, ``drawn:7/gossip/matchings/3`` one.
The same seed makes the same instances on every machine. :data:`RANGES` states what is drawn; a range is never changed
once it is released, since scores of a seed would mean something else.
"""

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from ddlopt.instances.generators import generate
from ddlopt.models.catalogue import problem as problem_named
from ddlopt.models.catalogue import problems
from ddlopt.models.contracts import Instance
from ddlopt.models.errors import InstanceError, OptionError, UnknownNameError

PREFIX = "drawn:"
COUNT = 10
"""Instances of each problem."""
_TRIES = 50
"""Draws for one instance: some sizes do not go together."""


@dataclass(frozen=True)
class Between:
    """A whole number from ``least`` to ``most``, all equally likely."""

    least: int
    most: int

    def draw(self, source: random.Random) -> int:
        """One of them."""
        return source.randint(self.least, self.most)


@dataclass(frozen=True)
class OneOf:
    """One of several values, all equally likely."""

    values: tuple[Any, ...]

    def draw(self, source: random.Random) -> Any:
        """One of them."""
        return source.choice(self.values)


@dataclass(frozen=True)
class Drawn:
    """A kind of generated instance.

    Parameters
    ----------
    kind : str
        Of the family's generator.
    options : dict
        What is given to it; a :class:`Between` or :class:`OneOf` is drawn.
    """

    kind: str
    options: Mapping[str, Any] = field(default_factory=dict)

    def made(self, family: str, source: random.Random, name: str) -> Instance:
        """An instance; the generator's own seed is drawn, too."""
        options = {key: value.draw(source) if isinstance(value, Between | OneOf) else value
                   for key, value in self.options.items()}  # fmt: skip
        return generate(family, self.kind, source.randrange(2**31), name=name, **options)


def _of(kind: str, **options: Any) -> Drawn:
    return Drawn(kind, {key: OneOf(value) if isinstance(value, tuple) else value for key, value in options.items()})


_FABRIC: dict[str, Any] = {
    **{"servers": Between(4, 16), "degree": Between(2, 4), "optics": ("one_way", "one_way", "duplex")},
    "link_bandwidth_bytes_per_s": 1.25e10,
}
_JOB: dict[str, Any] = {"servers": Between(8, 128), "degree": (4, 8), "optics": ("one_way", "one_way", "duplex")}
_GRAPH: dict[str, Any] = {
    **{"jobs": Between(2, 8), "workers": Between(2, 8), "goal": ("congestion", "utilization", "rates")},
    **{"placement": ("random", "random", "clustered"), "slots": Between(1, 4)},
}

RANGES: Mapping[str, tuple[Drawn, ...]] = {
    "topology": (
        _of("all-to-all", **_FABRIC),
        _of("random", density=(0.2, 0.5, 1.0), **_FABRIC),
        _of("hybrid", density=(0.1, 0.25, 0.5), **_FABRIC | {"servers": (8, 12, 16), "group_size": (2, 4)}),
        *(_of(job, **_JOB) for job in ("dlrm", "bert", "candle", "ncf", "vgg16", "resnet50")),
        _of("permutation", **_FABRIC),
    ),
    "topology/collective": (
        _of("collective", network=("dgx-a100", "mi250"), boxes=Between(1, 3),
            collective=("all-gather", "reduce-scatter", "all-reduce", "all-to-all")),
        _of("collective", network="unequal", accelerators=Between(4, 16),
            collective=("all-gather", "all-reduce", "broadcast", "all-to-all")),
        _of("collective", network="random", accelerators=Between(6, 24), degree=Between(2, 4),
            collective=("all-gather", "all-reduce", "all-to-all")),
    ),
    "scheduling": (
        _of("elastic", jobs=Between(10, 200), slots=Between(10, 50), gpus=(16, 32, 64),
            utility=("logarithmic", "capped"), deadline_part=(0.0, 0.5)),
        _of("contended", jobs=Between(10, 40), slots=Between(6, 12), servers=Between(3, 8)),
        _of("leaf-spine", jobs=Between(10, 40), slots=Between(6, 12), servers=(8, 16)),
        _of("bursty", jobs=Between(20, 80), slots=Between(12, 36), gpus=(16, 32)),
        _of("elastic", jobs=Between(10, 80), slots=Between(10, 30), gpus=(16, 32), rigid=True),
        _of("random-network", jobs=Between(8, 24), slots=Between(4, 10), servers=Between(4, 10)),
        _of("sjf-bco", jobs=Between(20, 80), servers=Between(5, 20), contention=(False, True)),
    ),
    "codesign": (
        _of("job", job=("dlrm", "candle", "ncf", "vgg16", "resnet50", "bert"), servers=(8, 12, 16, 20, 24, 32),
            degree=4),
        _of("random", servers=Between(6, 32), degree=Between(2, 4), layers=Between(4, 12), strategies=Between(2, 5),
            traffic=(0.0, 0.3), measured=(0.0, 0.3)),
    ),
    "compression/sfb": (
        _of("sfb-network", model=("vgg16", "vgg19", "resnet50", "bert-base", "gpt2", "transformer-base"),
            batch=(4, 8, 32), workers=(2, 4, 8, 16), network_gigabit_per_s=(10.0, 25.0, 100.0)),
        _of("sfb-random", operators=Between(30, 300), memory_part=(None, None, 0.5), compute_part=(None, None, 0.5)),
    ),
    "compression/timeline": (
        _of("network", model=("vgg16", "vgg19", "resnet50", "bert-base", "gpt2"), nodes=(2, 4, 8, 16),
            gpus_per_node=(1, 4, 8), network_gigabit_per_s=(10.0, 25.0, 100.0), error_budget_part=(None, 0.1, 0.3)),
        _of("random", gradients=Between(10, 100), options=Between(3, 8), error_budget_part=(None, 0.3)),
    ),
    "compression/levels": (
        _of("levels-network", model=("vgg16", "resnet50", "bert", "gpt2"), compressor=("powersgd", "top_k", "qsgd"),
            workers=(4, 8, 16), overlap=(True, True, False)),
        _of("levels-random", gradients=Between(10, 60), points=Between(5, 20), overlap=(True, False)),
    ),
    "compression/forward": (
        _of("forward-network", model=("vgg16", "resnet50", "bert-base"), nodes=(4, 8), error_budget_part=(None, 0.1)),
        _of("forward-random", gradients=Between(8, 40), options=Between(2, 4), error_budget_part=(None, 0.5)),
    ),
    "deployment/plan": (
        _of("random", groups=Between(4, 12), device_groups=Between(2, 3), skips=Between(0, 2),
            communication=(0.3, 1.0, 3.0), memory=(1.2, 2.0)),
    ),
    "deployment/partition": (
        _of("layered", nodes=Between(20, 120), accelerators=Between(2, 6), communication=(0.1, 0.3, 1.0),
            training=(False, True), contiguous=(False, True)),
        _of("layered", nodes=Between(10, 40), accelerators=Between(2, 3), goal="latency", communication=(0.1, 0.3)),
    ),
    "deployment/strategies": (
        _of("strategies", layers=Between(8, 60), kinds=Between(2, 5), layouts=Between(3, 8)),
        _of("strategies-tree", nodes=Between(20, 200), layouts=Between(3, 8), memory=(None, 0.3)),
    ),
    "deployment/pipeline": (
        _of("pipeline", layers=Between(8, 40), shape=("chain", "branches"), devices=(8, 16, 32, 64),
            micro_batches=(16, 64), memory=(0.4, 1.0), alike=(True, False)),
    ),
    "deployment/microbatches": (
        _of("microbatches", stages=Between(3, 6), micro_batches=Between(6, 24), objective=("span", "makespan"),
            memory=Between(3, 8)),
    ),
    "deployment/step": (
        _of("step", layers=(8, 16, 32), heads=(16, 32), experts=(0, 0, 8), global_batch=(64, 256), servers=(2, 4, 8),
            gpus_per_server=(4, 8), memory_gigabytes=(4.0, 8.0, 16.0), network_gigabit_per_s=(100.0, 400.0)),
    ),
    "aggregation/hot": (
        _of("hot-zipf", jobs=Between(1, 4), parameters=(500, 2000), workers=(4, 8), switches=Between(1, 4),
            racks=(False, True), memory=(0.02, 0.1)),
    ),
    "aggregation/registers": (
        _of("registers-zipf", parameters=Between(16, 80), arrays=Between(4, 12), goal=("packets", "collisions")),
    ),
    "aggregation/tree": (
        _of("tree-random", nodes=Between(20, 255), jobs=Between(1, 4), budget=Between(2, 10),
            loads=("uniform",), capable=(0.6, 1.0), goal=("utilization", "congestion")),
    ),
    "aggregation/graph": (
        _of("graph-random", switches=(6, 8, 10, 12, 16), degree=3, **_GRAPH),
        _of("leaf-spine", leaves=Between(3, 8), spines=Between(2, 4), **_GRAPH),
        _of("fat-tree", k=4, **_GRAPH),
        _of("torus", sides=((3, 3), (4, 4), (3, 5)), **_GRAPH),
    ),
    "aggregation/slots": (
        _of("slots", jobs=Between(4, 30), racks=Between(2, 6), spread=(0.0, 0.5), goal=("total", "slowest"),
            memory=(0.1, 0.25, 0.5), whole=(False, False, True)),
    ),
    "aggregation/table": (
        _of("table", shape=("integers", "mantissas", "random"), bits=Between(6, 10), goal=("sum", "max")),
    ),
    "cluster/placement": (
        _of("placement", blocks=Between(2, 4), racks=Between(2, 6), hosts=Between(4, 8), busy=(0.1, 0.3),
            asked=(0.7, 0.9, 1.0), objective=("pairs", "crossings"), sizes=("any", "powers")),
    ),
    "cluster/jobs": (
        _of("jobs", jobs=Between(3, 6), servers=(4, 8, 16), mode=("rigid", "rigid", "slots"),
            objective=("makespan", "weighted_completion", "weighted_tardiness"), spread=(0.0, 0.5)),
    ),
    "cluster/joint": (
        _of("joint", jobs=Between(3, 6), servers=(4, 8), spread=(0.0, 0.5),
            objective=("makespan", "weighted_completion", "weighted_tardiness")),
    ),
    "gossip/weights": (
        _of("weights", shape=("random", "geometric", "torus", "cycle"), nodes=(16, 36, 64, 100), degree=(6, 8)),
    ),
    "gossip/matchings": (
        _of("matchings", shape="random", nodes=Between(8, 16), degree=(3, 4), share=(0.3, 0.5, 0.7),
            activation=("independent", "independent", "single")),
    ),
    "gossip/period": (
        _of("period", workers=(4, 8, 16), ratio=(1.0, 4.0, 10.0), whole=(False, True)),
        _of("period", workers=(8, 16), ratio=(2.0, 8.0), shape="random", degree=4),
    ),
    "gossip/exchange": (
        _of("exchange-drift", steps=(200, 1000), width=(8, 16), noise=(0.5, 1.0), pull=(0.0, 0.1)),
    ),
    "gossip/circulant": (
        _of("circulant", nodes=(16, 36, 64, 81), degree=(3, 4, 6), goal=("gap",)),
    ),
}  # fmt: skip
"""By problem its kinds in turn, with what is drawn. New problems are added; what is here stays as it is."""


def names(pattern: str) -> tuple[str, ...]:
    """Names of single instances that ``drawn:SEED``, followed by a problem and a number or not, stands for.

    Raises
    ------
    UnknownNameError
        If the seed is no whole number, or there is nothing of the kind.
    """
    seed, _, rest = pattern.removeprefix(PREFIX).partition("/")
    if not (seed.isascii() and seed.isdigit()):
        raise UnknownNameError(f"'{pattern}': write drawn:SEED, with a whole number from 0 on as seed")
    every = tuple(f"{PREFIX}{int(seed)}/{path}/{number}" for path in problems() for number in range(1, COUNT + 1))
    found = tuple(each for each in every if _begins(each.partition("/")[2], rest))
    if not found:
        raise UnknownNameError(
            f"'{pattern}': there is no '{rest}'; write a problem, as deployment/plan, then a number from 1 to {COUNT}"
        )
    return found


def _begins(full: str, rest: str) -> bool:
    """Whether the parts of a name begin with those that are given; a family stands for its problems."""
    if rest in RANGES:
        return full.rpartition("/")[0] == rest
    asked = rest.split("/") if rest else []
    return full.split("/")[: len(asked)] == asked


def load(name: str) -> Instance:
    """The instance of a name such as ``drawn:7/topology/3``.

    Raises
    ------
    UnknownNameError
        If the name means none, or several.
    """
    meant = names(name)
    if len(meant) > 1:
        raise UnknownNameError(f"'{name}' means {len(meant)} instances; write one of them, such as {meant[0]}")
    return _load(meant[0])


@cache
def _load(name: str) -> Instance:
    seed, _, rest = name.removeprefix(PREFIX).partition("/")
    path, _, number = rest.rpartition("/")
    kinds = RANGES[path]
    kind = kinds[(int(number) - 1) % len(kinds)]
    for source in _sources(name):
        try:
            made = kind.made(path.partition("/")[0], source, name.removeprefix(PREFIX).replace("/", "-"))
        except (OptionError, InstanceError):
            continue
        assert isinstance(made, problem_named(path).instance), path
        return made
    raise OptionError(f"seed {seed} makes no instance {rest} in {_TRIES} draws")


def _sources(name: str) -> Iterator[random.Random]:
    return (random.Random(f"{name} {number}") for number in range(_TRIES))
