"""Best known solutions: run methods on bundled instances and keep what is better than the stored solution.

``python -m ddlopt.analysis.records`` does so for the whole library; run it in a checkout, where the library can be
written to.
"""

import argparse
from collections.abc import Iterable, Iterator, Sequence

from ddlopt import instances
from ddlopt.analysis.compare import attempt
from ddlopt.analysis.tables import gap_text, time_text
from ddlopt.models.catalogue import family
from ddlopt.models.contracts import Instance
from ddlopt.solvers import catalogue
from ddlopt.solvers.contracts import Limits, Result


def improve(names: Iterable[str], methods: Sequence[str], limits: Limits, seeds: Iterable[int]) -> Iterator[Result]:
    """Solve each instance with each method and seed, and yield the results that became the best known.

    An instance whose stored solution meets its combinatorial bound is left alone.
    """
    seeds = tuple(seeds)
    for name in names:
        instance = instances.load(name)
        for method in methods:
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
    bound = family(instance.family).lower_bound(instance)
    objective = family(instance.family).evaluate(instance, stored).objective
    return bound is not None and objective is not None and float(objective) <= bound * (1 + 1e-12)


def main() -> None:
    """Command line: instances, methods, seeds, seconds for each solve."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=instances.names(), help="instances (default: the whole library)")
    parser.add_argument("--methods", default="topology-finder,link-exchange", help="comma-separated")
    parser.add_argument("--seeds", type=int, default=1, help="how many seeds, from 0")
    parser.add_argument("--time-limit", type=float, default=60.0, help="seconds for each solve")
    options = parser.parse_args()
    limits = Limits(time_s=options.time_limit)
    for result in improve(options.names, options.methods.split(","), limits, range(options.seeds)):
        print(
            f"{result.instance}: {time_text(result.objective)} by {result.method}, "
            f"seed {result.provenance['seed']}, gap {gap_text(result.gap)}",
            flush=True,
        )


if __name__ == "__main__":
    main()
