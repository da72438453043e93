"""Plans on TAG's test-bed: how far each method is from data parallelism, from our search and from the bound.

A row a network: seconds of a step with data parallelism, and how many times as fast the plans of other methods are;
the last columns are the certified bound (without a solver, and by the program within its time) as such a factor: no
plan can be faster. ``tag`` has its 800 playouts, ``tag x25`` has 20 000, more evaluations than ``mcmc``.
With ``--priors`` it is the tree search with different priors, at 800 and at 5000 playouts, also on drawn devices.

    python benchmarks/deployment.py [--networks vgg19 …] [--seconds 30] [--seeds 3] [--two-machines | --priors]
"""

import argparse
import statistics

from rich.console import Console
from rich.table import Table

from ddlopt.instances import load
from ddlopt.instances.library.deployment_plan import NETWORKS
from ddlopt.models.deployment.bounds import bound
from ddlopt.solvers import catalogue
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.deployment.tag import Tag

METHODS = ("data-parallel-speed", "heft", "m-etf", "m-sct", "tag", "tag x25", "mcmc", "plan-search")
PRIORS = tuple(f"{name}{more}" for more in ("", " x6.25") for name in ("tag", "tag-bound", "tag-learned"))
FACTORS = ("data-parallel-sfb", "tag", "tag-sfb", "plan-search", "plan-search-sfb")


def method(name):
    """A method of the catalogue, or TAG with more playouts."""
    base, _, times = name.partition(" x")
    if not times:
        return catalogue.method(name, "deployment")
    return Tag(base.removeprefix("tag").removeprefix("-") or "uniform", playouts=int(800 * float(times)))


def step_s(instance, name, seconds, seeds):
    """Median time of a step over seeds; None without a plan."""
    results = [method(name).solve(instance, Limits(seconds), seed) for seed in range(seeds)]
    times = [result.objective for result in results if result.checked]
    return statistics.median(times) if times else None


def bound_by_program(instance, seconds):
    """The bound of the program within its time."""
    result = catalogue.method("makespan-bound", "deployment").solve(instance, Limits(seconds))
    return result.bound


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--networks", nargs="+")
    parser.add_argument("--seconds", type=float, default=30.0, help="for each method")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--two-machines", action="store_true", help="two machines, batch 6, with sufficient factors")
    parser.add_argument("--priors", action="store_true", help="priors of the tree search")
    options = parser.parse_args()
    networks = options.networks or (("vgg19", "transformer-base", "bert-small") if options.two_machines else NETWORKS)
    methods = FACTORS if options.two_machines else PRIORS if options.priors else METHODS
    place = "two-machines" if options.two_machines else "testbed"
    names = [f"deployment/{network}-{place}" for network in networks]
    if options.priors and not options.networks:
        names += [f"deployment/{name}" for name in ("vgg19-drawn-s1", "resnet101-drawn-s2", "bert-large-drawn-s3")]
    known = catalogue.method_names("deployment")
    bounds = ("bound",) if options.priors else ("bound", "bound of program")
    table = Table("network", "data parallel", *methods, *bounds)
    for name in names:
        instance = load(name)
        base = step_s(instance, "data-parallel", options.seconds, 1)
        cells = []
        for each in methods:
            time_s = step_s(instance, each, options.seconds, options.seeds)
            cells.append("-" if time_s is None else f"{base / time_s:.2f}")
        best = [bound(instance)]
        if "makespan-bound" in known and not options.priors:
            best.append(bound_by_program(instance, options.seconds))
        cells += ["-" if value is None else f"{base / value:.2f}" for value in best]
        table.add_row(instance.name, f"{1e3 * base:.2f} ms", *cells)
    Console(width=200).print(table)


if __name__ == "__main__":
    main()
