"""Commands for proofs that anybody can check: ``certify``, and ``check --certificate``."""

from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ddlopt.arguments import NO_ANSWER, Gap, Json, Name, Seed, Threads, TimeLimit, say

if TYPE_CHECKING:
    from ddlopt.models.contracts import Instance

_LONGEST = 60
"""Of an exact bound in a line; a longer fraction is in the file."""


def command(
    name: Name,
    out: Annotated[Path, typer.Option(metavar="FILE", help="Write the certificate here.")],
    method: Annotated[
        str | None, typer.Option(metavar="M", help="combinatorial, or an exact method; by itself what proves most.")
    ] = None,
    time_limit: TimeLimit = None,
    gap: Gap = 1e-4,
    threads: Threads = 1,
    seed: Seed = 0,
) -> None:
    """Answer one instance and write the proof of its bound, for `check --certificate`."""
    import ddlopt
    from ddlopt.analysis import tables
    from ddlopt.certificates.topology import DesignCertificate
    from ddlopt.certifying import certified
    from ddlopt.display import LiveLine, out_console
    from ddlopt.solvers.contracts import Limits
    from ddlopt.solvers.standard_output import kept_clear

    instance = ddlopt.load(name)
    with LiveLine([instance]) as line, kept_clear():
        progress = line.watch(instance.name, method or "certify")
        found = certified(instance, method, out, Limits(time_limit, gap, threads), seed, progress)
    out_console().print(tables.table([found.result], [instance]))
    certificate = found.certificate
    if isinstance(certificate, DesignCertificate):
        exact = f"{certificate.bound} bytes ({certificate.bound_bytes:.12g})"
        say(f"proven in {out}: every design loads some link with more than {exact}")
    else:
        say(f"proven in {out}: {_says(instance, found.proven)}")
    raise typer.Exit(0 if found.result.status.answered else NO_ANSWER)


def _says(instance: "Instance", proven: Any) -> str:
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
    from ddlopt.proofs import Proven

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
        lines += [f"bound: {_says(instance, checked)}", f"holds: {checked.says}"]
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
