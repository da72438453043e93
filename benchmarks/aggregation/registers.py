"""Placement in register arrays: heuristics, what generalises, the size that was asked for, bounds, growth.

    python benchmarks/aggregation_registers.py --tables heuristics,generalisation,target,collisions,growth
    python benchmarks/aggregation_registers.py --tables criteo --criteo FILE

Instances are those of kind ``registers-zipf``, with as many seeds as asked for; ``±`` is half a 95 % confidence
interval over seeds. ``FILE`` is a click log in the format of libffm, for example both samples of
``demo/classification/criteo_ctr`` in aksnzhy/xlearn, one after the other; its rows are taken as they are, and
shuffled with every seed, so that the batches held out come from the same distribution.
"""

import argparse
import dataclasses
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from ddlopt.instances.generators.aggregation import generate
from ddlopt.instances.readers.libffm import read_libffm
from ddlopt.models.aggregation.register_batches import merged
from ddlopt.models.aggregation.register_counts import CountPlacement
from ddlopt.models.aggregation.register_pairs import PairPlacement
from ddlopt.models.aggregation.registers import RegisterInstance
from ddlopt.solvers.aggregation.register_dealing import (
    Block,
    GreedyCooccurrence,
    HeatBalance,
    HeatRoundRobin,
    RandomArrays,
)
from ddlopt.solvers.aggregation.register_rounding import RelaxationRounding
from ddlopt.solvers.aggregation.register_search import RegisterSearch
from ddlopt.solvers.aggregation.register_tree import RegisterTree
from ddlopt.solvers.aggregation.registers_methods import milp
from ddlopt.solvers.certified import told_anew
from ddlopt.solvers.contracts import Limits, Method, Result
from ddlopt.solvers.exact import Exact

SETTINGS: dict[str, dict[str, Any]] = {
    "n24 R8 K8 rows 5": {"parameters": 24, "arrays": 8, "batches": 40, "rows": 5},
    "n40 R8 K8 rows 1": {"parameters": 40, "arrays": 8, "batches": 40, "rows": 1},
    "n60 R16 K16 rows 2": {"parameters": 60, "arrays": 16, "batches": 40, "rows": 2},
    "n200 R16 K8 rows 5": {"parameters": 200, "arrays": 16, "entries": 8, "batches": 100, "rows": 5},
    "n200 R16 K16 rows 1": {"parameters": 200, "arrays": 16, "batches": 100, "rows": 1},
    "n200 R16 K16 rows 5": {"parameters": 200, "arrays": 16, "batches": 100, "rows": 5},
}
STEPS = 2_000_000


def drawn(seed: int, options: dict[str, Any], held_out: int = 400) -> RegisterInstance:
    """An instance of a setting."""
    instance = generate("registers-zipf", seed, held_out=held_out, **options)
    assert isinstance(instance, RegisterInstance)
    return instance


def unstructured(seed: int, parameters: int, arrays: int, batches: int) -> RegisterInstance:
    """Batches of as many random parameters as there are arrays; collisions count."""
    rng = np.random.default_rng(seed)
    return RegisterInstance(
        name=f"random-{seed}",
        parameters=parameters,
        arrays=arrays,
        capacity=-(-3 * parameters // (2 * arrays)),
        entries=arrays,
        batches=tuple(tuple(sorted(rng.permutation(parameters)[:arrays].tolist())) for _ in range(batches)),
        goal="collisions",
    )


def with_goal(instance: RegisterInstance, goal: str) -> RegisterInstance:
    """The same with another goal."""
    return RegisterInstance.from_data({**instance.model_dump(), "goal": goal})


def methods(small: bool) -> dict[str, Method]:
    """The methods that are compared."""
    found: dict[str, Method] = {
        "block": Block(),
        "random": RandomArrays(),
        "heat-round-robin": HeatRoundRobin(),
        "snake": HeatRoundRobin(snake=True),
        "heat-balance": HeatBalance(),
        "greedy-co-occ.": GreedyCooccurrence(),
        "register-search": RegisterSearch(steps=STEPS),
    }
    return {**found, "sdp-rounding": RelaxationRounding()} if small else found


def mean(values: Iterable[float]) -> str:
    """Mean and half its 95 % confidence interval."""
    found = np.array(list(values))
    if len(found) < 2:
        return f"{found.mean():.2f}"
    half = stats.t.ppf(0.975, len(found) - 1) * found.std(ddof=1) / np.sqrt(len(found))
    return f"{found.mean():.2f} ± {half:.2f}"


def above(result: Result, part: str = "") -> float:
    """Per cent by which packets exceed the floor."""
    floor = float(result.details[f"{part}floor_packets"])
    return 100 * (float(result.details[f"{part}packets"]) / floor - 1)


def heuristics(seeds: int, limits: Limits) -> None:
    """Packets above the floor, in per cent: batches that counted, batches held out, seconds."""
    for name, options in SETTINGS.items():
        print(f"\n{name}: per cent above the floor\n")
        print(f"| {'method':16} | {'in sample':>15} | {'held out':>15} | {'s':>7} |\n|---|---|---|---|")
        cases = [drawn(seed, options) for seed in range(seeds)]
        for label, method in methods(options["parameters"] <= 60).items():
            results = [method.solve(case, limits) for case in cases]
            row(label, results)
        proofs = [RegisterTree().solve(case, limits) for case in cases]
        row("register-tree", proofs)
        bounds = [100 * (float(r.bound or 0) / merged(c).floor - 1) for r, c in zip(proofs, cases, strict=True)]
        proven = sum(result.status == "optimal" for result in proofs)
        print(f"its bound: {mean(bounds)} above the floor; {proven} of {seeds} proven optimal", flush=True)


def row(label: str, results: list[Result]) -> None:
    """One line of a table."""
    inside, outside = (mean(above(result, part) for result in results) for part in ("", "held_out_"))
    seconds = sum(result.runtime_s for result in results) / len(results)
    print(f"| {label:16} | {inside:>15} | {outside:>15} | {seconds:7.2f} |", flush=True)


def generalisation(seeds: int, limits: Limits) -> None:
    """Held-out packets above the floor by how many batches the placement knows."""
    for name in ("n40 R8 K8 rows 1", "n60 R16 K16 rows 2", "n200 R16 K16 rows 5"):
        print(f"\n{name}: per cent above the floor, held out\n")
        print("| batches known | heat-round-robin | heat-balance | greedy-co-occ. | search, packets | (in sample) |"
              " search, collisions |\n|---|---|---|---|---|---|---|")  # fmt: skip
        for batches in (40, 160, 640):
            cases = [drawn(seed, {**SETTINGS[name], "batches": batches}) for seed in range(seeds)]
            cells = [
                mean(above(method.solve(case, limits), "held_out_") for case in cases)
                for method in (HeatRoundRobin(), HeatBalance(), GreedyCooccurrence())
            ]
            search = RegisterSearch(steps=STEPS)
            found = [search.solve(case, limits) for case in cases]
            cells += [mean(above(result, part) for result in found) for part in ("held_out_", "")]
            pairs = [search.solve(with_goal(case, "collisions"), limits) for case in cases]
            cells.append(mean(above(result, "held_out_") for result in pairs))
            print(f"| {batches} | " + " | ".join(cells) + " |", flush=True)


def target(seeds: int, limits: Limits) -> None:
    """200 parameters, 16 arrays, 100 batches: gap to the bound proven within the time limit."""
    print(f"\n200 parameters, 16 arrays, 100 batches, limit {limits.time_s} s\n")
    print("| rows | K | sizes | floor | packets | bound | gap % | s |\n|---|---|---|---|---|---|---|---|")
    for rows in (1, 5, 20):
        for entries in (8, 12, 16):
            for seed in range(seeds):
                options = {"parameters": 200, "arrays": 16, "batches": 100, "rows": rows, "entries": entries}
                case = drawn(seed, options, 50)
                wanted = dataclasses.replace(limits, gap=0.01)
                result = opened = RegisterSearch(steps=10 * STEPS).solve(case, wanted)
                left = (limits.time_s or np.inf) - opened.runtime_s
                if result.status != "optimal" and left > 0:
                    rest = dataclasses.replace(wanted, time_s=left)
                    result = RegisterTree().solve(case, rest, 0, None, opened.solution)
                    result = told_anew(result, runtime_s=result.runtime_s + opened.runtime_s)
                sizes = [len(batch) for batch in case.batches]
                gap = 100 * (result.gap or 0.0)
                print(
                    f"| {rows} | {entries} | {min(sizes)}..{max(sizes)} | {merged(case).floor:.0f} "
                    f"| {result.objective:.0f} | {result.bound:.0f} | {gap:.2f} | {result.runtime_s:.2f} |",
                    flush=True,
                )


def collisions(seeds: int, limits: Limits) -> None:
    """Bounds on collisions: floors, relaxation, programs, enumeration."""
    print(f"\nCollisions: bounds within {limits.time_s} s; mean over {seeds} seeds\n")
    print("| setting | floor | relaxation | s | counts | pairs | tree | search |\n|---|---|---|---|---|---|---|---|")
    settings = {"random n24 R8 size 8": [unstructured(seed, 24, 8, 40) for seed in range(seeds)]}
    settings["random n40 R8 size 8"] = [unstructured(seed, 40, 8, 60) for seed in range(seeds)]
    for name, options in SETTINGS.items():
        settings[name] = [with_goal(drawn(seed, options, 1), "collisions") for seed in range(seeds)]
    for name, cases in settings.items():
        start = [RegisterSearch(steps=STEPS).solve(case, limits) for case in cases]
        relaxed = [RelaxationRounding(draws=1).solve(case, limits) for case in cases]
        seconds = np.mean([result.runtime_s for result in relaxed])
        programs: list[Method] = [
            Exact("counts", "aggregation", CountPlacement()), Exact("pairs", "aggregation", PairPlacement()),
            RegisterTree(),
        ]  # fmt: skip
        cells = [f"{np.mean([merged(case).floor for case in cases]):.1f}", bounds_of(relaxed), f"{seconds:.1f}"]
        for method in programs:
            if method.refuses(cases[0]) is None:
                found = [
                    method.solve(case, limits, 0, None, first.solution)
                    for case, first in zip(cases, start, strict=True)
                ]
                cells.append(bounds_of(found))
            else:
                cells.append("–")
        cells.append(f"{np.mean([result.objective or np.nan for result in start]):.1f}")
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


def bounds_of(results: list[Result]) -> str:
    """Mean bound."""
    return f"{np.mean([np.nan if result.bound is None else result.bound for result in results]):.1f}"


def growth(seeds: int, limits: Limits) -> None:
    """Proofs by enumeration and by the integer program after the same search, as instances grow."""
    print(f"\nFull packets, R = K = 8, as many batches as parameters; {limits.time_s} s each\n")
    print("| parameters | batches | tree: proven | gap % | s | milp: proven | gap % | s |")
    print("|---|---|---|---|---|---|---|---|")
    for parameters in (16, 24, 32, 48, 64):
        options = {"parameters": parameters, "arrays": 8, "batches": parameters, "rows": 1, "capacity": 1.2}
        random = [unstructured(seed, parameters, 8, parameters) for seed in range(seeds)]
        kinds = {"8 at random": [with_goal(case, "packets") for case in random]}
        kinds["of one row"] = [drawn(seed, options, 0) for seed in range(seeds)]
        for kind, cases in kinds.items():
            cells = []
            for make in (lambda _: RegisterTree(), lambda case: milp(case, "highs")):
                found = [make(case).solve(case, limits) for case in cases]
                proven = sum(result.status == "optimal" for result in found)
                gap = 100 * np.mean([result.gap or 0.0 for result in found])
                cells.append(f"{proven}/{seeds} | {gap:.1f} | {np.mean([result.runtime_s for result in found]):.2f}")
            print(f"| {parameters} | {kind} | " + " | ".join(cells) + " |", flush=True)


def criteo(file: Path, seeds: int, limits: Limits) -> None:
    """The click log: in the order of its rows, and shuffled."""
    for batch, parameters in ((10, 32), (5, 24), (1, 40)):
        own = read_libffm(file, problem="registers", batch=batch, parameters=parameters)
        shuffled = list(_shuffled(file, seeds, batch, parameters))
        print(
            f"\n{parameters} parameters, 8 arrays, {len(own.batches)} + {len(own.held_out)} batches of {batch} rows\n"
        )
        print("| method | as it is | held out | shuffled | held out |\n|---|---|---|---|---|")
        floors = RandomArrays().solve(own, limits).details
        means = [RandomArrays().solve(case, limits).details for case in shuffled]
        keys = ("floor_packets", "held_out_floor_packets")
        cells = [*(f"{floors[key]:.0f}" for key in keys), *(mean(each[key] for each in means) for key in keys)]
        print("| floor | " + " | ".join(cells) + " |")
        for label, method in {**methods(small=True), "register-tree": RegisterTree()}.items():
            figures = [method.solve(case, limits).details for case in shuffled]
            result = method.solve(own, limits)
            mark = " proven" if result.status == "optimal" else ""
            print(
                f"| {label} | {result.objective:.0f}{mark} | {result.details['held_out_packets']:.0f} | "
                + " | ".join(mean(each[key] for each in figures) for key in ("packets", "held_out_packets"))
                + " |",
                flush=True,
            )


def _shuffled(file: Path, seeds: int, batch: int, parameters: int) -> Iterator[RegisterInstance]:
    rows = file.read_text().splitlines()
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(seeds):
            path = Path(folder) / f"{seed}.txt"
            path.write_text("\n".join(rows[i] for i in np.random.default_rng(seed).permutation(len(rows))) + "\n")
            instance = read_libffm(path, problem="registers", batch=batch, parameters=parameters)
            assert isinstance(instance, RegisterInstance)
            yield instance


TABLES: dict[str, Callable[[int, Limits], None]] = {
    "heuristics": heuristics,
    "generalisation": generalisation,
    "target": target,
    "collisions": collisions,
    "growth": growth,
}


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", default=",".join(TABLES), help="separated by commas")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--time-limit", type=float, default=10.0, help="seconds, of every solve")
    parser.add_argument("--criteo", type=Path, help="a click log in the format of libffm")
    chosen = parser.parse_args()
    limits = Limits(time_s=chosen.time_limit)
    for table in chosen.tables.split(","):
        if table == "criteo":
            if chosen.criteo is None:
                parser.error("table criteo needs --criteo FILE")
            criteo(chosen.criteo, chosen.seeds, limits)
        else:
            TABLES[table](chosen.seeds, limits)


if __name__ == "__main__":
    main()
