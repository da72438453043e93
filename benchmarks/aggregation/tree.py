"""Aggregation in trees: growth of the dynamic program, strategies beside the optimum, programs beside each other.

    python benchmarks/aggregation_tree.py growth --sizes 1000 10000 --budget 100
    python benchmarks/aggregation_tree.py strategies --levels 9 --seeds 5
    python benchmarks/aggregation_tree.py programs --seeds 20
    python benchmarks/aggregation_tree.py jobs --time-limit 60
    python benchmarks/aggregation_tree.py convexity --seeds 200

``growth``: processor seconds of the whole solve by shape of the tree. ``strategies``: utilization relative to the
optimum on complete binary trees, mean over seeds, by budget. ``programs``: optimum and relaxations of the integer
programs on random trees, and how often the methods without a solver agree. ``jobs``: bundled trees, every method.
``convexity``: how often the optimum is convex in the budget.
"""

import argparse
import time
from collections.abc import Iterator

import numpy as np

from ddlopt.instances.generators.aggregation import generate
from ddlopt.instances.library.aggregation_tree import instances
from ddlopt.models.aggregation import TreeInstance
from ddlopt.models.aggregation.tree_placement import TreeAggregation
from ddlopt.models.aggregation.tree_plain import PlainTreeAggregation
from ddlopt.models.aggregation.tree_tables import tables
from ddlopt.solvers.aggregation.tree_congestion import TreeCongestion
from ddlopt.solvers.aggregation.tree_exact import TreeIntegerProgram
from ddlopt.solvers.aggregation.tree_greedy import TreeGreedy
from ddlopt.solvers.aggregation.tree_limits import TreeLimits
from ddlopt.solvers.aggregation.tree_prices import TreePrices
from ddlopt.solvers.aggregation.tree_soar import Soar, job_program
from ddlopt.solvers.aggregation.tree_strategies import Strategy
from ddlopt.solvers.contracts import Limits, Method, Result
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


def growth(arguments: argparse.Namespace) -> None:
    """Processor seconds by shape and size."""
    small = shaped("complete", 100, 5)
    Soar().solve(small, Limits())
    TreeCongestion().solve(TreeInstance.from_data(small.model_dump() | {"goal": "congestion"}), Limits())
    print("| tree | " + " | ".join(f"{size} switches, s" for size in arguments.sizes) + " | anchors | congestion, s |")
    print("|---|" + "---|" * (len(arguments.sizes) + 2))
    for shape in arguments.shapes:
        cells, anchors, congestion = [], "", ""
        for size in arguments.sizes:
            tree = shaped(shape, size, arguments.budget)
            seconds, found = _processor_s(Soar(), tree)
            cells.append(f"{seconds:.2f}")
            anchors = f"{found.details['depth']:.0f}"
            other = TreeInstance.from_data(tree.model_dump() | {"goal": "congestion"})
            congestion = f"{_processor_s(TreeCongestion(), other)[0]:.2f}"
        print(f"| {shape} | " + " | ".join(cells) + f" | {anchors} | {congestion} |", flush=True)


def _processor_s(method: Method, tree: TreeInstance) -> tuple[float, Result]:
    began = time.process_time()
    found = method.solve(tree, Limits(gap=1e-9))
    return time.process_time() - began, found


def strategies(arguments: argparse.Namespace) -> None:
    """Utilization relative to the optimum."""
    methods = [*map(Strategy, STRATEGIES), TreeGreedy()]
    for loads in ("uniform", "power"):
        for rates in ("constant", "linear", "exponential"):
            print(f"\nloads {loads}, rates {rates}\n")
            print("| k | saved by the optimum | " + " | ".join(method.name for method in methods) + " |")
            print("|---|---|" + "---|" * len(methods))
            for budget in arguments.budgets:
                rows, saved = [], []
                for seed in range(arguments.seeds):
                    options = {"levels": arguments.levels, "loads": loads, "rates": rates, "budget": budget}
                    tree = generate("tree-complete", seed, **options)
                    best = Soar().solve(tree, Limits()).objective
                    values = [method.solve(tree, Limits(), seed).objective for method in methods]
                    rows.append([value / best for value in values])
                    saved.append(1 - best / values[0])
                means = " | ".join(f"{value:.3f}" for value in np.mean(rows, axis=0))
                print(f"| {budget} | {100 * np.mean(saved):.1f} % | {means} |", flush=True)


def programs(arguments: argparse.Namespace) -> None:
    """Integer programs and relaxations on random trees."""
    print(
        "| goal | trees | agree | gap of `tree` relaxed | gap of `tree-plain` relaxed | s | s, plain | s, no solver |"
    )
    print("|---|---|---|---|---|---|---|---|")
    limits = Limits(gap=1e-9)
    for goal, method in (("utilization", Soar()), ("congestion", TreeCongestion())):
        agree, gaps, seconds = 0, [], []
        for seed in range(arguments.seeds):
            tree = generate("tree-random", seed, nodes=100, budget=8, capable=0.7, goal=goal, depth=0.1 * (seed % 9))
            found = [TreeIntegerProgram().solve(tree, limits), method.solve(tree, limits)]
            plain = Exact("tree-plain", "aggregation", PlainTreeAggregation()).solve(tree, limits)
            best = found[1].objective
            agree += all(abs(each.objective - best) <= 1e-9 * best for each in (found[0], plain))
            relaxed = [lp_relaxation(each, tree).objective for each in (TreeAggregation(), PlainTreeAggregation())]
            gaps.append([1 - each / best for each in relaxed])
            seconds.append([found[0].runtime_s, plain.runtime_s, found[1].runtime_s])
        shown = [f"{100 * value:.2f} %" for value in np.mean(gaps, axis=0)]
        shown += [f"{value:.3f}" for value in np.mean(seconds, axis=0)]
        print(f"| {goal} | {arguments.seeds} | {agree} | " + " | ".join(shown) + " |", flush=True)


def _trees() -> Iterator[TreeInstance]:
    for tree in instances():
        if isinstance(tree, TreeInstance) and tree.size > 10:
            yield tree


def jobs(arguments: argparse.Namespace) -> None:
    """Bundled trees, every method that covers them."""
    plain = Exact("tree-plain", "aggregation", PlainTreeAggregation())
    methods = [Soar(), TreeCongestion(), TreeIntegerProgram(), plain, TreePrices(), TreeLimits(), TreeGreedy()]
    methods += map(Strategy, STRATEGIES)
    print("| instance | method | seconds of the goal | bound | s |\n|---|---|---|---|---|")
    for tree in _trees():
        for method in methods:
            if method.refuses(tree) is None:
                found = method.solve(tree, Limits(time_s=arguments.time_limit))
                bound = "–" if found.bound is None else f"{found.bound:.6g}"
                value = "–" if found.objective is None else f"{found.objective:.6g}"
                print(f"| {tree.name} | `{method.name}` | {value} | {bound} | {found.runtime_s:.2f} |", flush=True)


def convexity(arguments: argparse.Namespace) -> None:
    """How often the optimum is convex in the budget, and how far it is from its convex hull."""
    print("| tree | switches | trees | convex | largest distance to the hull |\n|---|---|---|---|---|")
    for shape in SHAPES:
        for size in (12, 200):
            convex, distance = 0, 0.0
            for seed in range(arguments.seeds):
                tree = shaped(shape, size + seed % 3, size)
                tree = _loaded(tree, seed)
                figures = tables(tree)
                curve = job_program(tree, figures, 0, figures.useful[0], size).run(np.zeros(tree.size))
                hull = _hull(curve)
                convex += bool(np.all(np.diff(np.diff(curve)) >= -1e-9 * curve[0]))
                distance = max(distance, float(np.max((curve - hull) / curve)))
            print(f"| {shape} | {size} | {arguments.seeds} | {convex} | {100 * distance:.2f} % |", flush=True)


def _loaded(tree: TreeInstance, seed: int) -> TreeInstance:
    rng = np.random.default_rng(seed)
    loads, rates = rng.integers(0, 10, tree.size), rng.uniform(0.1, 3.0, tree.size)
    changes = {"jobs": [{"name": "job", "loads": [1 + loads[0], *loads[1:]]}], "seconds_per_message": rates.tolist()}
    return TreeInstance.from_data(tree.model_dump() | changes)


def _hull(curve: np.ndarray) -> np.ndarray:
    corners: list[int] = []
    for k in range(len(curve)):
        while len(corners) > 1:
            a, b = corners[-2:]
            if (curve[b] - curve[a]) * (k - a) < (curve[k] - curve[a]) * (b - a):
                break
            corners.pop()
        corners.append(k)
    return np.interp(np.arange(len(curve)), corners, curve[corners])


PARTS = {part.__name__: part for part in (growth, strategies, programs, jobs, convexity)}


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1000, 2000, 5000, 10000])
    parser.add_argument("--shapes", nargs="+", default=SHAPES, choices=SHAPES)
    parser.add_argument("--budget", type=int, default=100)
    parser.add_argument("--budgets", type=int, nargs="+", default=[1, 2, 4, 8, 16, 32, 64, 128])
    parser.add_argument("--levels", type=int, default=9)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--time-limit", type=float, default=60.0)
    arguments = parser.parse_args()
    PARTS[arguments.part](arguments)


if __name__ == "__main__":
    main()
