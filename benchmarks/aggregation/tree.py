"""Aggregation in trees: growth of the dynamic program, strategies beside the optimum, programs beside each other."""

import numpy as np

from benchmarks.harness import Benchmark, Option, clocked, solved
from ddlopt.instances.generators.aggregation import generate
from ddlopt.instances.library.aggregation.tree import instances
from ddlopt.models.aggregation import TreeInstance
from ddlopt.models.aggregation.tree.formulations.tree_aggregation import TreeAggregation
from ddlopt.models.aggregation.tree.formulations.tree_message_flow import TreeMessageFlow
from ddlopt.models.aggregation.tree.tables import tables
from ddlopt.solvers.aggregation.tree.congestion import TreeCongestion
from ddlopt.solvers.aggregation.tree.exact import TreeIntegerProgram
from ddlopt.solvers.aggregation.tree.greedy import TreeGreedy
from ddlopt.solvers.aggregation.tree.limits import TreeLimits
from ddlopt.solvers.aggregation.tree.prices import TreePrices
from ddlopt.solvers.aggregation.tree.soar import Soar, job_program
from ddlopt.solvers.aggregation.tree.strategies import Strategy
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.exact import Exact, lp_relaxation

SHAPES = ("complete", "random", "star", "deep", "caterpillar", "path")
STRATEGIES = ("none", "random", "top", "max", "level")


def shaped(shape: str, size: int, budget: int) -> TreeInstance:
    """A tree with messages everywhere and random rates."""
    rng = np.random.default_rng(size)
    half = size // 2
    above = {
        "complete": lambda v: (v - 1) // 2,
        "random": lambda v: int(rng.integers(0, v)),
        "star": lambda v: 0,
        "deep": lambda v: max(0, v - 1 - int(rng.geometric(0.2))),
        "caterpillar": lambda v: v - 1 if v <= half else v - half - 1,
        "path": lambda v: v - 1,
    }[shape]
    return TreeInstance.from_data(
        {
            "name": f"{shape}-n{size}",
            "parents": [None, *(above(v) for v in range(1, size))],
            "seconds_per_message": rng.uniform(0.5, 2.0, size).tolist(),
            "jobs": [{"name": "job", "loads": rng.integers(0, 10, size).tolist()}],
            "budget": budget,
        }
    )


def changed(tree: TreeInstance, **fields: object) -> TreeInstance:
    return TreeInstance.from_data(tree.model_dump() | fields)


def growth(asked):
    """Processor seconds of the whole solve by shape of the tree and number of switches."""
    limits = Limits(gap=1e-9)
    for shape in asked.shapes:
        row = {"tree": shape}
        for size in asked.sizes:
            tree = shaped(shape, size, asked.budget)
            found, spent = clocked(Soar(), tree, limits)
            row[f"{size} switches, s"] = f"{spent.processor_s:.2f}"
        other = clocked(TreeCongestion(), changed(tree, goal="congestion"), limits)[1]
        yield row | {"anchors": f"{found.details['depth']:.0f}", "congestion, s": f"{other.processor_s:.2f}"}


def strategies(asked):
    """Utilization relative to the optimum on complete binary trees, means over seeds, by budget k; what that saves."""
    methods = [*map(Strategy, STRATEGIES), TreeGreedy()]
    for loads in ("uniform", "power"):
        for rates in ("constant", "linear", "exponential"):
            for budget in asked.budgets:
                rows, saved = [], []
                for seed in range(asked.seeds):
                    options = {"levels": asked.levels, "loads": loads, "rates": rates, "budget": budget}
                    tree = generate("tree-complete", seed, **options)
                    best = Soar().solve(tree, Limits()).objective
                    values = [method.solve(tree, Limits(), seed).objective for method in methods]
                    rows.append([value / best for value in values])
                    saved.append(1 - best / values[0])
                means = dict(zip((method.name for method in methods), np.mean(rows, axis=0), strict=True))
                row = {"loads": loads, "rates": rates, "k": budget, "saved": f"{100 * np.mean(saved):.1f} %"}
                yield row | {name: f"{value:.3f}" for name, value in means.items()}


def programs(asked):
    """Integer programs and relaxations on random trees, and how often the methods without a solver agree."""
    limits = Limits(gap=1e-9)
    for goal, method in (("utilization", Soar()), ("congestion", TreeCongestion())):
        agree, gaps, seconds = 0, [], []
        for seed in range(4 * asked.seeds):
            tree = generate("tree-random", seed, nodes=100, budget=8, capable=0.7, goal=goal, depth=0.1 * (seed % 9))
            plain = Exact("tree-plain", "aggregation", TreeMessageFlow())
            found = [each.solve(tree, limits) for each in (TreeIntegerProgram(), plain, method)]
            best = found[-1].objective
            agree += all(abs(each.objective - best) <= 1e-9 * best for each in found)
            gaps.append([1 - lp_relaxation(each, tree).objective / best
                         for each in (TreeAggregation(), TreeMessageFlow())])  # fmt: skip
            seconds.append([each.runtime_s for each in found])
        row = {"goal": goal, "trees": 4 * asked.seeds, "agree": agree}
        for name, gap in zip(("tree", "tree-plain"), np.mean(gaps, axis=0), strict=True):
            row[f"gap of `{name}` relaxed"] = f"{100 * gap:.2f} %"
        for name, value in zip(("s", "s, plain", "s, no solver"), np.mean(seconds, axis=0), strict=True):
            row[name] = f"{value:.3f}"
        yield row


def jobs(asked):
    """Bundled trees, every method that covers them."""
    plain = Exact("tree-plain", "aggregation", TreeMessageFlow())
    methods = [Soar(), TreeCongestion(), TreeIntegerProgram(), plain, TreePrices(), TreeLimits(), TreeGreedy()]
    methods += map(Strategy, STRATEGIES)
    for tree in [each for each in instances() if isinstance(each, TreeInstance) and each.size > 10][: asked.trees]:
        for method in methods:
            found = solved(method, tree, asked.limits)
            if found is not None:
                figures = {"seconds of the goal": found.objective, "bound": found.bound}
                told = {name: None if value is None else f"{value:.6g}" for name, value in figures.items()}
                yield {"instance": tree.name, "method": f"`{method.name}`", **told, "s": f"{found.runtime_s:.2f}"}


def convexity(asked):
    """How often the optimum is convex in the budget, and how far it is from its convex hull."""
    for shape in asked.shapes:
        for size in (12, 200):
            convex, distance, count = 0, 0.0, 40 * asked.seeds
            for seed in range(count):
                tree = loaded(shaped(shape, size + seed % 3, size), seed)
                figures = tables(tree)
                curve = job_program(tree, figures, 0, figures.useful[0], size).run(np.zeros(tree.size))
                convex += bool(np.all(np.diff(np.diff(curve)) >= -1e-9 * curve[0]))
                distance = max(distance, float(np.max((curve - hull(curve)) / curve)))
            yield {"tree": shape, "switches": size, "trees": count, "convex": convex,
                   "largest distance to the hull": f"{100 * distance:.2f} %"}  # fmt: skip


def loaded(tree: TreeInstance, seed: int) -> TreeInstance:
    """The tree with random loads and rates; something to do at the root."""
    rng = np.random.default_rng(seed)
    loads, rates = rng.integers(0, 10, tree.size), rng.uniform(0.1, 3.0, tree.size)
    return changed(
        tree, jobs=[{"name": "job", "loads": [1 + loads[0], *loads[1:]]}], seconds_per_message=rates.tolist()
    )


def hull(curve: np.ndarray) -> np.ndarray:
    """The largest convex function below a curve."""
    corners: list[int] = []
    for k in range(len(curve)):
        while len(corners) > 1:
            a, b = corners[-2:]
            if (curve[b] - curve[a]) * (k - a) < (curve[k] - curve[a]) * (b - a):
                break
            corners.pop()
        corners.append(k)
    return np.interp(np.arange(len(curve)), corners, curve[corners])


BENCH = Benchmark(
    growth, strategies, programs, jobs, convexity,
    sizes=Option([1000, 2000, 5000, 10000], "switches", quick=[100]),
    shapes=Option(list(SHAPES), quick=["complete"], choices=SHAPES),
    budget=Option(100, "switches that aggregate, in the first table", quick=5),
    budgets=Option([1, 2, 4, 8, 16, 32, 64, 128], "those of the second table", quick=[2, 8]),
    levels=Option(9, "of complete trees", quick=4),
    seeds=Option(5, "trees of each kind; 4 times as many for programs, 40 times for convexity", quick=1),
    trees=Option(100, "how many bundled trees", quick=1),
    time_limit=Option(60.0, quick=2.0),
)  # fmt: skip
