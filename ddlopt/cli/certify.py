"""The command ``certify``: proofs that anybody can check, with ``check --certificate``."""

from pathlib import Path
from typing import Annotated

import typer

from ddlopt.cli.shared.arguments import NO_ANSWER, Gap, Name, Seed, Threads, TimeLimit, say
from ddlopt.cli.shared.proven import proof_text


def certify(
    name: Name,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="Write the certificate here.")],
    method: Annotated[
        str | None,
        typer.Option(metavar="M", help="combinatorial, or an exact method; by default whichever proves most."),
    ] = None,
    time_limit: TimeLimit = None,
    gap: Gap = 1e-4,
    threads: Threads = 1,
    seed: Seed = 0,
) -> None:
    """Solve one instance and write the proof of its bound, for `check --certificate`."""
    import ddlopt
    from ddlopt.analysis import tables
    from ddlopt.analysis.certify import certified
    from ddlopt.certificates.topology import DesignCertificate
    from ddlopt.cli.shared.display import LiveLine, out_console
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
        say(f"proven in {out}: {proof_text(instance, found.proven)}")
    raise typer.Exit(0 if found.result.status.answered else NO_ANSWER)
