"""Proofs that anybody can check: :func:`certify` makes them, :func:`check_certificate` trusts nothing in them."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ddlopt.arguments import NO_ANSWER, Gap, Json, Name, Seed, Threads, TimeLimit

if TYPE_CHECKING:
    from ddlopt.models.contracts import Instance
    from ddlopt.models.topology.certificate import Checked, DesignCertificate
    from ddlopt.solvers.contracts import ProgressCallback, Result

WRITER, FAMILY = "branch-and-bound", "topology"
"""The method that writes certificates, and its family."""


def certify(
    instance: "Instance | str | Path",
    method: str = WRITER,
    *,
    out: str | Path | None = None,
    time_limit: float | None = None,
    gap: float = 1e-4,
    threads: int = 1,
    seed: int = 0,
    progress: "ProgressCallback | None" = None,
) -> "tuple[Result, DesignCertificate]":
    """Answer an instance, and keep the proof of its bound; the proof has been checked before you see it.

    Parameters
    ----------
    instance : Instance, str or Path
        See :func:`ddlopt.load`.
    method : str
        One that writes certificates: ``branch-and-bound``, of topologies.
    out : str or Path, optional
        Write the certificate here.
    time_limit, gap, threads, seed, progress
        See :func:`ddlopt.solve`. A search that is stopped has a certificate for the bound that it reached.

    Raises
    ------
    UnknownNameError, NotApplicableError, OptionError, SolverError
        As :func:`ddlopt.solve`; also if the method writes no certificates, or wrote one that does not hold.
    """
    from ddlopt import api
    from ddlopt.models import files
    from ddlopt.models.errors import NotApplicableError, OptionError, SolutionError, SolverError
    from ddlopt.solvers import catalogue
    from ddlopt.solvers.contracts import Limits

    if out is not None:
        files.writable(out)
    problem = api.load(instance)
    if seed < 0:
        raise OptionError(f"seed must not be negative, got {seed}")
    chosen: Any = catalogue.method(method, problem.family)
    if not hasattr(chosen, "certified"):
        raise NotApplicableError(
            f"{method} of {problem.family} writes no certificates; what does: {WRITER} of {FAMILY}"
        )
    result, certificate = chosen.certified(problem, Limits(time_limit, gap, threads), seed, progress)
    try:
        check_certificate(problem, certificate)
    except SolutionError as problem_found:
        raise SolverError(f"{method} wrote a certificate that does not hold: {problem_found}") from None
    if out is not None:
        certificate.save(out)
    return result, certificate


def check_certificate(instance: "Instance | str | Path", certificate: "DesignCertificate | str | Path") -> "Checked":
    """Check that a certificate proves its bound for an instance, as if an enemy had written it.

    Parameters
    ----------
    instance : Instance, str or Path
        See :func:`ddlopt.load`.
    certificate : DesignCertificate, str or Path
        The object, or its file.

    Returns
    -------
    Checked
        The bound, exactly: in bytes on the busiest link, and in seconds of an iteration.

    Raises
    ------
    SolutionError
        If it does not, or is no certificate.
    NotApplicableError
        If the instance is none of topology, or larger than certificates can speak of.
    """
    from ddlopt import api
    from ddlopt.models.errors import NotApplicableError
    from ddlopt.models.topology import TopologyInstance
    from ddlopt.models.topology.certificate import DesignCertificate
    from ddlopt.models.topology.certificate import check_certificate as check

    problem = api.load(instance)
    if not isinstance(problem, TopologyInstance):
        raise NotApplicableError(f"'{problem.name}' is a {problem.kind}; certificates are of topology instances")
    given = certificate if isinstance(certificate, DesignCertificate) else DesignCertificate.from_file(certificate)
    return check(problem, given)


def command(
    name: Name,
    out: Annotated[Path, typer.Option(metavar="FILE", help="Write the certificate here.")],
    method: Annotated[str, typer.Option(metavar="M", help="A method that writes certificates.")] = WRITER,
    time_limit: TimeLimit = None,
    gap: Gap = 1e-4,
    threads: Threads = 1,
    seed: Seed = 0,
) -> None:
    """Answer one instance and write the proof of its bound, for `check --certificate`."""
    import ddlopt
    from ddlopt.analysis import tables
    from ddlopt.display import LiveLine, out_console

    instance = ddlopt.load(name)
    with LiveLine([instance]) as line:
        result, certificate = certify(
            instance, method, out=out, time_limit=time_limit, gap=gap, threads=threads, seed=seed,
            progress=line.watch(instance.name, method),
        )  # fmt: skip
    out_console().print(tables.table([result], [instance]))
    exact = f"{certificate.bound} bytes ({certificate.bound_bytes:.12g})"
    print(f"proven in {out}: every design loads some link with more than {exact}")
    raise typer.Exit(0 if result.status.answered else NO_ANSWER)


def print_checked(instance: "Instance", certificate: Path, as_json: Json) -> None:
    """Check a file and print what it proves."""
    from ddlopt.analysis.tables import json_text

    checked = check_certificate(instance, certificate)
    if as_json:
        data = {
            "instance": instance.name,
            "instance_digest": instance.digest,
            "family": instance.family,
            "holds": True,
            "bound_bytes": float(checked.bound_bytes),
            "exact_bound_bytes": str(checked.bound_bytes),
            "bound_s": float(checked.bound_s),
            "exact_bound_s": str(checked.bound_s),
            "nodes": checked.nodes,
            "applications": checked.applications,
            "images": checked.images,
        }
        print(json_text(data))
        return
    print(f"{instance.name}: the certificate holds")
    print(f"busiest link of every design: more than {checked.bound_bytes} bytes ({float(checked.bound_bytes):.12g})")
    print(f"iteration of every design: at least {checked.bound_s} s ({float(checked.bound_s):.12g})")
    print(f"looked at: {checked.nodes} cases, {checked.applications} applied weights, {checked.images} images")
