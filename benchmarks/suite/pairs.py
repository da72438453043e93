"""No method or bound of a problem contradicts another one, on small instances that are odd on purpose.

    nice -n 15 python benchmarks suite/pairs --write docs/results

Instances are drawn and then made odd: *ties*, *zeros*, *unequal* sizes (:mod:`ddlopt.instances.odd`). Every method that
covers an instance answers it, and every bound of its problem is calculated: the combinatorial one, in floating point
and in rational numbers, and those of relaxations. Then all pairs are compared:

* no bound is on the wrong side of any checked objective,
* solutions that are called optimal are equally good,
* nobody says *infeasible* where another one has a solution,
* nothing ends with an exception other than a refusal.

A solve that takes half a minute of the processor is ended and counted as late.

What is found on an instance is kept as soon as it is there, under the state of the code: the same command goes on where
it was interrupted, and begins anew where the code has changed. With ``--write docs/results`` the sums of each problem
and setting are written to ``runs/pairs.jsonl`` and the page from these; problems that are not asked for keep the sums
that they have. ``--kept`` writes the page from what is there.
"""

import datetime
import json
import signal
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from hashlib import sha256
from itertools import combinations
from pathlib import Path
from typing import Any

from benchmarks.harness import ROOT, SHORT, Benchmark, Kept, Option
from ddlopt.certificates.own import exact_bound_of
from ddlopt.instances.odd import SETTINGS, odd_instance
from ddlopt.models.catalogue import problem_of, problems
from ddlopt.models.contracts import Instance, Solution
from ddlopt.models.errors import DdloptError, InfeasibleError, NotApplicableError
from ddlopt.models.tolerances import OBJECTIVE_TOL
from ddlopt.solvers.backends.highs import Highs
from ddlopt.solvers.catalogue import entries
from ddlopt.solvers.contracts import Limits, Result, Status, compiled
from ddlopt.solvers.exact import build_model

_NOUGHT = 1e-9
"""Difference that counts as none, of the largest objective that anybody found: one may be a sum whose parts cancel."""
_PATIENCE_S = 30.0
"""Seconds of the processor after which a solve is ended: on a busy machine the clock on the wall says little."""
FOLDER = ROOT / "docs/results"
_FIGURES = ("instances", "methods", "answers", "bounds", "pairs", "contradictions", "broken", "late")
"""Columns of the page; ``methods`` are those that had an answer or a bound for any of the instances."""
HEAD = """# Methods and bounds against each other

Small instances of every problem, drawn and then made odd on purpose (`ddlopt.instances.odd`): with *ties* figures of a
field are equal or small multiples, or all times are small whole numbers; with *zeros* figures are 0 and lists empty;
with *unequal* sizes figures differ by up to a million, and members are missing. Every method that covers an instance
answers it, and every bound of its problem is calculated: in floating point, in rational numbers, and of relaxations.
Then all pairs are compared. A *contradiction* is a bound on the wrong side of a checked solution, two optima that
differ, or *infeasible* beside a solution; *broken* is an exception that is no refusal, *late* a solve that takes half a
minute of the processor. *Methods* counts everybody who had an answer or a bound for any of the instances.

"""
TAIL = """What the first such runs found, and what was wrong: bounds of plans of 1 s where nothing takes time, and of
disjunctive schedules; orders of gradients that the wire takes no time for; strategies that reduce in a set without
groups; gradients with a dimension of 0; steps of plans that take no time. A slice of this is in the default tests,
most of it in the slow ones (`tests/benchmarks/test_pairs.py`), and `tests/instances/test_odd.py` compares what the
schemas allow with what is drawn. Of one problem, after a change: `python benchmarks suite/pairs aggregation/tree
--write docs/results`; its rows take the place of those that stood here.
"""
"""What the page says before and after the table."""


class LateError(Exception):
    """A solve went on long after its limit."""


@dataclass
class Compared:
    """What methods and bounds say of one instance.

    Parameters
    ----------
    instance : Instance
    gap : float
        At which methods may stop.
    objectives : dict of str to Fraction
        Exact ones of checked solutions, by method.
    optimal : list of str
        Methods that say that theirs cannot be improved.
    bounds : dict of str to Fraction
        By who says so.
    infeasible : list of str
        Who says that there is no solution.
    broken : list of str
        Unexpected exceptions.
    late : list of str
    solutions : dict of str to Solution
        By method.
    """

    instance: Instance
    gap: float
    objectives: dict[str, Fraction] = field(default_factory=dict)
    optimal: list[str] = field(default_factory=list)
    bounds: dict[str, Fraction] = field(default_factory=dict)
    infeasible: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    late: list[str] = field(default_factory=list)
    solutions: dict[str, Solution] = field(default_factory=dict)

    @property
    def pairs(self) -> int:
        """How many pairs there are to compare."""
        optimal = len(self.optimal)
        refusals = len(self.infeasible) * len(self.objectives)
        return len(self.bounds) * len(self.objectives) + optimal * (optimal - 1) // 2 + refusals

    def contradictions(self) -> list[str]:
        """Each pair that cannot both be true, in a line."""
        sign, found = (1 if self.instance.sense == "minimize" else -1), []
        for who, bound in self.bounds.items():
            for method, objective in self.objectives.items():
                if sign * (bound - objective) > self._slack(objective):
                    found.append(f"bound {float(bound):.12g} of {who}, {float(objective):.12g} of {method}")
        for one, other in combinations(self.optimal, 2):
            values = self.objectives[one], self.objectives[other]
            if abs(values[0] - values[1]) > Fraction(self.gap) * max(map(abs, values)) + self._slack(values[0]):
                found.append(f"optima {float(values[0]):.12g} of {one}, {float(values[1]):.12g} of {other}")
        if self.objectives and self.infeasible:
            method = next(iter(self.objectives))
            found += [f"infeasible says {who}, {method} has a solution" for who in self.infeasible]
        return found

    def _slack(self, objective: Fraction) -> Fraction:
        largest = max(map(abs, self.objectives.values()))
        return Fraction(OBJECTIVE_TOL) * abs(objective) + Fraction(_NOUGHT) * largest


def compared(instance: Instance, limits: Limits) -> Compared:
    """What every method and bound says of an instance."""
    found = Compared(instance, limits.gap)
    for entry in entries(instance.family):
        noted(found, entry.name, lambda entry=entry: _solved(found, entry.name, entry.make("highs"), limits))
    problem = problem_of(instance)
    noted(found, "bound", lambda: _bound(found, "bound", problem.bound(instance)))
    exact_bound = exact_bound_of(problem.path)
    if exact_bound is not None:
        noted(found, "exact bound", lambda: _bound(found, "exact bound", exact_bound(instance)))
    for name, make in problem.relaxations.items():
        noted(found, f"relaxation {name}", lambda name=name, make=make: _relaxed(found, name, make(), limits))
    return found


def noted(found: Compared, who: str, ask: Any) -> None:
    """Ask, and note what comes of it that is no answer."""

    def end(*_: object) -> None:
        raise LateError

    before = signal.signal(signal.SIGPROF, end)
    signal.setitimer(signal.ITIMER_PROF, _PATIENCE_S)
    try:
        ask()
    except NotApplicableError:
        pass
    except InfeasibleError:
        found.infeasible.append(who)
    except LateError:
        found.late.append(who)
    except Exception as problem:  # whatever it is: that is what is looked for
        told = problem if isinstance(problem, DdloptError) else repr(problem)
        found.broken.append(f"{who}: {type(problem).__name__}: {str(told)[:300]}")
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _bound(found: Compared, who: str, value: float | Fraction | None) -> None:
    if value is not None and abs(value) != float("inf"):
        found.bounds[who] = Fraction(value)


def _solved(found: Compared, who: str, method: Any, limits: Limits) -> None:
    if method.refuses(found.instance) is None:
        compiled(method, found.instance)
        signal.setitimer(signal.ITIMER_PROF, _PATIENCE_S)  # what is compiled is none of a solve's time
        _answered(found, who, method.solve(found.instance, limits, 0))


def _answered(found: Compared, who: str, result: Result) -> None:
    if result.status is Status.INFEASIBLE:
        found.infeasible.append(who)
    if result.status is Status.REFERENCE:
        return
    _bound(found, who, result.bound)
    if result.solution is None:
        return
    exact = problem_of(found.instance).evaluate(found.instance, result.solution, exact=True)
    # What floating point lets pass as rounding may be a violation in rational numbers; its objective counts as found.
    found.objectives[who] = Fraction(result.objective if exact.objective is None else exact.objective)
    found.solutions[who] = result.solution
    if result.status is Status.OPTIMAL:
        found.optimal.append(who)


def _relaxed(found: Compared, name: str, formulation: Any, limits: Limits) -> None:
    """The bound of a relaxation, whose solutions are none of the instance."""
    instance, who = found.instance, f"relaxation {name}"
    if formulation.refuses(instance) is None:
        outcome = Highs().solve(build_model(instance.family, formulation, instance), limits, 0)
        if outcome.status is Status.INFEASIBLE:
            found.infeasible.append(who)
        elif outcome.bound is not None:
            _bound(found, who, formulation.objective_value(instance, outcome.bound))


def figures(path: str, setting: str, seed: int, limits: Limits) -> dict[str, Any]:
    """What is found on one instance: who answered, how many of each, and what was wrong, in lines."""
    found = compared(odd_instance(path, setting, seed), limits)
    wrong = found.contradictions()
    late = [f"late: {who}" for who in found.late]
    return {
        "who": sorted({*found.objectives, *found.bounds, *found.infeasible}),
        "answers": len(found.objectives),
        "bounds": len(found.bounds),
        "pairs": found.pairs,
        "contradictions": len(wrong),
        "broken": len(found.broken),
        "late": len(found.late),
        "remarks": [f"{path} {setting} {seed}: {line}" for line in (*wrong, *found.broken, *late)],
    }


@cache
def state() -> str:
    """A digest of the code that answers: of all storeys below analysis, and of this script."""
    folders = [ROOT / name for name in ("models", "certificates", "solvers", "instances", "frontier")]
    files = [Path(__file__), *(file for folder in folders for file in sorted(folder.rglob("*.py")))]
    return sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()[:12]


def summed(path: str, setting: str, asked: Any, kept: Kept) -> dict[str, Any]:
    """The row of a problem and a setting, and its remarks."""
    seeds = range(asked.first, asked.first + asked.seeds)
    limits = Limits(asked.time_limit, asked.gap)
    each = [
        kept.row(
            f"{path} {setting} {seed} {asked.time_limit:g} s gap {asked.gap:g} {state()}",
            lambda seed=seed: figures(path, setting, seed, limits),
        )
        for seed in seeds
    ]
    row: dict[str, Any] = {"problem": path, "setting": setting, "instances": len(each)}
    row["methods"] = len({who for one in each for who in one["who"]})
    row |= {name: sum(one[name] for one in each) for name in _FIGURES[2:]}
    today = datetime.datetime.now(datetime.UTC).date()
    made = {"day": str(today), "limit_s": asked.time_limit, "gap": asked.gap, "first": asked.first, "state": state()}
    return row | made | {"remarks": [line for one in each for line in one["remarks"]]}


def pairs(asked: Any) -> Iterator[dict[str, Any] | str]:
    """A row for each problem and setting."""
    kept, rows = Kept(asked.keep), []
    for path in () if asked.kept else asked.problems or problems():
        for setting in SETTINGS:
            rows.append(summed(path, setting, asked, kept))
            yield shown(rows[-1])
    told = [line for row in rows for line in row["remarks"]]
    yield f"{sum(row['pairs'] for row in rows)} pairs compared, {len(told)} remarks."
    yield from told
    if asked.write is not None:
        write(rows, asked.write)


def shown(row: dict[str, Any]) -> dict[str, Any]:
    """The cells of a row."""
    return {name: row[name] for name in ("problem", "setting", *_FIGURES)}


def read(folder: Path = FOLDER) -> list[dict[str, Any]]:
    """The sums that are kept, in the order of problems and settings; of problems that there are no more none."""
    file = folder / "runs/pairs.jsonl"
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    rows = {(row["problem"], row["setting"]): row for row in map(json.loads, lines)}
    return [rows[key] for key in ((path, setting) for path in problems() for setting in SETTINGS) if key in rows]


def write(rows: list[dict[str, Any]], folder: Path = FOLDER) -> None:
    """Put sums in place of older ones, and write the page from all."""
    new = {(row["problem"], row["setting"]) for row in rows}
    (folder / "runs").mkdir(parents=True, exist_ok=True)
    file = folder / "runs/pairs.jsonl"
    kept = [row for row in read(folder) if (row["problem"], row["setting"]) not in new]
    lines = [json.dumps(row) for row in (*kept, *rows)]
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    rows = read(folder)
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    (folder / "pairs.md").write_text(page(rows), encoding="utf-8")


def page(rows: list[dict[str, Any]]) -> str:
    """The page of sums."""
    days, states = sorted({row["day"] for row in rows}), {row["state"] for row in rows}
    limits = " and ".join(f"{limit:g}" for limit in sorted({row["limit_s"] for row in rows}))
    made = f"{days[0]} to {days[-1]}" if len(days) > 1 else "".join(days)
    code = "one state of the code" if len(states) == 1 else f"{len(states)} states of the code, problem by problem"
    remarks = [line for row in rows for line in row["remarks"]]
    command = "`nice -n 15 python benchmarks suite/pairs --write docs/results`"
    headings = ("problem", "setting", *_FIGURES)
    cells = [headings, ("---", "---", *["---:"] * len(_FIGURES)), *(shown(row).values() for row in rows)]
    table = "".join(f"| {' | '.join(map(str, each))} |\n" for each in cells)
    total = sum(row["pairs"] for row in rows)
    told = "".join(f"* {line}\n" for line in remarks) or "None.\n"
    return (
        f"{HEAD}{command}, {made}, {code}, time limit {limits} s, 1 thread a solve.\n"
        f"{SHORT} {total} pairs.\n\n{table}\n## Remarks\n\n{told}\n{TAIL}"
    )


BENCH = Benchmark(
    pairs,
    problems=Option([], "paths of problems; all by default", ["aggregation/tree"], str, positional=True),
    seeds=Option(30, "instances for each setting", 2),
    first=Option(0, "the first seed"),
    time_limit=Option(1.0, quick=0.5),
    gap=Option(0.0, "relative gap at which methods may stop; more than 0 hides false answers of that size"),
    keep=Option(Path("pairs.jsonl"), quick=Path("pairs_quick.jsonl"), type=Path),
    kept=Option(False, "solve nothing; with --write the page from the sums that are there"),
    pages=False,
    in_all=False,
)
