"""Keeping solutions and bounds that are better than what the library has; in a checkout, where it can be written to.

A solution's file is written before the record that speaks of it. Whatever ends the process between the two leaves a
good solution of which nothing is said, and offering the same solution again, or :func:`settle`, says it.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from fractions import Fraction

from filelock import FileLock

from ddlopt.instances import library
from ddlopt.instances.library import best, best_files, full_name, load, names
from ddlopt.instances.library.records import (
    COMBINATORIAL,
    Bound,
    Challenge,
    Found,
    Record,
    Run,
    digest_of_best,
    read,
    record,
    write,
)
from ddlopt.models.catalogue import family
from ddlopt.models.contracts import Instance, Number, Sense, Solution
from ddlopt.models.errors import InfeasibleError, SolutionError
from ddlopt.models.files import writable, write_whole_packed
from ddlopt.models.tolerances import OBJECTIVE_TOL

_ROUNDING = Fraction(1, 10**9)
"""What is better must be so by more than what rounding in a solver makes of the same, relative to itself."""
_LARGEST_PLAIN_BYTES = 200_000
"""Best known solutions above this size are stored compressed."""


def store_best(name: str, solution: Solution, run: Run | None = None) -> bool:
    """Store a solution of a bundled instance if it beats the best known one, judged in exact arithmetic.

    Where the record does not say what found the best known one, and the solution is as good, its ``run`` is noted.

    Returns
    -------
    bool
        Whether it was stored.

    Raises
    ------
    UnknownNameError
        If there is no such instance.
    SolutionError
        If the solution is not feasible, or better than the bound that is recorded.
    OptionError
        If the library cannot be written to.
    """
    full = full_name(name)
    instance, run = load(full), run or Run.now()
    objective = _judged(full, instance, solution)
    with _alone(full):
        known = record(full) or Record(instance_digest=instance.digest)
        bound = known.bound or _combinatorial(instance)
        rival = _objective_of_best(full, instance)
        if rival is None or _beats(objective, rival, instance.sense):
            bound = _meeting(bound, objective, instance, run)
            _write_solution(full, instance, solution)
            _note(full, instance, _found(full, objective, run), bound)
            return True
        if _is_news(known.found, run) and not _beats(rival, objective, instance.sense):
            _note(full, instance, _found(full, rival, run), _meeting(bound, rival, instance, run))
        return False


def store_bound(name: str, value: float, run: Run) -> bool:
    """Note a bound on the objective of every solution of a bundled instance if it is tighter than the one recorded.

    Where the record does not say what proved its bound, and the offered one is as tight, its ``run`` is noted.

    Returns
    -------
    bool
        Whether it was noted.

    Raises
    ------
    UnknownNameError
        If there is no such instance.
    SolutionError
        If the best known solution is better than the bound.
    OptionError
        If the library cannot be written to.
    """
    full = full_name(name)
    instance = load(full)
    with _alone(full):
        known = record(full) or Record(instance_digest=instance.digest)
        offered: Bound | None = Bound(value=value, **run.model_dump(include=set(Run.model_fields)))
        if known.found is not None:
            offered = _meeting(offered, known.found.objective, instance, known.found)
        if _tighter(known.bound, offered, instance.sense) is not offered:
            before = known.bound
            if before is None or offered is None or not _is_news(before, offered):
                return False
            if _beats(offered.value, before.value, instance.sense):
                return False
            offered = offered.model_copy(update={"value": before.value})
        _note(full, instance, known.found, offered)
    return True


def store_challenge(name: str, challenge: Challenge) -> None:
    """Note that methods were tried against what is known of a bundled instance.

    Raises
    ------
    UnknownNameError
        If there is no such instance.
    OptionError
        If the library cannot be written to.
    """
    full = full_name(name)
    family_name, stem = full.split("/")
    with _alone(full):
        known = record(full) or Record(instance_digest=load(full).digest)
        _write(family_name, read(family_name) | {stem: known.model_copy(update={"challenged": challenge})})


def settle(name: str) -> bool:
    """Record what can be said of an instance without a run: its solution's objective, and the combinatorial bound.

    Returns
    -------
    bool
        Whether that changed anything.

    Raises
    ------
    UnknownNameError
        If there is no such instance.
    SolutionError
        If the stored solution is not feasible, or better than the bound.
    """
    full = full_name(name)
    instance = load(full)
    with _alone(full):
        known = record(full)
        found, bound = (None, None) if known is None else (known.found, known.bound)
        solution = best(full) if found is None else None
        if solution is not None:
            found = _found(full, _judged(full, instance, solution), Run())
        bound = _tighter(bound, _combinatorial(instance), instance.sense)
        if found is not None:
            bound = _meeting(bound, found.objective, instance, found)
        challenged = None if known is None else known.challenged
        settled = Record(instance_digest=instance.digest, found=found, bound=bound, challenged=challenged)
        if settled == known:
            return False
        _note(full, instance, found, bound)
    return True


@contextmanager
def _alone(full: str) -> Iterator[None]:
    """Keep other processes from the family's files meanwhile."""
    lock = writable(library.library_folder(full.split("/")[0]) / ".lock")
    with FileLock(lock):
        yield


def _judged(full: str, instance: Instance, solution: Solution) -> Number:
    judged = family(instance.family).evaluate(instance, solution, exact=True)
    if judged.objective is None or judged.violations:
        problems = "; ".join(str(violation) for violation in judged.violations[:3])
        raise SolutionError(f"'{full}': the solution is not feasible: {problems}")
    return judged.objective


def _objective_of_best(full: str, instance: Instance) -> Number | None:
    """Exact objective of the best known solution; None where none is stored, or a broken one, or of other data."""
    stored = best(full)
    if stored is None or stored.instance_digest not in (None, instance.digest):
        return None
    judged = family(instance.family).evaluate(instance, stored, exact=True)
    return judged.objective if judged.feasible else None


def _is_news(known: Run | None, run: Run) -> bool:
    return known is None or (known.is_vague and not run.is_vague)


def _found(full: str, objective: Number, run: Run) -> Found:
    digest = digest_of_best(full) or ""
    return Found(objective=float(objective), digest=digest, **run.model_dump(include=set(Run.model_fields)))


def _combinatorial(instance: Instance) -> Bound | None:
    try:
        value = family(instance.family).bound(instance)
    except InfeasibleError:
        return None
    return None if value is None else Bound(value=value, **Run.now(COMBINATORIAL).model_dump())


def _tighter(known: Bound | None, offered: Bound | None, sense: Sense) -> Bound | None:
    """The offered bound if it says more than the known one, beyond rounding."""
    if known is None or offered is None:
        return known or offered
    return offered if _beats(known.value, offered.value, sense) else known


def _meeting(bound: Bound | None, objective: Number, instance: Instance, finder: Run) -> Bound | None:
    """The bound, or the objective itself where the bound passes it within tolerances.

    Parameters
    ----------
    bound : Bound or None
    objective : float or Fraction
    instance : Instance
    finder : Run
        What came to the solution with that objective.

    Raises
    ------
    SolutionError
        If it passes it by more.
    """
    if bound is None:
        return None
    value = float(objective)
    passed = bound.value - value if instance.sense == "minimize" else value - bound.value
    if passed <= 0:
        return bound
    # An objective without unit may be a sum whose parts cancel.
    if passed > OBJECTIVE_TOL * abs(value) + (0 if instance.objective_unit else _ROUNDING):
        raise SolutionError(
            f"'{instance.family}/{instance.name}': a solution of {value:.12g} ({_who(finder)}) is better than the "
            f"bound {bound.value:.12g} ({_who(bound)}); one of the two is wrong, and nothing is stored"
        )
    return bound.model_copy(update={"value": value})


def _who(run: Run) -> str:
    return ", ".join(str(part) for part in (run.method, run.date) if part is not None)


def _beats(objective: Number, rival: Number, sense: Sense) -> bool:
    gain = rival - objective if sense == "minimize" else objective - rival
    return gain > _ROUNDING * (objective if objective > 0 else -objective)


def _write_solution(full: str, instance: Instance, solution: Solution) -> None:
    plain, packed = best_files(full)
    signed = solution.model_copy(update={"instance": instance.name, "instance_digest": instance.digest})
    text = signed.to_json(indent=None) + "\n"
    kept, other = (packed, plain) if len(text.encode()) > _LARGEST_PLAIN_BYTES else (plain, packed)
    write_whole_packed(kept, text)
    other.unlink(missing_ok=True)


def _note(full: str, instance: Instance, found: Found | None, bound: Bound | None) -> None:
    family_name, stem = full.split("/")
    known = read(family_name)
    before = known.get(stem)
    challenged = before.challenged if before is not None and before.instance_digest == instance.digest else None
    new = Record(instance_digest=instance.digest, found=found, bound=bound, challenged=challenged)
    _write(family_name, known | {stem: new})


def _write(family_name: str, noted: Mapping[str, Record]) -> None:
    """Write the records of bundled instances."""
    bundled = {each.split("/")[1] for each in names(family_name)}
    write(family_name, {name: noted[name] for name in noted if name in bundled})
