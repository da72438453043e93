"""Options on the timeline: the model with HiGHS against the two methods of ours that prove optima without it.

    python benchmarks/timeline.py --time-limit 60

Instances of kind ``random`` on 8 nodes of 8 GPUs, without an error budget, with one, and with fusion. Times are of the
whole solve, model building included, in processor seconds; ``x`` is how many times longer the model takes than the
faster of the others, ``growth`` the exponent of its time in the number of gradients since the line before.
"""

import argparse
import math
import time

from ddlopt.instances.generators.compression import generate
from ddlopt.models.compression import CompressionInstance
from ddlopt.models.compression.overlap_timeline import OverlapTimeline
from ddlopt.solvers.compression.label_setting import LabelSetting
from ddlopt.solvers.compression.priced_choices import PricedChoices
from ddlopt.solvers.contracts import Limits, Method
from ddlopt.solvers.exact import Exact, build_model, lp_relaxation

SIZES = {
    "free": ((50, 4), (100, 4), (200, 4), (391, 4), (50, 12), (100, 12), (200, 12), (391, 12)),
    "budget": ((50, 4), (100, 4), (200, 4), (391, 4), (50, 12), (100, 12), (200, 12), (391, 12)),
    "fusion": ((20, 4), (40, 4), (80, 4)),
}


def drawn(kind: str, gradients: int, options: int, seed: int) -> CompressionInstance:
    settings = {"free": {}, "budget": {"error_budget_part": 0.3}, "fusion": {"fusion": True}}[kind]
    sizes = {"gradients": gradients, "options": options, "gpus_per_node": 8}
    return generate("random", seed, name=f"{kind}-{gradients}x{options}", **sizes, **settings)


def timed(method: Method, instance: CompressionInstance, limits: Limits) -> tuple[float, float, str]:
    """Processor seconds, objective, and a cell of the table."""
    began = time.process_time()
    result = method.solve(instance, limits)
    used = time.process_time() - began
    gap = "–" if result.gap is None else f"{result.gap:.0e}"
    return (
        used,
        float(result.objective or math.nan),
        f"{used:7.2f} s {gap} {'*' if result.status == 'optimal' else ' '}",
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--time-limit", type=float, default=60.0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kinds", nargs="+", default=list(SIZES), choices=list(SIZES))
    options = parser.parse_args()
    limits = Limits(time_s=options.time_limit, threads=options.threads)
    model = Exact("overlap-timeline", "compression", OverlapTimeline())
    others = {"label-setting": LabelSetting(), "priced-choices": PricedChoices()}
    for other in others.values():  # kernels are compiled once
        other.solve(drawn("budget", 5, 3, 0), limits)
    print(f"threads {options.threads}, {options.time_limit:g} s each, seed {options.seed}; gap reached, * within 1e-4")
    headings = ["kind, n x m", "messages", "built", "relaxation", "overlap-timeline", *others, "x", "growth"]
    print(" | ".join(f"{heading:>18}" for heading in headings))
    for kind in options.kinds:
        before: tuple[int, float] | None = None
        for gradients, count in SIZES[kind]:
            instance = drawn(kind, gradients, count, options.seed)
            began = time.process_time()
            built = build_model("compression", OverlapTimeline(), instance)
            built_s = time.process_time() - began
            relaxed = lp_relaxation(OverlapTimeline(), instance).objective
            model_s, best, cell = timed(model, instance, limits)
            found = [timed(other, instance, limits) for other in others.values()]
            best = min(best, *(objective for _, objective, _ in found))
            growth = "–"
            if before is not None and before[0] < gradients:
                growth = f"{math.log(model_s / before[1]) / math.log(gradients / before[0]):.1f}"
            before = gradients, model_s
            cells = [f"{kind}, {gradients} x {count}", str(len(built.compression.MESSAGES)), f"{built_s:.2f} s"]
            cells += [f"-{100 * (1 - relaxed / best):.4f} %", cell, *(text for _, _, text in found)]
            cells += [f"{model_s / min(used for used, _, _ in found):.1f}", growth]
            print(" | ".join(f"{text:>18}" for text in cells), flush=True)


if __name__ == "__main__":
    main()
