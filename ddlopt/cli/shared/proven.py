"""What a proof says, as ``certify`` and ``check --certificate`` tell it."""

from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ddlopt.cli.shared.arguments import NO_ANSWER, Json, say

if TYPE_CHECKING:
    from ddlopt.models.contracts import Instance

_LONGEST = 60
"""Of an exact bound in a line; a longer fraction is in the file."""


def proof_text(instance: "Instance", proven: Any) -> str:
    """What a proof says, in a line."""
    side = "at least" if instance.sense == "minimize" else "at most"
    near = f"{float(proven.bound):.12g}"
    exact, near = (str(proven.bound), f" ({near})") if len(str(proven.bound)) <= _LONGEST else (near, "")
    return f"every solution has {side} {exact} {instance.objective_unit}".rstrip() + near


def print_checked(
    instance: "Instance",
    certificate: Path,
    solution: Path | None,
    time_limit: float | None,
    vipr: Path | None,
    as_json: Json,
) -> None:
    """Check a file and print what it proves, beside a solution if there is one."""
    import ddlopt
    from ddlopt.analysis.tables import json_text
    from ddlopt.models.errors import RefutedError
    from ddlopt.solvers.proofs import Proven

    evaluation = None if solution is None else ddlopt.check(instance, solution, exact=True)
    data: dict[str, Any] = {"instance": instance.name, "instance_digest": instance.digest, "family": instance.family}
    try:
        checked = ddlopt.check_certificate(instance, certificate, time_limit=time_limit, vipr=vipr)
    except RefutedError as refutation:
        if as_json:
            print(json_text({**data, "holds": False, "reason": str(refutation)}))
        raise
    data["holds"] = True
    lines = []
    bound = checked.bound
    if isinstance(checked, Proven):
        data |= {"kind": checked.kind, "nodes": checked.nodes, "says": checked.says}
        lines += [f"bound: {proof_text(instance, checked)}", f"holds: {checked.says}"]
        lines += [f"looked at: {checked.nodes} cases"] if checked.nodes else []
    else:
        data |= {
            "bound_bytes": float(checked.bound_bytes),
            "exact_bound_bytes": str(checked.bound_bytes),
            "bound_s": float(checked.bound_s),
            "exact_bound_s": str(checked.bound_s),
            "nodes": checked.nodes,
            "applications": checked.applications,
            "images": checked.images,
        }
        lines += [
            f"busiest link of every design: more than {checked.bound_bytes} bytes ({float(checked.bound_bytes):.12g})",
            f"iteration of every design: at least {checked.bound_s} s ({float(checked.bound_s):.12g})",
            f"looked at: {checked.nodes} cases, {checked.applications} applied weights, {checked.images} images",
        ]
    data |= {"bound": float(bound), "exact_bound": str(bound)}
    feasible, contradiction = True, ""
    if evaluation is not None:
        objective, feasible = evaluation.objective, evaluation.feasible
        told = "none" if objective is None else f"{objective} ({float(objective):.12g})"
        data |= {"feasible": feasible, "exact_objective": None if objective is None else str(objective)}
        lines += [f"solution: {'feasible' if feasible else f'not feasible: {evaluation.violations[0]}'}"]
        lines += [f"objective: {told}"]
        if feasible and objective is not None:
            distance = Fraction(objective) - bound if instance.sense == "minimize" else bound - Fraction(objective)
            if distance < 0:
                contradiction = _contradiction(instance, certificate, bound, solution, Fraction(objective))
                data |= {"contradiction": contradiction}
                lines += [contradiction]
            elif objective:
                gap = distance / abs(Fraction(objective))
                data |= {"gap": float(gap), "exact_gap": str(gap)}
                lines += [f"gap: {gap} ({float(gap):.3g})"]
    if as_json:
        print(json_text(data))
    else:
        say(
            f"{instance.name}: the certificate {'and the solution contradict each other' if contradiction else 'holds'}"
        )
        print("\n".join(lines))
    if contradiction or not feasible:
        raise typer.Exit(NO_ANSWER)


def _contradiction(
    instance: "Instance", certificate: Path, bound: Fraction, solution: Path | None, objective: Fraction
) -> str:
    """What is said where two checks cannot both be right; that is a defect of ours, whichever is wrong."""
    side = "ABOVE" if instance.sense == "minimize" else "BELOW"
    unit = f" {instance.objective_unit}".rstrip()
    return (
        f"CONTRADICTION: THE BOUND {float(bound):.12g}{unit} OF {certificate} IS {side} THE CHECKED OBJECTIVE "
        f"{float(objective):.12g}{unit} OF {solution}; one of the two checks is wrong, please report both files"
    )
