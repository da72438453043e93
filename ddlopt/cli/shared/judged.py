"""What a submission claims, as ``submit`` and ``check`` tell it."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ddlopt.cli.shared.arguments import NO_ANSWER, say

if TYPE_CHECKING:
    from ddlopt.models.contracts import Instance


def news_of(instance: "Instance", made: Any) -> Iterable[str]:
    """What a submission claims, and whether that is news."""
    from fractions import Fraction

    from ddlopt import instances
    from ddlopt.analysis.tables import objective_text
    from ddlopt.solvers.contracts import better

    known, unit = instances.record(made.instance), instance.objective_unit
    if made.objective is not None:
        value = float(Fraction(made.objective))
        best = None if known is None or known.found is None else known.found.objective
        told = f"{made.instance}: objective {objective_text(value, unit, digits=12)}"
        if best is None:
            yield f"{told}; none was known"
        else:
            news = "better than" if better(value, best, instance.sense) else "not better than"
            yield f"{told}, {news} the best known {objective_text(best, unit, digits=12)}"
    if made.bound is not None:
        value = float(Fraction(made.bound))
        best = None if known is None or known.bound is None else known.bound.value
        told = f"{made.instance}: bound {objective_text(value, unit, digits=12)}, proven by the certificate"
        if best is None:
            yield f"{told}; none was known"
        else:  # a bound is better on the other side
            news = "better than" if better(best, value, instance.sense) else "not better than"
            yield f"{told}, {news} the best known {objective_text(best, unit, digits=12)}"


def print_judged(name: str, solution: Path | None, as_json: bool) -> bool:
    """Check a submission and print what it says, if NAME alone or SOLUTION is one; whether it is.

    Exit code 1 where something in it does not hold.
    """
    from ddlopt.instances.submission_format import is_one

    file = Path(name) if solution is None else solution
    if not is_one(file):
        return False
    from ddlopt import instances
    from ddlopt.analysis import submissions
    from ddlopt.analysis.tables import json_text

    made = submissions.read(file)
    instance = instances.load(instances.full_name(made.instance) if solution is None else name)
    judged = submissions.judge(made, instance)
    if as_json:
        data = made.model_dump(mode="json", exclude={"solution", "certificate"}, exclude_none=True)
        print(json_text(data | {"holds": not judged.faults, "faults": list(judged.faults), "kind": judged.kind}))
    elif not judged.faults:
        say(f"{made.instance}: the submission holds, in exact arithmetic")
        say(f"by: {made.method}, {made.author}, {made.date}, {made.licence}")
        for line in news_of(instance, made):
            say(line)
    if judged.faults:
        for fault in judged.faults if not as_json else ():
            say(f"{made.instance}: {fault}")
        raise typer.Exit(NO_ANSWER)
    return True
