"""The command ``generate``; with a family or a kind its help lists kinds or options."""

from collections.abc import Sequence
from typing import Annotated

import typer

from ddlopt.cli.shared import completion
from ddlopt.cli.shared.arguments import ClusterFile, Out, Seed, Settings, emit, options_of
from ddlopt.cli.shared.formats import AskedCommand, told_line, value_after


class KindsCommand(AskedCommand):
    """A command whose help ends with the options of the kind that is asked for, or with the kinds of the family."""

    def lines(self) -> list[str]:
        """Kinds, or options of a kind."""
        return _kinds(*_family_and_kind(self.asked))


def _family_and_kind(words: Sequence[str]) -> tuple[str | None, str | None]:
    """The family and the kind among words of a command line."""
    from ddlopt.models.catalogue import FAMILY_NAMES

    joined = (part for word in words for part in word.split("=", 1))
    return next((word for word in joined if word in FAMILY_NAMES), None), value_after(words, "--kind")


def _kinds(family: str | None, kind: str | None) -> list[str]:
    from ddlopt.instances.generators import kinds
    from ddlopt.instances.generators.told import told

    if family is None:
        return ["ddlopt generate FAMILY --help lists the kinds of a family."]
    if kind not in kinds(family):
        return [f"Kinds: {', '.join(kinds(family))}.", f"ddlopt generate {family} --kind K --help tells their options."]
    lines = [f"What --set takes for {kind}:"]
    lines += [told_line(*option) for option in told(family, kind)]
    return [*lines, "and any field of the instance that is not generated (ddlopt schema)."]


def generate(
    family: Annotated[str, typer.Argument(metavar="FAMILY", autocompletion=completion.families)],
    kind: Annotated[str, typer.Option(metavar="K", help="all-to-all, random, dlrm, …; with --help its options.")] = "",
    servers: Annotated[int | None, typer.Option(metavar="N", help="Servers.")] = None,
    degree: Annotated[int | None, typer.Option(metavar="D", help="Interfaces of each server.")] = None,
    jobs: Annotated[str | None, typer.Option(metavar="J|FILE", help="How many; of a cluster, or their file.")] = None,
    slots: Annotated[int | None, typer.Option(metavar="T", help="Slots of time.")] = None,
    seed: Seed = 0,
    cluster: ClusterFile = None,
    settings: Settings = None,
    out: Out = None,
) -> None:
    """Generate an instance from a seed; the sizes that it needs depend on the family.

    `generate cluster --jobs FILE --cluster FILE` takes jobs from a file instead.
    """
    import ddlopt

    if family == "cluster" and jobs is not None and not kind:
        told = options_of(settings, servers=servers, degree=degree, slots=slots, cluster=cluster)
        emit(ddlopt.convert(jobs, "cluster-jobs", **told).to_json(), out)
        return
    if not kind:
        known = ", ".join(ddlopt.instances.kinds(family))
        other = "; or give --jobs FILE" if family == "cluster" else ""
        raise typer.BadParameter(f"Missing option '--kind'; those of {family}: {known}{other}")
    try:
        count = None if jobs is None else int(jobs)
    except ValueError:
        raise typer.BadParameter(
            f"--jobs {jobs}: it is how many jobs there are; a cluster's file goes without --kind"
        ) from None
    sizes = {"servers": servers, "degree": degree, "jobs": count, "slots": slots, "cluster": cluster}
    emit(ddlopt.generate(family, kind, **options_of(settings, seed=seed, **sizes)).to_json(), out)
