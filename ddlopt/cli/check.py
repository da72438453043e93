"""The command ``check``: of a solution, or of the proof of a bound."""

from pathlib import Path
from typing import Annotated, Any

import typer

from ddlopt.cli.shared.arguments import NO_ANSWER, Json, Name, Proof, ProofTimeLimit, Vipr, say
from ddlopt.cli.shared.judged import print_judged
from ddlopt.cli.shared.proven import print_checked

_FINDINGS_S = 30.0
"""For the best plan beside somebody's; most instances are proven much sooner."""


def check(
    name: Name,
    solution: Annotated[
        Path | None, typer.Argument(metavar="SOLUTION", help="A .json file, as `solve --out` writes it.")
    ] = None,
    certificate: Proof = None,
    time_limit: ProofTimeLimit = None,
    vipr: Vipr = None,
    exact: Annotated[bool, typer.Option(help="Calculate in rational numbers, as proofs always do.")] = False,
    source_format: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="FORMAT",
            help="SOLUTION is a file for a framework: megatron, torchtitan, deepspeed or galvatron.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Check a solution: its objective, and every constraint that it violates; or check the proof of a bound.

    Files of `submit` are checked too, alone or as SOLUTION.
    """
    import ddlopt

    if certificate is None and source_format is None and print_judged(name, solution, as_json):
        return
    if solution is None and certificate is None:
        raise typer.BadParameter("give a solution, or a proof with --certificate")
    if certificate is None and (time_limit is not None or vipr is not None):
        raise typer.BadParameter("--time-limit is for --certificate, and so is --vipr; a solution is no proof")
    instance = ddlopt.load(name)
    if certificate is not None:
        print_checked(instance, certificate, solution, time_limit, vipr, as_json)
        return
    assert solution is not None
    from ddlopt.analysis.tables import json_text
    from ddlopt.cli.shared.display import quantity, verdict

    answer: Any = solution if source_format is None else ddlopt.import_plan(instance, solution, source_format)
    evaluation = ddlopt.check(instance, answer, exact=exact)
    objective = None if evaluation.objective is None else float(evaluation.objective)
    if as_json:
        data = {
            "instance": instance.name,
            "instance_digest": instance.digest,
            "family": instance.family,
            "feasible": evaluation.feasible,
            "objective": objective,
            "violations": [
                {"kind": v.kind, "where": v.where, "lhs": float(v.lhs), "rhs": float(v.rhs)}
                for v in evaluation.violations
            ],
            "details": {key: float(value) for key, value in evaluation.details.items()},
        }
        print(json_text(data | ({"exact_objective": str(evaluation.objective)} if exact else {})))
    else:
        say(verdict(instance, evaluation, exact))
        for key, value in evaluation.details.items():
            say(f"{key}: {quantity(key, value if exact else float(value))}")
        if source_format is not None:
            from ddlopt.analysis.advice import findings

            for line in findings(instance, answer, ddlopt.solve(instance, time_limit=_FINDINGS_S)):
                say(line)
    raise typer.Exit(0 if evaluation.feasible else NO_ANSWER)
