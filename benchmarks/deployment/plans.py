"""Plans on TAG's test-bed: how far each method is from data parallelism, from our search and from the bound.

A row a network: seconds of a step with data parallelism, and how many times as fast the plans of other methods are, the
median over seeds; the last columns are the certified bound (without a solver, and by the program within its time) as
such a factor: no plan can be faster. ``tag`` has its 800 playouts, ``tag x25`` has 20 000, more evaluations than
``mcmc``.
"""

import statistics

from benchmarks.harness import Benchmark, Option, solved
from ddlopt.instances import load
from ddlopt.instances.library.deployment.plan import NETWORKS
from ddlopt.models.deployment import bound
from ddlopt.solvers import catalogue
from ddlopt.solvers.deployment.plan.tag import Tag

METHODS = ("data-parallel:split=speed", "heft", "m-etf", "m-sct", "tag", "tag x25", "mcmc", "plan-search")
PRIORS = tuple(f"{name}{more}" for more in ("", " x6.25") for name in ("tag", "tag:prior=bound", "tag:prior=learned"))
FACTORS = (
    *("sufficient-factors:search=data-parallel", "tag", "sufficient-factors:search=tag"),
    *("plan-search", "sufficient-factors:search=plan-search"),
)
DRAWN = ("vgg19-drawn-s1", "resnet101-drawn-s2", "bert-large-drawn-s3")


def method(name: str):
    """A method of the catalogue, or TAG with more playouts."""
    base, _, times = name.partition(" x")
    if not times:
        return catalogue.method(name, "deployment")
    return Tag(base.partition("prior=")[2] or "uniform", playouts=int(800 * float(times)))


def step_s(instance, name, asked, seeds):
    """Median time of a step over seeds; None without a plan."""
    results = [solved(method(name), instance, asked.limits, seed) for seed in range(seeds)]
    times = [result.objective for result in results if result is not None and result.checked]
    return statistics.median(times) if times else None


def rows(asked, methods, names, by_program=True):
    for instance in map(load, names):
        base = step_s(instance, "data-parallel", asked, 1)
        found = {each: step_s(instance, each, asked, asked.seeds) for each in methods[: asked.methods]}
        found["bound"] = bound(instance)
        if by_program:
            found["bound of program"] = solved("makespan-bound", instance, asked.limits).bound
        factors = {name: None if value is None else f"{base / value:.2f}" for name, value in found.items()}
        yield {"network": instance.name, "data parallel": f"{1e3 * base:.2f} ms", **factors}


def testbed(asked):
    """TAG's test-bed."""
    yield from rows(asked, METHODS, [f"deployment/{network}-testbed" for network in asked.networks or NETWORKS])


def two_machines(asked):
    """Two machines with a V100 each, batch 6, with sufficient factors."""
    networks = asked.networks or ("vgg19", "transformer-base", "bert-small")
    yield from rows(asked, FACTORS, [f"deployment/{network}-two-machines" for network in networks])


def priors(asked):
    """The tree search with different priors, at 800 and at 5000 playouts, also on drawn devices."""
    names = [f"deployment/{network}-testbed" for network in asked.networks or NETWORKS]
    names += [] if asked.networks else [f"deployment/{name}" for name in DRAWN]
    yield from rows(asked, PRIORS, names, by_program=False)


BENCH = Benchmark(
    testbed, two_machines, priors,
    networks=Option([], "by name; those of the documentation by default", quick=["vgg19"], type=str),
    methods=Option(len(METHODS), "how many methods of a table", quick=5),
    time_limit=Option(30.0, "seconds for each method", quick=0.5),
    seeds=Option(3, quick=1),
)  # fmt: skip
