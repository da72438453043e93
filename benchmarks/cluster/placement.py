"""What rules of schedulers lose on places: Kueue's best fit, Slurm's blocks and HiveD's cells, gang by gang.

The optimum is proven for every cluster that counts; where a rule finds no place for a gang, it does not count for it.
"""

from statistics import fmean

import ddlopt
from benchmarks.harness import Benchmark, Option
from ddlopt.instances.generators import generate

RULES = ("kueue", "kueue:order=largest", "slurm-block", "hived-cells", "gang-exchange")
KINDS = (
    ("pairs", {"asked": 0.9}),
    ("pairs", {"asked": 1.0}),
    ("crossings", {"asked": 1.0}),
    ("crossings", {"asked": 1.0, "sizes": "powers"}),
    ("max_gangs", {"asked": 1.4, "bound_to_rack": 0.7, "bound_to_block": 0.3}),
)


def rules(asked):
    """Drawn clusters of 12 racks: the mean optimum, and how far each rule is from it in the mean."""
    for objective, options in KINDS:
        best, lost = [], {rule: [] for rule in RULES}
        for seed in range(asked.seeds):
            instance = generate("cluster", "placement", seed, objective=objective, **options)
            exact = ddlopt.solve(instance, time_limit=asked.time_limit, gap=0)
            if exact.status != "optimal":
                continue
            best.append(exact.objective)
            for rule in RULES:
                found = ddlopt.solve(instance, rule).objective
                if found is not None and exact.objective:
                    lost[rule].append(abs(found - exact.objective) / exact.objective)
        told = ", ".join(f"{name} {value}" for name, value in options.items())
        yield {
            "objective": f"{objective} ({told})",
            "proven": f"{len(best)} of {asked.seeds}",
            "mean optimum": f"{fmean(best):.1f}" if best else "-",
            **{rule: f"{fmean(each):.1%} ({len(each)})" if each else "-" for rule, each in lost.items()},
        }


BENCH = Benchmark(rules, seeds=Option(30, quick=2), time_limit=Option(60.0, quick=10.0))
