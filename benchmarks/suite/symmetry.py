"""An instance that asks the same has the same answers, bounds and violations.

    nice -n 15 python benchmarks suite/symmetry --write docs/results

Small odd instances of every problem (:mod:`ddlopt.instances.odd`) are asked again: renamed, reordered, in units that
are powers of two or of ten as large, later, in two parts or with something that does not matter
(:mod:`ddlopt.instances.symmetries`), or with limits that are just what a solution needs. Every method and bound answers
both, without a gap. Then

* no bound of one is on the wrong side of a checked objective of the other, optima agree, and nobody says *infeasible*
  where the other one has a solution, all after the factor that is known,
* each solution, and what becomes of it when a figure of it is changed, has the same objective and the same violations
  when it is translated, in floating point and in rational numbers,
* data reads the same when fields at their defaults are written out or left out, in any order,
* nobody refuses an instance for its names or its order.
"""

import json
import random
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from itertools import islice, product
from pathlib import Path
from typing import Any

from benchmarks.harness import Benchmark, Kept, Option
from benchmarks.suite.pairs import Compared, compared, noted, state
from ddlopt.analysis.certify import certified
from ddlopt.instances.odd import SETTINGS, odd_instance
from ddlopt.instances.spelled import spelled_out, terse
from ddlopt.instances.symmetries import Tight, Twin, UntranslatedError, tight, twins
from ddlopt.models.catalogue import problem_of, problems
from ddlopt.models.contracts import Evaluation, Instance, Solution
from ddlopt.models.errors import InstanceError, SolutionError, SolverError
from ddlopt.models.tolerances import BOUND_MARGIN
from ddlopt.solvers.catalogue import entries
from ddlopt.solvers.contracts import Limits

HEAD = """# The same question in other words

Small instances of every problem, drawn and made odd (as for [pairs of methods and bounds](pairs.md)), are asked again
in other words; a *twin* is such an instance (`ddlopt.instances.symmetries`):

* *renamed*: other names, among them such as `01`, blanks and letters of other scripts;
* *reordered*: servers, jobs, links and so on have other numbers, and lists without an order come in another one;
* *in powers of two* (2^-20 to 2^20) and *of ten*: other units of time, bytes, operations, memory, error, weight;
* *nudged*: figures larger or smaller by 1e-10 to 4e-10 of themselves, which the check lets pass, and *regrouped*:
  groups of devices in another order, by which parts of a batch go; bounds and answers are compared with each other, and
  with solutions of the first instance that are feasible here;
* *later*: arrivals, deadlines, stays a million seconds or three slots later;
* with something that does not matter (a host of nobody, a twin of an option), in two parts (a count, a link), or with
  a default said (a limit that nothing meets, weights of 1);
* *tight*: up to three limits or demands are what a solution needs, exactly or as much less as the check lets pass; it
  is one that somebody found, or such a one with a figure changed, for which limits are raised if it breaks them. No
  bound may be better than that solution, and nobody may say *infeasible*.

Every method and bound answers both without a gap. A *pair* is a bound of one beside a solution of either, two optima,
or *infeasible* beside a solution, after the factor that is known; a *check* is a solution, or one with a figure
changed, that is evaluated for both, in floating point and in rational numbers, and has to have the same objective and,
where no figure is rounded, the same violations. Each instance is also written and read again with its defaults left out
and spelled out, and no method may refuse an instance for its names or its order. *Remarks* are what disagrees.

What the first such runs found, and is mended: a bound on utilities of 1e-7, which were costs that solvers drop;
patterns of a slot, and bounds under a budget of time, that left out what the check lets pass, and called it infeasible;
a check of collectives whose violations depended on the order of trees; later ones units of a second for pipelines and
steps of which a bound is 0, targets of training called out of reach where rounding hides it, and memory of pipelines
and budgets of timelines and levels of which the last digit that the check lets pass was left out.

"""
"""What the page says before the table."""
_BROKEN = 6
"""Solutions with a figure changed, of each solution."""
_FEWER = 0.7
"""How likely a list has an entry less; a list of places else has one more."""
_TOLD = 5
"""Remarks of a twin: one fault has many."""
_NUMBERED = ("circulant", "symmetric-rings")
"""Methods for what looks the same from every server as servers are numbered."""
_NOUGHT = Fraction(1, 10**15)
"""Of an objective that is a difference, as an eigenvalue that is 0."""
_TIGHT = 2
"""Solutions of which limits are made, of each instance; and as many instances of changed ones."""
_CHANGED = 8
"""Changed solutions that are tried for that; most mean nothing."""


def read_again(instance: Instance, draw: random.Random) -> list[str]:
    """Ways to write an instance that do not read as the same one."""

    def shuffled(data: Any) -> Any:
        if isinstance(data, dict):
            return {name: shuffled(data[name]) for name in draw.sample(list(data), len(data))}
        return [shuffled(each) for each in data] if isinstance(data, list) else data

    ways = {
        "written": instance.to_json(),
        "without what is at its default": json.dumps(terse(instance)),
        "spelled out": json.dumps(spelled_out(instance)),
        "in another order": json.dumps(shuffled(spelled_out(instance))),
    }
    wrong = []
    for way, text in ways.items():
        try:
            if type(instance).from_json(text).digest != instance.digest:
                wrong.append(f"{way}: reads as another one")
        except InstanceError as problem:
            wrong.append(f"{way}: {problem}")
    return wrong


def other_solutions(instance: Instance, solution: Solution, draw: random.Random) -> Iterator[Solution]:
    """Solutions with one figure or list changed, most of them violate something."""
    kind = problem_of(instance).solution
    for _ in range(_BROKEN):
        data = solution.model_dump(mode="json")
        owners = [each for each in _owners(data) if each]
        if not owners:
            return
        owner = draw.choice(owners)
        place = draw.choice(list(owner) if isinstance(owner, dict) else range(len(owner)))
        value = owner[place]
        if isinstance(value, list) and value and draw.random() < _FEWER:
            value.pop(draw.randrange(len(value)))
        elif isinstance(value, list) and all(type(each) is int for each in value):
            value.insert(draw.randrange(len(value) + 1), draw.randrange(len(value) + 2))
        elif isinstance(value, int) and not isinstance(value, bool):
            owner[place] = max(0, value + draw.choice((-1, 1, 2)))
        elif isinstance(value, float):
            owner[place] = value * draw.choice((0.0, 0.5, 2.0))
        else:
            continue
        try:
            yield kind.from_data(data)
        except SolutionError:
            continue


def _owners(data: Any) -> Iterator[Any]:
    if isinstance(data, dict | list):
        yield data
        for each in data.values() if isinstance(data, dict) else data:
            yield from _owners(each)


def evaluated(twin: Twin, solution: Solution) -> list[str]:
    """What the check says of a solution and of its translation where the two do not agree."""
    try:
        other = twin.solution(solution)
    except UntranslatedError:
        return []
    wrong = []
    for exact in (False, True):
        told = [_told(one, each, exact) for one, each in ((twin.of, solution), (twin.instance, other))]
        if isinstance(told[0], str) or isinstance(told[1], str):
            if type(told[0]) is not type(told[1]):
                wrong.append(f"{'exactly' if exact else 'in floats'}: {told[0]} and {told[1]}")
            continue
        kinds = [Counter(each.kind for each in one.violations) for one in told]
        if kinds[0] != kinds[1] and twin.exactly:
            wrong.append(f"{'exactly' if exact else 'in floats'}: violations {dict(kinds[0])} and {dict(kinds[1])}")
        values = [one.objective for one in told]
        if (values[0] is None) != (values[1] is None) and twin.exactly:
            wrong.append(f"{'exactly' if exact else 'in floats'}: objectives {values[0]} and {values[1]}")
        elif values[0] is not None and values[1] is not None and abs(values[0]) != float("inf"):
            wanted, got = twin.objective(values[0]), Fraction(values[1])
            if abs(wanted - got) > Fraction(BOUND_MARGIN) * max(abs(wanted), abs(got)) + _NOUGHT * twin.factor:
                wrong.append(f"{'exactly' if exact else 'in floats'}: {float(got):.15g} for {float(wanted):.15g}")
    return wrong


def _told(instance: Instance, solution: Solution, exact: bool) -> Evaluation | str:
    try:
        return problem_of(instance).evaluate(instance, solution, exact=exact)
    except SolutionError as problem:
        return str(problem)


def answered(instance: Instance, limits: Limits, proofs: bool) -> Compared:
    """What every method, bound and, if wanted, certificate says of an instance."""
    found = compared(instance, limits)

    def prove() -> None:
        try:
            found.bounds["certificate"] = Fraction(certified(instance, None, None, limits, 0, None).proven.bound)
        except SolverError as problem:
            if "does not hold" in str(problem):
                raise

    if proofs and found.objectives:
        noted(found, "certificate", prove)
    return found


def merged(one: Compared, other: Compared, twin: Twin) -> Compared:
    """What is said of both instances, in the figures of the first."""
    both = Compared(one.instance, 0.0)
    for found, mark, back in ((one, "", Fraction), (other, " (twin)", twin.back)):
        both.objectives |= {who + mark: back(value) for who, value in found.objectives.items()}
        both.bounds |= {who + mark: back(value) for who, value in found.bounds.items()}
        both.optimal += [who + mark for who in found.optimal]
        both.infeasible += [who + mark for who in found.infeasible]
    both.broken = [f"twin: {line}" for line in other.broken if line not in one.broken]
    both.late = [f"twin: {line}" for line in other.late]
    return both


def refusals(one: Instance, other: Instance) -> list[str]:
    """Methods that refuse one of two instances only."""
    wrong = []
    for entry in (each for each in entries(one.family) if each.name not in _NUMBERED):
        told = [entry.make("highs").refuses(each) for each in (one, other)]
        if (told[0] is None) != (told[1] is None):
            wrong.append(f"{entry.name} refuses one: {told[0] or told[1]}")
    return wrong


def translated(twin: Twin, good: list[Solution], answers: list[Solution], count: dict[str, int]) -> list[str]:
    """Where checks of answers, or refusals, are not the same for a twin."""
    # What names something that is not there may name what a twin has besides.
    asked = answers if twin.added is None else good
    count["checks"] += len(asked)
    told = [line for each in asked for line in evaluated(twin, each)]
    # What a model is too large for may be counted in decimals, and depends on the units then.
    if twin.exactly and not twin.change.factors and twin.added is None and not twin.change.blind:
        told += refusals(twin.of, twin.instance)
    return told


def know(found: Compared, twin: Twin, good: list[Solution]) -> None:
    """Solutions of an instance that asks nearly the same, as far as they are feasible for the twin."""
    for place, solution in enumerate(good):
        _know(found, f"solution {place} of the other", twin.solution(solution))


def _know(found: Compared, who: str, solution: Solution) -> None:
    told = [_told(found.instance, solution, exact) for exact in (True, False)]
    if isinstance(told[1], Evaluation) and told[1].feasible:
        values = (each.objective for each in told if isinstance(each, Evaluation))
        found.objectives[who] = Fraction(next(each for each in values if each is not None))


def tightened(
    instance: Instance, good: list[Solution], changed: list[Solution], draw: random.Random
) -> Iterator[Tight]:
    """Instances whose limits are what a solution needs, of good ones and of changed ones."""
    for solutions, most in ((good, _TIGHT), (changed, _CHANGED)):
        tried = draw.sample(solutions, min(len(solutions), most))
        made = (tight(instance, solution, draw, draw.randrange(1, 4)) for solution in tried)
        yield from islice((each for each in made if each is not None), _TIGHT)


def limited(
    instance: Instance,
    good: list[Solution],
    changed: list[Solution],
    draw: random.Random,
    limits: Limits,
    proofs: bool,
    count: dict[str, int],
) -> Iterator[list[str]]:
    """What is wrong where limits are what a solution needs: that solution is known, whatever methods find."""
    for made in tightened(instance, good, changed, draw):
        found = answered(made.instance, limits, proofs)
        _know(found, "what it is made of", made.solution)
        count["twins"] += 1
        count["pairs"] += found.pairs
        yield [f"{made.way}: {line}" for line in (found.contradictions() + found.broken + found.late)[:_TOLD]]


def figures(path: str, setting: str, seed: int, limits: Limits, proofs: bool = False) -> dict[str, Any]:
    """What is found on one instance and its twins: how many of each, and what is wrong, in lines."""
    instance, draw = odd_instance(path, setting, seed), random.Random(f"symmetry {path} {setting} {seed}")
    one = answered(instance, limits, proofs)
    lines = [f"read again: {line}" for line in read_again(instance, draw)]
    lines += one.contradictions() + one.broken
    good = list({each.model_dump_json(): each for each in one.solutions.values()}.values())
    answers = good + [other for each in good for other in other_solutions(instance, each, draw)]
    count = {"twins": 0, "pairs": 0, "checks": 0}
    for twin in twins(instance, seed):
        if isinstance(twin, str) or twin.instance == instance:
            continue
        count["twins"] += 1
        told = [] if twin.alone else translated(twin, good, answers, count)
        if limits.time_s:
            other = answered(twin.instance, limits, proofs)
            if twin.alone:
                know(other, twin, good)
            both = other if twin.alone else merged(one, other, twin)
            count["pairs"] += both.pairs
            told += both.contradictions()[:2] + both.broken + both.late
        lines += [f"{twin.way}: {line}" for line in list(dict.fromkeys(told))[:_TOLD]]
    if limits.time_s:
        for told in limited(instance, good, answers[len(good) :], draw, limits, proofs, count):
            lines += told
    return count | {"remarks": [f"{path} {setting} {seed}: {line}" for line in lines]}


def symmetry(asked: Any) -> Iterator[dict[str, Any] | str]:
    """A row for each problem."""
    kept, limits, remarks = Kept(asked.keep), Limits(asked.time_limit, 0.0), []
    for path in asked.problems or problems():
        row: dict[str, Any] = {"problem": path, "instances": 0, "twins": 0, "pairs": 0, "checks": 0, "remarks": 0}
        for setting, seed in product(SETTINGS, range(asked.first, asked.first + asked.seeds)):
            found = kept.row(
                f"{path} {setting} {seed} {asked.time_limit:g} s {asked.proofs} {state()}",
                lambda path=path, setting=setting, seed=seed: figures(path, setting, seed, limits, asked.proofs),
            )
            row["instances"] += 1
            for name in ("twins", "pairs", "checks"):
                row[name] += found[name]
            row["remarks"] += len(found["remarks"])
            remarks += found["remarks"]
        yield row
    yield "## Remarks"
    yield "\n".join(f"* {line}" for line in remarks) or "None."


BENCH = Benchmark(
    symmetry,
    problems=Option([], "paths of problems; all by default", ["aggregation/tree"], str, positional=True),
    seeds=Option(5, "instances for each setting", 1),
    first=Option(0, "the first seed"),
    time_limit=Option(1.0, quick=0.5),
    proofs=Option(False, "certificates as well, made and checked anew"),
    keep=Option(Path("symmetry.jsonl"), quick=Path("symmetry_quick.jsonl"), type=Path),
    page="symmetry",
    head=HEAD,
    in_all=False,
)
