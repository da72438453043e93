"""Best known solutions and bounds: from runs of methods, or from the runs in a store, into the library.

``python -m ddlopt.analysis.records`` asks every heuristic, or the methods it is told, on the whole library, or the
instances it is told, keeps what is better and writes the index anew. Run it in a checkout, where the library can be
written to. An interruption loses nothing, and what is settled is left alone when it runs again.
"""

import argparse
import datetime
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ddlopt import instances
from ddlopt.analysis.bench.store import Store
from ddlopt.analysis.challenges import is_settled, is_vague, stale
from ddlopt.analysis.compare import attempt
from ddlopt.analysis.index import gap_of, index_file, method_text, write_index
from ddlopt.analysis.tables import gap_text, objective_text
from ddlopt.instances.library.records import COMBINATORIAL, Record, Run
from ddlopt.instances.library.store_best import settle, store_best, store_bound
from ddlopt.models.catalogue import family
from ddlopt.models.contracts import Instance, Solution
from ddlopt.models.errors import DdloptError, SolutionError
from ddlopt.models.tolerances import IMPROVEMENT_TOL, OBJECTIVE_TOL
from ddlopt.solvers import catalogue
from ddlopt.solvers.contracts import Limits, Status, best_bound, best_objective, better
from ddlopt.solvers.names import listed

_COLUMNS = (
    "rowid AS id", "instance_digest", "family", "instance", "method", "solver", "seed", "status", "objective", "bound",
    "evidence", "found_by", "proved_by", "checked", "runtime_s", "finished", "versions",
)  # fmt: skip


class News(NamedTuple):
    """A line on what is new in the library, or on what was refused."""

    text: str
    refused: bool = False


def improve(
    names: Iterable[str], methods: Sequence[str] | None, limits: Limits, seeds: Iterable[int]
) -> Iterator[News]:
    """Solve each instance with each method and seed, keep what is better, and tell it.

    Without ``methods`` every heuristic of the instance's family is asked. An instance that is settled is left alone.
    """
    seeds = tuple(seeds)
    for name in names:
        instance = instances.load(name)
        heuristics = (entry.name for entry in catalogue.entries(instance.family) if entry.kind == "heuristic")
        for method in methods or heuristics:
            for seed in seeds:
                if is_settled(instances.record(name), instance):
                    break
                asked = catalogue.method(method, instance.family)
                result = attempt(instance, asked, limits, seed)
                run = Run.now(asked.name, seed, round(result.runtime_s, 2))
                found, proved = (_by(run, leaf) for leaf in (result.found_by, result.proved_by))
                solution = (result.solution, found) if result.checked and result.solution is not None else None
                proven = result.bound is not None and result.status is not Status.ERROR
                bound = (result.bound, proved) if result.bound is not None and proven else None
                yield from offer(name, instance, solution, bound)


def take_over(store: Store) -> Iterator[News]:
    """Keep the best solution and the best bound of a store for each bundled instance, and tell what is new.

    A solution counts if it was checked, and is judged again in exact arithmetic; a bound if it has evidence, also that
    of a run without a solution of its own. Only runs on the very instance that the library has count. Where a solution
    is better than a bound the one that came second is refused, and what is told names both.
    """
    runs: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for row in map(dict, store.rows(_COLUMNS)):
        if _is_answer(row) or _is_proof(row):
            runs[f"{row['family']}/{row['instance']}", row["instance_digest"]].append(row)
    bundled, foreign = set(instances.names()), 0
    for (name, digest), answers in runs.items():
        instance = instances.load(name) if name in bundled else None
        if instance is None or instance.digest != digest:
            foreign += len(answers)
            continue
        winner, tightest = _best_run(answers, instance), _tightest_run(answers, instance)
        solution = None
        if winner is not None and _is_worth_it(winner, name, instance):
            solution = _solution(store, winner, instance), _by(_run_of(winner), winner["found_by"])
        bound = None if tightest is None else (tightest["bound"], _by(_run_of(tightest), tightest["proved_by"]))
        yield from offer(name, instance, solution, bound)
    if foreign:
        yield News(f"{foreign} runs are on instances that the library does not have, or has with other data")


def offer(
    name: str, instance: Instance, solution: tuple[Solution, Run] | None, bound: tuple[float, Run] | None
) -> Iterator[News]:
    """Offer a solution and a bound to the library, each with its run, and tell what is new."""
    before = instances.record(name)
    try:
        if solution is not None:
            store_best(name, *solution)
        if bound is not None:
            store_bound(name, *bound)
    except SolutionError as problem:
        yield News(str(problem), refused=True)
    yield from changes(name, instance, before, instances.record(name))


def changes(name: str, instance: Instance, before: Record | None, after: Record | None) -> Iterator[News]:
    """What a record says that it did not say before."""
    if after is None or after == before:
        return
    unit, found = instance.objective_unit, after.found
    old = None if before is None else before.found
    value = None if found is None else found.objective
    if found is not None and (old is None or found.digest != old.digest):
        was = "" if old is None else f", before {objective_text(old.objective, unit, digits=12)}"
        yield News(
            f"{name}: {objective_text(value, unit, digits=12)} by {method_text(found)} is the best known now{was}"
        )
    elif found is not None and found != old:
        yield News(f"{name}: {objective_text(value, unit, digits=12)} is what {method_text(found)} finds")
    if after.bound is not None and (before is None or after.bound != before.bound):
        gap = gap_text(gap_of(after, instance))
        told = objective_text(after.bound.value, unit, like=value, digits=12)
        yield News(f"{name}: bound {told} by {method_text(after.bound)}, gap {gap}")


def _is_answer(run: Mapping[str, Any]) -> bool:
    return bool(run["checked"]) and run["status"] in (Status.OPTIMAL, Status.FEASIBLE)


def _is_proof(run: Mapping[str, Any]) -> bool:
    """Whether a run's bound is proven; stores of older versions do not say why it is believed."""
    proven = run["evidence"] is not None or _is_answer(run)
    return run["bound"] is not None and proven and run["status"] not in (Status.ERROR, Status.INFEASIBLE)


def _best_run(runs: Iterable[dict[str, Any]], instance: Instance) -> dict[str, Any] | None:
    """The fastest of the runs with the best objective."""
    answers = [run for run in runs if _is_answer(run)]
    best = best_objective((run["objective"] for run in answers), instance.sense)
    return None if best is None else _fastest(answers, "objective", best)


def _tightest_run(runs: Iterable[dict[str, Any]], instance: Instance) -> dict[str, Any] | None:
    """The fastest of the runs with the best bound."""
    proofs = [run for run in runs if _is_proof(run)]
    best = best_bound((run["bound"] for run in proofs), instance.sense)
    return None if best is None else _fastest(proofs, "bound", best)


def _fastest(answers: Iterable[dict[str, Any]], figure: str, value: float) -> dict[str, Any]:
    equal = (run for run in answers if abs(run[figure] - value) <= IMPROVEMENT_TOL * abs(value))
    return min(equal, key=lambda run: (run["runtime_s"], run["id"]))


def _is_worth_it(run: Mapping[str, Any], name: str, instance: Instance) -> bool:
    """Whether a solution may be better than the best known one, or may tell who finds it."""
    known = instances.record(name)
    if known is None or known.found is None:
        return True
    best, found = known.found.objective, run["objective"]
    close = abs(found - best) <= OBJECTIVE_TOL * abs(best)
    return better(found, best, instance.sense) or (close and is_vague(known))


def _solution(store: Store, run: Mapping[str, Any], instance: Instance) -> Solution:
    return family(instance.family).solution.from_json(store.solution(run["id"]) or "", str(store.path))


def _by(run: Run, leaf: str | None) -> Run:
    """The run, with what answered if that is not the method that was asked; the problem's own bound has no run."""
    if leaf == COMBINATORIAL:
        return Run(method=COMBINATORIAL, version=run.version, date=run.date)
    named = None if leaf is None else leaf.split(":")[0]
    return run if named in (None, run.method.split(":")[0]) else run.model_copy(update={"leaf": leaf})


def _run_of(row: Mapping[str, Any]) -> Run:
    solver = "" if row["solver"] in ("", "highs") else f" ({row['solver']})"
    return Run(
        method=row["method"] + solver,
        seed=row["seed"],
        version=json.loads(row["versions"])["ddlopt"],
        date=datetime.datetime.fromisoformat(row["finished"]).date(),
        seconds=round(row["runtime_s"], 2),
    )


def main() -> None:
    """Command line: instances, methods, seeds, seconds for each solve; or only what needs no solve."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=instances.names(), help="instances (default: the whole library)")
    parser.add_argument("--methods", help="comma-separated (default: every heuristic of the family)")
    parser.add_argument("--seeds", type=int, default=1, help="how many seeds, from 0")
    parser.add_argument("--time-limit", type=float, default=60.0, help="seconds for each solve")
    parser.add_argument(
        "--index", action="store_true", help="solve nothing; bring records and index in line with the files"
    )
    parser.add_argument("--stale", action="store_true", help="tell which records the present code was not tried on")
    options = parser.parse_args()
    if options.stale:
        parser.exit(_tell_stale(options.names))
    try:
        if options.index:
            for name in options.names:
                before = instances.record(name)
                settle(name)
                _print(changes(name, instances.load(name), before, instances.record(name)))
        else:
            methods = listed(options.methods) if options.methods else None
            _print(improve(options.names, methods, Limits(options.time_limit), range(options.seeds)))
    except DdloptError as problem:
        parser.error(str(problem))
    finally:
        if write_index():
            print(f"written: {index_file()}")


def _tell_stale(names: Sequence[str]) -> int:
    """Exit code 1 if there are any."""
    count = 0
    for line in stale(names):
        print(line, flush=True)
        count += 1
    print(f"{count} of {len(names)} records were not challenged by the present code")
    return int(count > 0)


def _print(news: Iterable[News]) -> None:
    for each in news:
        print(each.text, flush=True)


if __name__ == "__main__":
    main()
