"""The model of one slot with places and rings: size, time to build, time to prove, server by server and counted.

In "star-mixed" every job has a bandwidth of its own, so that equal servers cannot be counted. "relaxation" is the LP
optimum over the best solution, less 1. All times are wall-clock seconds.
"""

import numpy as np

from benchmarks.harness import Benchmark, Option, timed
from ddlopt.analysis import tables
from ddlopt.frontier.scheduling.formulations.server_patterns.counted_slot import CountedSlot
from ddlopt.instances.generators import generate
from ddlopt.models.scheduling import Network, SchedulingInstance
from ddlopt.models.scheduling.formulations.slot_embedding.slot_embedding import SlotEmbedding
from ddlopt.solvers.exact import Exact, build_model, lp_relaxation

SLOT = {"jobs": 80, "slots": 1, "servers": 20, "arrival_part": 0.0, "load": 3.0}
CASES = {
    "star-loose": ("contended", SLOT | {"gpus_per_server": 8, "rings_per_nic": 8.0}),
    "star-tight": ("contended", SLOT | {"gpus_per_server": 8, "rings_per_nic": 2.0, "widest": 12}),
    "star-rigid": ("contended", SLOT | {"gpus_per_server": 8, "rings_per_nic": 2.0, "widest": 12, "rigid": True}),
    "star-20x4": ("contended", SLOT | {"gpus_per_server": 4}),
    "star-20x4-rigid": ("contended", SLOT | {"gpus_per_server": 4, "rigid": True}),
    "star-mixed": ("contended", SLOT | {"gpus_per_server": 8, "rings_per_nic": 2.0, "widest": 12, "rigid": True}),
    "leaf-spine": ("leaf-spine", SLOT | {"gpus_per_server": 8, "rack_servers": 5, "widest": 12}),
    "leaf-spine-rigid": ("leaf-spine", SLOT | {"gpus_per_server": 8, "rack_servers": 5, "widest": 12, "rigid": True}),
    "random-graph": ("random-network", SLOT | {"jobs": 40, "servers": 12, "gpus_per_server": 4, "switches": 6,
                                               "widest": 8, "rings_per_trunk": 2.0}),
    "torus-3x4": ("random-network", SLOT | {"jobs": 40, "servers": 12, "gpus_per_server": 4, "widest": 8}),
}  # fmt: skip


def torus(rows: int, columns: int, rate: float) -> Network:
    """Servers joined with their four neighbours, without switches."""
    links = []
    for i in range(rows):
        for j in range(columns):
            here = i * columns + j
            links += [(here, (i + 1) % rows * columns + j, rate), (here, i * columns + (j + 1) % columns, rate)]
    return Network(links=tuple(links))


def instance_of(case: str, seed: int) -> SchedulingInstance:
    """The instance of a case."""
    kind, options = CASES[case]
    instance = generate("scheduling", kind, seed, **options)
    fields = {name: getattr(instance, name) for name in SchedulingInstance.model_fields}
    rate = instance.jobs[0].timing.bandwidth_bytes_per_s
    if case == "torus-3x4":
        fields["network"] = torus(3, 4, rate)
    if case == "star-mixed":
        factors = np.random.default_rng(seed).uniform(0.4, 1.6, len(instance.jobs)).round(3)
        timings = [
            job.timing.model_copy(update={"bandwidth_bytes_per_s": float(rate * factor)})
            for job, factor in zip(instance.jobs, factors, strict=True)
        ]
        pairs = zip(instance.jobs, timings, strict=True)
        fields["jobs"] = tuple(job.model_copy(update={"timing": timing}) for job, timing in pairs)
    return SchedulingInstance(**fields)


def proofs(asked):
    """A row for each case, seed and formulation."""
    for case in asked.cases:
        for seed in range(1, asked.seeds + 1):
            instance = instance_of(case, seed)
            for name, formulation in (("slot-embedding", SlotEmbedding()), ("counted-slot", CountedSlot())):
                _, building = timed(build_model, "scheduling", formulation, instance)
                result = Exact(name, "scheduling", formulation).solve(instance, asked.limits)
                relaxed = lp_relaxation(formulation, instance).objective
                best = result.objective or 0.0
                yield {
                    "case": case, "seed": seed, "method": name, "rows": f"{result.details['rows']:.0f}",
                    "columns": f"{result.details['columns']:.0f}", "build s": building.wall_s,
                    "total s": f"{result.runtime_s:.1f}", "status": tables.status_text(result),
                    "gap": tables.gap_text(result.gap),
                    "relaxation": f"{max(0.0, relaxed / best - 1):.2%}" if best else "",
                }  # fmt: skip


BENCH = Benchmark(
    proofs,
    cases=Option(list(CASES), choices=CASES, quick=["star-20x4"]),
    seeds=Option(1, "instances of each case"),
    time_limit=Option(60.0, quick=5.0),
    threads=Option(2),
)
