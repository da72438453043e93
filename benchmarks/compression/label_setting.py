"""Label setting on timelines: growth with gradients and options, and the ratio to HiGHS on the exact model.

Random timelines of ``generate("random", …)``; both methods on the same instance, one after the other in turn, model
building included: ``labels`` of all passes and of one gradient at most, ``parts`` into which the problem was divided; a
gap behind the seconds where the time was up.
"""

from benchmarks.harness import Benchmark, Option, paired
from ddlopt.frontier.compression.timeline.label_setting.label_setting import LabelSetting
from ddlopt.instances.generators.compression import generate
from ddlopt.models.compression.timeline.formulations.overlap_timeline import OverlapTimeline
from ddlopt.solvers.contracts import Result, compiled
from ddlopt.solvers.exact import Exact

SIZES = ((50, 12), (100, 12), (200, 12), (391, 4), (391, 8), (391, 12), (800, 12))
"""Gradients, options."""
KINDS = {
    "time": {},
    "time within error": {"error_budget_part": 0.3},
    "error within time": {"goal": "error"},
    "fusion up to 25 MB": {"fusion": True, "largest_bucket_bytes": 25e6},
    "fusion within error": {"fusion": True, "largest_bucket_bytes": 25e6, "error_budget_part": 0.3},
}
LARGEST_FUSED = 200
"""Gradients of kinds with fusion."""


def seconds(result: Result, gap: float) -> str:
    reached = result.gap is not None and result.gap <= max(gap, 1e-10)
    return f"{result.runtime_s:.2f}" + ("" if reached else " (none)" if result.gap is None else f" ({result.gap:.0e})")


def growth(asked):
    """A row for each size and kind."""
    ours, model = LabelSetting(), Exact("overlap-timeline", "compression", OverlapTimeline())
    for kind in asked.kinds:
        most = min(asked.largest, LARGEST_FUSED) if kind.startswith("fusion") else asked.largest
        for gradients, options in [size for size in SIZES if size[0] <= most]:
            instance = generate("random", asked.seed, gradients=gradients, options=options, **KINDS[kind])
            compiled(ours, instance)
            solves = {each.name: lambda m=each, i=instance: m.solve(i, asked.limits) for each in (ours, model)}
            results = {name: runs[-1][0] for name, runs in paired(asked.repeat, solves).items()}
            labels, highs = results.values()
            yield {
                "kind": kind, "gradients x options": f"{gradients} x {options}",
                "labels": f"{labels.details['labels']:.0f}", "at once": f"{labels.details['labels_of_a_gradient']:.0f}",
                "parts": f"{labels.details['parts']:.0f}", "label setting s": seconds(labels, asked.gap),
                "HiGHS s": seconds(highs, asked.gap), "ratio": f"{highs.runtime_s / labels.runtime_s:.1f}",
            }  # fmt: skip


BENCH = Benchmark(
    growth,
    time_limit=Option(30.0, quick=2.0),
    gap=Option(1e-9),
    seed=Option(1),
    kinds=Option(list(KINDS), choices=KINDS),
    largest=Option(391, "most gradients", quick=50),
    repeat=Option(1),
)
