"""The bundled co-design instances: training jobs of TopoOpt's evaluation at several sizes, and tiny ones."""

from collections.abc import Iterator
from typing import Any

from ddlopt.instances.generators.codesign import generate
from ddlopt.instances.generators.codesign.jobs import network_job
from ddlopt.instances.workloads.networks import published as networks
from ddlopt.instances.workloads.training import Workload
from ddlopt.models.codesign import CodesignInstance

JOBS = ("dlrm", "bert", "candle", "ncf", "resnet50", "vgg16")
SIZES = ((12, 4), (16, 4), (32, 4), (64, 4), (128, 4), (128, 8))
"""Servers and degree."""
DUPLEX = (("bert", "dlrm", "ncf"), (16, 32, 128))
"""Jobs and servers with duplex links, as TopoOpt's released code has them."""


def instances() -> Iterator[CodesignInstance]:
    """All bundled instances of the family."""
    for job in JOBS:
        for servers, degree in SIZES:
            placed: dict[str, Any] = {"owners": "all"} if (job, servers) == ("dlrm", 12) else {}
            yield generate("job", job=job, servers=servers, degree=degree, **placed)
    for job in DUPLEX[0]:
        for servers in DUPLEX[1]:
            made = generate("job", job=job, servers=servers, degree=4, optics="duplex")
            yield made.model_copy(update={"name": f"{job}-n{servers}-d4-duplex"})
    menu: dict[str, Any] = {"compressors": ("fp16", "random_k:0.1", "random_k:0.01"), "error_budget": 0.25}
    yield generate("job", job="vgg16", servers=16, degree=4, name="vgg16-n16-d4-compressed", **menu)
    yield from tiny()


def tiny() -> Iterator[CodesignInstance]:
    """Jobs small enough for brute force that together use every feature of the family."""
    dlrm = networks.dlrm(2, 10**6, 64, 8, [256, 64], [128, 128, 1], 256)
    candle = networks.candle([128], [256, 1], 1024)
    ncf = networks.ncf(1, 10**4, 32, 64, 8, [256, 256], 512)
    halves: dict[str, Any] = {"gigabit_per_s": 50, "groups": (2,), "subsets": (2,)}
    tables: dict[str, Any] = {"gigabit_per_s": 100, "groups": (2,), "subsets": ()}
    thirds: dict[str, Any] = {"gigabit_per_s": 50, "groups": (2, 3), "subsets": (3, 2)}
    yield _tiny("tiny-tables-n4-d2", dlrm, owners="all", **tables)
    yield _tiny("tiny-memory-n4-d2", dlrm, memory_gigabytes=0.15, **tables)
    yield _tiny("tiny-overlap-n4-d2", candle, fabric={"overlap": "full"}, **halves | {"gigabit_per_s": 20})
    lossy: dict[str, Any] = {"compressors": ("fp16", "random_k:0.25"), "error_budget": 0.4}
    yield _tiny("tiny-compressed-n4-d2", candle, **halves | lossy | {"gigabit_per_s": 5})
    yield _tiny("tiny-duplex-n4-d3", candle, fabric={"optics": "duplex"}, **halves)
    yield _tiny("tiny-cosets-n6-d2", candle, **thirds)
    yield _tiny("tiny-factors-n6-d3", ncf, **thirds | {"subsets": ()})
    drawn: dict[str, Any] = {
        "servers": 5,
        "traffic": 0.5,
        "measured": 0.5,
        "memory_slack": 1.0,
        "parallel_links": False,
    }
    yield generate("random", 1, name="tiny-drawn-n5-d2", **drawn)


def _tiny(name: str, workload: Workload, **options: Any) -> CodesignInstance:
    servers, degree = (int(part[1:]) for part in name.split("-")[-2:])
    source = "made for exact proofs: a small network with TopoOpt's wiring"
    made = network_job(workload, source, servers=servers, degree=degree, **options)
    return made.model_copy(update={"name": name})
