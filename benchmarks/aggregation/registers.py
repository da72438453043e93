"""Placement in register arrays: heuristics, what generalises, the size that was asked for, bounds, growth.

Instances are those of kind ``registers-zipf``; ``±`` is half a 95 % confidence interval over seeds. ``criteo`` needs
``--criteo FILE``, a click log in the format of libffm, for example both samples of ``demo/classification/criteo_ctr``
in aksnzhy/xlearn, one after the other; its rows are taken as they are, and shuffled with every seed, so that the
batches held out come from the same distribution.
"""

import dataclasses
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from benchmarks.harness import Benchmark, Option, solved
from ddlopt.instances.generators.aggregation import generate
from ddlopt.instances.readers.libffm import read_libffm
from ddlopt.models.aggregation.registers.batches import merged
from ddlopt.models.aggregation.registers.formulations.count_placement import CountPlacement
from ddlopt.models.aggregation.registers.formulations.pair_placement import PairPlacement
from ddlopt.models.aggregation.registers.instance import RegisterInstance
from ddlopt.solvers import catalogue
from ddlopt.solvers.aggregation.registers.dealing import (
    Block,
    GreedyCooccurrence,
    HeatBalance,
    HeatRoundRobin,
    RandomArrays,
)
from ddlopt.solvers.aggregation.registers.methods import milp
from ddlopt.solvers.aggregation.registers.rounding import RelaxationRounding
from ddlopt.solvers.aggregation.registers.search import RegisterSearch
from ddlopt.solvers.certified import told_anew
from ddlopt.solvers.contracts import Method, Result
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
EXACT = catalogue.method("exact", "aggregation")


def drawn(seed: int, options: dict[str, Any], held_out: int = 400) -> RegisterInstance:
    return generate("registers-zipf", seed, held_out=held_out, **options)


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
    return RegisterInstance.from_data({**instance.model_dump(), "goal": goal})


def methods(small: bool) -> dict[str, Method]:
    found: dict[str, Method] = {
        "block": Block(),
        "random": RandomArrays(),
        "heat-round-robin": HeatRoundRobin(),
        "heat-round-robin:snake=true": HeatRoundRobin(snake=True),
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


def heuristics(asked):
    """Packets above the floor, in per cent: batches that counted, batches held out; seconds."""
    for name in asked.settings:
        yield f"{name}: per cent above the floor."
        cases = [drawn(seed, SETTINGS[name]) for seed in range(asked.seeds)]
        compared = methods(SETTINGS[name]["parameters"] <= 60) | {"exact": EXACT}
        for label, method in compared.items():
            results = [method.solve(case, asked.limits) for case in cases]
            inside, outside = (mean(above(result, part) for result in results) for part in ("", "held_out_"))
            seconds = np.mean([result.runtime_s for result in results])
            yield {"method": label, "in sample": inside, "held out": outside, "s": f"{seconds:.2f}"}
        # The last one of them has a bound.
        bounds = [100 * (float(r.bound or 0) / merged(c).floor - 1) for r, c in zip(results, cases, strict=True)]
        proven = sum(result.status == "optimal" for result in results)
        yield f"Its bound: {mean(bounds)} above the floor; {proven} of {asked.seeds} proven optimal."


def generalisation(asked):
    """Packets of batches held out, per cent above the floor, by how many batches the placement knows."""
    search = RegisterSearch(steps=STEPS)
    for name in ("n40 R8 K8 rows 1", "n60 R16 K16 rows 2", "n200 R16 K16 rows 5"):
        if name not in asked.settings:
            continue
        for batches in (40, 160, 640):
            cases = [drawn(seed, {**SETTINGS[name], "batches": batches}) for seed in range(asked.seeds)]
            row = {name: f"{batches} batches known"}
            for method in (HeatRoundRobin(), HeatBalance(), GreedyCooccurrence()):
                row[method.name] = mean(above(method.solve(case, asked.limits), "held_out_") for case in cases)
            found = [search.solve(case, asked.limits) for case in cases]
            row["search, packets"] = mean(above(result, "held_out_") for result in found)
            row["(in sample)"] = mean(above(result) for result in found)
            pairs = [search.solve(with_goal(case, "collisions"), asked.limits) for case in cases]
            yield row | {"search, collisions": mean(above(result, "held_out_") for result in pairs)}


def target(asked):
    """200 parameters, 16 arrays, 100 batches: gap to the bound that is proven within the time limit."""
    wanted = dataclasses.replace(asked.limits, gap=0.01)
    for rows in asked.rows:
        for entries in (8, 12, 16):
            for seed in range(asked.seeds):
                options = {"parameters": 200, "arrays": 16, "batches": 100, "rows": rows, "entries": entries}
                case = drawn(seed, options, 50)
                result = opened = RegisterSearch(steps=10 * STEPS).solve(case, wanted)
                left = asked.time_limit - opened.runtime_s
                if result.status != "optimal" and left > 0:
                    rest = dataclasses.replace(wanted, time_s=left)
                    result = EXACT.solve(case, rest, 0, None, opened.solution)
                    result = told_anew(result, runtime_s=result.runtime_s + opened.runtime_s)
                sizes = [len(batch) for batch in case.batches]
                yield {
                    "rows": rows, "K": entries, "sizes": f"{min(sizes)}..{max(sizes)}",
                    "floor": f"{merged(case).floor:.0f}", "packets": f"{result.objective:.0f}",
                    "bound": f"{result.bound:.0f}", "gap %": f"{100 * (result.gap or 0.0):.2f}",
                    "s": f"{result.runtime_s:.2f}",
                }  # fmt: skip


def collisions(asked):
    """Bounds on collisions: floors, relaxation, programs; means over seeds."""
    small = {"random n24 R8 size 8": (24, 40), "random n40 R8 size 8": (40, 60)}
    settings = {name: [unstructured(seed, n, 8, batches) for seed in range(asked.seeds)]
                for name, (n, batches) in small.items()}  # fmt: skip
    for name in asked.settings:
        drawn_ones = [drawn(seed, SETTINGS[name], 1) for seed in range(asked.seeds)]
        settings[name] = [with_goal(case, "collisions") for case in drawn_ones]
    programs: dict[str, Method] = {
        "counts": Exact("counts", "aggregation", CountPlacement()),
        "pairs": Exact("pairs", "aggregation", PairPlacement()),
    }
    for name, cases in settings.items():
        starts = [RegisterSearch(steps=STEPS).solve(case, asked.limits) for case in cases]
        relaxed = [RelaxationRounding(draws=1).solve(case, asked.limits) for case in cases]
        row = {
            "setting": name,
            "floor": f"{np.mean([merged(case).floor for case in cases]):.1f}",
            "relaxation": mean_bound(relaxed),
            "s": f"{np.mean([result.runtime_s for result in relaxed]):.1f}",
        }
        for label, method in programs.items():
            found = [solved(method, case, asked.limits, start=first.solution)
                     for case, first in zip(cases, starts, strict=True)]  # fmt: skip
            row[label] = None if None in found else mean_bound(found)
        yield row | {"search": f"{np.mean([result.objective or np.nan for result in starts]):.1f}"}


def mean_bound(results: list[Result]) -> str:
    return f"{np.mean([np.nan if result.bound is None else result.bound for result in results]):.1f}"


def growth(asked):
    """Proofs by the integer program as instances grow: full packets, R = K = 8."""
    for parameters in asked.sizes:
        options = {"parameters": parameters, "arrays": 8, "batches": parameters, "rows": 1, "capacity": 1.2}
        random = [unstructured(seed, parameters, 8, parameters) for seed in range(asked.seeds)]
        kinds = {"8 at random": [with_goal(case, "packets") for case in random]}
        kinds["of one row"] = [drawn(seed, options, 0) for seed in range(asked.seeds)]
        for kind, cases in kinds.items():
            row = {"parameters": parameters, "batches": kind}
            found = [milp(case, "highs").solve(case, asked.limits) for case in cases]
            row["proven"] = f"{sum(result.status == 'optimal' for result in found)}/{asked.seeds}"
            row["gap %"] = f"{100 * np.mean([result.gap or 0.0 for result in found]):.1f}"
            row["s"] = f"{np.mean([result.runtime_s for result in found]):.2f}"
            yield row


def criteo(asked):
    """A click log: in the order of its rows, and shuffled."""
    if asked.criteo is None:
        yield "Left out: it needs --criteo FILE."
        return
    for batch, parameters in ((10, 32), (5, 24), (1, 40)):
        own = read_libffm(asked.criteo, problem="registers", batch=batch, parameters=parameters)
        shuffled = list(shuffles(asked.criteo, asked.seeds, batch, parameters))
        sizes = f"{len(own.batches)} + {len(own.held_out)} batches of {batch} rows"
        yield f"{parameters} parameters, 8 arrays, {sizes}."
        floor, *floors = (RandomArrays().solve(case, asked.limits).details for case in (own, *shuffled))
        yield log_row("floor", floor, floors, "floor_packets", "held_out_floor_packets")
        for label, method in {**methods(small=True), "exact": EXACT}.items():
            figures = [method.solve(case, asked.limits).details for case in shuffled]
            result = method.solve(own, asked.limits)
            mark = " proven" if result.status == "optimal" else ""
            yield log_row(label, result.details, figures, "packets", "held_out_packets", mark)


def log_row(label: str, own: Any, shuffled: list[Any], inside: str, outside: str, mark: str = "") -> dict[str, str]:
    """Figures of the log as it is and shuffled."""
    return {
        "method": label,
        "as it is": f"{own[inside]:.0f}{mark}",
        "held out": f"{own[outside]:.0f}",
        "shuffled": mean(each[inside] for each in shuffled),
        "shuffled, held out": mean(each[outside] for each in shuffled),
    }


def shuffles(file: Path, seeds: int, batch: int, parameters: int) -> Iterator[RegisterInstance]:
    rows = file.read_text().splitlines()
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(seeds):
            path = Path(folder) / f"{seed}.txt"
            path.write_text("\n".join(rows[i] for i in np.random.default_rng(seed).permutation(len(rows))) + "\n")
            yield read_libffm(path, problem="registers", batch=batch, parameters=parameters)


BENCH = Benchmark(
    heuristics, generalisation, target, collisions, growth, criteo,
    time_limit=Option(10.0, quick=0.5),
    seeds=Option(5, quick=1),
    settings=Option(list(SETTINGS), "of the first, second and fourth table", list(SETTINGS)[1:2], choices=SETTINGS),
    rows=Option([1, 5, 20], "of a batch, in the third table", quick=[1]),
    sizes=Option([16, 24, 32, 48, 64], "parameters of the fifth table", quick=[16]),
    criteo=Option(None, "a click log in the format of libffm", type=Path),
)  # fmt: skip
