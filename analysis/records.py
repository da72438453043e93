"""Best known solutions: run methods on bundled instances and keep what is better than the stored solution.

``python -m ddlopt.analysis.records`` does so for the whole library; run it in a checkout, where the library can be
written to.
"""

import argparse
from collections.abc import Iterable, Iterator, Sequence

from ddlopt import instances
from ddlopt.analysis.compare import attempt
from ddlopt.analysis.tables import gap_text, objective_text
from ddlopt.models.catalogue import family
from ddlopt.models.contracts import Instance
from ddlopt.solvers import catalogue
from ddlopt.solvers.contracts import Limits, Result, relative_gap


def improve(
    names: Iterable[str], methods: Sequence[str] | None, limits: Limits, seeds: Iterable[int]
) -> Iterator[Result]:
    """Solve each instance with each method and seed, and yield the results that became the best known.

    Without ``methods`` every heuristic of the instance's family is asked. An instance whose stored solution meets its
    combinatorial bound is left alone.
    """
    seeds = tuple(seeds)
    for name in names:
        instance = instances.load(name)
        heuristics = (entry.name for entry in catalogue.entries(instance.family) if entry.kind == "heuristic")
        for method in methods or heuristics:
            for seed in seeds:
                if not is_settled(name, instance):
                    result = attempt(instance, catalogue.method(method, instance.family), limits, seed)
                    if result.checked and result.solution is not None and instances.store_best(name, result.solution):
                        yield result


def is_settled(name: str, instance: Instance) -> bool:
    """Whether the stored solution meets the combinatorial bound of the instance."""
    stored = instances.best(name)
    if stored is None:
        return False
    objective = family(instance.family).evaluate(instance, stored).objective
    bound = family(instance.family).bound(instance)
    gap = relative_gap(None if objective is None else float(objective), bound, instance.sense)
    return gap is not None and gap <= 1e-12


def main() -> None:
    """Command line: instances, methods, seeds, seconds for each solve."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=instances.names(), help="instances (default: the whole library)")
    parser.add_argument("--methods", help="comma-separated (default: every heuristic of the family)")
    parser.add_argument("--seeds", type=int, default=1, help="how many seeds, from 0")
    parser.add_argument("--time-limit", type=float, default=60.0, help="seconds for each solve")
    options = parser.parse_args()
    limits = Limits(time_s=options.time_limit)
    methods = options.methods.split(",") if options.methods else None
    for result in improve(options.names, methods, limits, range(options.seeds)):
        print(
            f"{result.instance}: {objective_text(result.objective, result.unit)} by {result.method}, "
            f"seed {result.provenance['seed']}, gap {gap_text(result.gap)}",
            flush=True,
        )


if __name__ == "__main__":
    main()
