"""Commands for proofs that anybody can check: ``certify``, and ``check --certificate``."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ddlopt.arguments import NO_ANSWER, Gap, Json, Name, Seed, Threads, TimeLimit, say

if TYPE_CHECKING:
    from ddlopt.models.contracts import Instance


def command(
    name: Name,
    out: Annotated[Path, typer.Option(metavar="FILE", help="Write the certificate here.")],
    method: Annotated[str, typer.Option(metavar="M", help="A method that writes certificates.")] = "branch-and-bound",
    time_limit: TimeLimit = None,
    gap: Gap = 1e-4,
    threads: Threads = 1,
    seed: Seed = 0,
) -> None:
    """Answer one instance and write the proof of its bound, for `check --certificate`."""
    import ddlopt
    from ddlopt.analysis import tables
    from ddlopt.display import LiveLine, out_console
    from ddlopt.solvers.standard_output import kept_clear

    instance = ddlopt.load(name)
    with LiveLine([instance]) as line, kept_clear():
        result, certificate = ddlopt.certify(
            instance, method, out=out, time_limit=time_limit, gap=gap, threads=threads, seed=seed,
            progress=line.watch(instance.name, method),
        )  # fmt: skip
    out_console().print(tables.table([result], [instance]))
    exact = f"{certificate.bound} bytes ({certificate.bound_bytes:.12g})"
    say(f"proven in {out}: every design loads some link with more than {exact}")
    raise typer.Exit(0 if result.status.answered else NO_ANSWER)


def print_checked(instance: "Instance", certificate: Path, time_limit: float | None, as_json: Json) -> None:
    """Check a file and print what it proves."""
    import ddlopt
    from ddlopt.analysis.tables import json_text
    from ddlopt.models.errors import RefutedError

    try:
        checked = ddlopt.check_certificate(instance, certificate, time_limit=time_limit)
    except RefutedError as refutation:
        if as_json:
            which = {"instance": instance.name, "instance_digest": instance.digest, "family": instance.family}
            print(json_text({**which, "holds": False, "reason": str(refutation)}))
        raise
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
    say(f"{instance.name}: the certificate holds")
    print(f"busiest link of every design: more than {checked.bound_bytes} bytes ({float(checked.bound_bytes):.12g})")
    print(f"iteration of every design: at least {checked.bound_s} s ({float(checked.bound_s):.12g})")
    print(f"looked at: {checked.nodes} cases, {checked.applications} applied weights, {checked.images} images")
