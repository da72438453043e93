"""Whether the default method loses to another method of its problem in the same time, on the whole library.

    python benchmarks suite/defaults --time-limit 10 --keep bench/defaults-10.sqlite

Every bundled instance is solved by its default. Where that is within 0.1 % of the best known solution no method can be
ahead by more, and none is run; elsewhere every other method that covers the instance gets as long, one thread, seed 0,
a process of its own. ``loss`` is how much worse the default's solution is than the best one of that run. Every
run is kept as soon as it is there: the same command goes on where it was interrupted.
"""

from pathlib import Path
from typing import Any

from benchmarks.harness import ROOT, Benchmark, Option
from benchmarks.suite.gaps import known, loss
from benchmarks.suite.records import wanted
from ddlopt import instances
from ddlopt.analysis.bench import Store
from ddlopt.analysis.bench.sweep import Sweep
from ddlopt.analysis.bench.tasks import plan
from ddlopt.analysis.tables import objective_text
from ddlopt.models.catalogue import problem_of
from ddlopt.models.contracts import Instance
from ddlopt.solvers import catalogue
from ddlopt.solvers.contracts import Limits, Status, best_objective

MOST = 1e-3
"""What a default may lose."""
HEAD = """# What the default methods lose in so much time

`solve` without a method asks the default of an instance. Each bundled instance was solved by it, and where the
solution is not within 0.1 % of the best known one, by every other method of its problem for as long. `loss` is how
much worse the default's solution is than the best of these. Short limits say what is found in them, not what a method
can do.

"""


def losses(asked):
    """By problem: how many instances, how many of them within 0.1 % at once, and where another method is ahead."""
    asked.keep.parent.mkdir(parents=True, exist_ok=True)
    counts: dict[str, dict[str, int]] = {}
    behind: list[dict[str, Any]] = []
    with Store(asked.keep) as store:
        for name in wanted(asked.names, open_only=False)[: asked.most]:
            instance = instances.load(name)
            count = counts.setdefault(problem_of(instance).path, {"instances": 0, "near": 0, "behind": 0})
            count["instances"] += 1
            default = run(store, name, [catalogue.default_method(instance)], asked.limits)
            own = best_of(default, instance)
            if is_near(own, name, instance):
                count["near"] += 1
                continue
            row = {"instance": name, **compared(default | run(store, name, others(instance), asked.limits), instance)}
            if row.pop("lost") > MOST:
                count["behind"] += 1
                behind.append(row)
    for problem, count in counts.items():
        yield {"problem": problem, "instances": count["instances"], "default within 0.1 % of the best known":
               count["near"], "another method ahead by more": count["behind"]}  # fmt: skip
    if behind:
        yield "Where another method is ahead:"
        yield from behind
    yield f"{len(behind)} of {sum(count['instances'] for count in counts.values())} instances behind."


def others(instance: Instance) -> list[str]:
    """Every other method that covers an instance."""
    mine = catalogue.default_method(instance)
    names = (entry.name for entry in catalogue.entries(instance.family) if entry.name != mine)
    return [name for name in names if catalogue.method(name, instance.family).refuses(instance) is None]


def run(store: Store, name: str, methods: list[str], limits: Limits) -> dict[str, float]:
    """The objectives of methods that find a solution, run now or before."""
    if methods:
        for _ in Sweep(plan([name], methods, [0], limits), store).run():
            pass
    instance = instances.load(name)
    of = {"instance_digest": instance.digest, "time_limit_s": limits.time_s}
    rows = store.rows(("method", "objective", "status", "checked"), **of)
    answers = {row["method"]: row["objective"] for row in rows if answered(row)}
    return {method: answers[method] for method in methods if method in answers}


def answered(row: Any) -> bool:
    return bool(row["checked"]) and row["status"] in (Status.OPTIMAL, Status.FEASIBLE)


def best_of(found: dict[str, float], instance: Instance) -> float | None:
    return best_objective(found.values(), instance.sense)


def is_near(own: float | None, name: str, instance: Instance) -> bool:
    """Whether no method can be ahead of the default by more than it may lose."""
    if own is None:
        return False
    lost = loss(own, known(name)[0], instance)
    return lost is not None and lost <= MOST


def compared(found: dict[str, float], instance: Instance) -> dict[str, Any]:
    """The default beside the best of all; what it loses, a whole where it has no solution and another has."""
    mine, best = found.get(catalogue.default_method(instance)), best_of(found, instance)
    lost = 0.0 if best is None else 1.0 if mine is None else loss(mine, best, instance)
    lost = 1.0 if lost is None else lost
    first = next((method for method, objective in found.items() if objective == best), "")
    unit = instance.objective_unit
    return {
        "default": objective_text(mine, unit),
        "best": objective_text(best, unit, like=mine),
        "by": first,
        "loss": f"{100 * lost:.2f} %",
        "lost": lost,
    }


BENCH = Benchmark(
    losses,
    in_all=False,
    page="defaults",
    head=HEAD,
    names=Option([], "patterns of instances; all by default", type=str, positional=True, quick=["topology/tiny-n4-*"]),
    time_limit=Option(10.0, quick=1.0),
    most=Option(10_000, "instances at most", quick=1),
    keep=Option(ROOT / "bench/defaults.sqlite", quick=ROOT / "build/quick-defaults.sqlite", type=Path),
)
