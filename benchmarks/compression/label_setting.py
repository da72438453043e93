"""Label setting on timelines: growth with gradients and options, and the ratio to HiGHS on the exact model.

    python benchmarks/label_setting.py --time-limit 30 --gap 1e-9

Random timelines of ``generate("random", …)``. Every row has both methods on the same instance in the same run, model
building included: ``labels`` of all passes and of one gradient at most, ``parts`` into which the problem was divided;
a gap behind the seconds where the time was up; the last column is HiGHS' seconds over those of label setting.
"""

import argparse
import os

from ddlopt.instances.generators.compression import generate
from ddlopt.models.compression.overlap_timeline import OverlapTimeline
from ddlopt.solvers.compression.label_setting import LabelSetting
from ddlopt.solvers.contracts import Limits, Result
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
SMALLER = {"fusion": 200}
"""Most gradients of kinds that begin so."""


def seconds(result: Result, gap: float) -> str:
    reached = result.gap is not None and result.gap <= max(gap, 1e-10)
    rest = "" if reached else " (none)" if result.gap is None else f" ({result.gap:.0e})"
    return f"{result.runtime_s:.2f}{rest}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--time-limit", type=float, default=30.0)
    parser.add_argument("--gap", type=float, default=1e-9)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kinds", nargs="*", default=list(KINDS), choices=list(KINDS))
    parser.add_argument("--largest", type=int, default=391, help="most gradients")
    options = parser.parse_args()
    limits = Limits(time_s=options.time_limit, gap=options.gap)
    print(f"{os.cpu_count()} cores, 1 thread, {options.time_limit:g} s each, gap {options.gap:g}, seed {options.seed}")
    model = Exact("overlap-timeline", "compression", OverlapTimeline())
    for kind in KINDS:  # compile
        LabelSetting().solve(generate("random", 0, gradients=12, options=4, **KINDS[kind]), Limits())
    headings = ["kind", "gradients x options", "labels", "at once", "parts", "label setting s", "HiGHS s", "ratio"]
    print(" | ".join(f"{heading:>19}" for heading in headings))
    for kind in options.kinds:
        most = min([options.largest, *(size for begin, size in SMALLER.items() if kind.startswith(begin))])
        for gradients, count in SIZES:
            if gradients > most:
                continue
            instance = generate("random", options.seed, gradients=gradients, options=count, **KINDS[kind])
            ours, highs = LabelSetting().solve(instance, limits), model.solve(instance, limits)
            figures = [f"{ours.details[each]:.0f}" for each in ("labels", "labels_of_a_gradient", "parts")]
            times = [seconds(ours, options.gap), seconds(highs, options.gap)]
            ratio = f"{highs.runtime_s / ours.runtime_s:.1f}"
            cells = [kind, f"{gradients} x {count}", *figures, *times, ratio]
            print(" | ".join(f"{cell:>19}" for cell in cells), flush=True)


if __name__ == "__main__":
    main()
