"""The command ``list``: problems, instances, methods."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ddlopt.cli.shared import completion
from ddlopt.cli.shared.arguments import Json
from ddlopt.cli.shared.best_known import evidence_of

if TYPE_CHECKING:
    from ddlopt.instances.index import Listed, ListedProblem
    from ddlopt.solvers.options import Option

_LONG = 20
"""Characters of a default beyond which a list of methods leaves it out."""


def list_instances(
    family: Annotated[
        str | None,
        typer.Argument(
            metavar="[FAMILY|PROBLEM]", help="Its instances, e.g. topology or gossip/weights.",
            autocompletion=completion.problems,
        ),
    ] = None,
    open_: Annotated[bool, typer.Option("--open", help="Instances whose optimum is not proven.")] = False,
    proven: Annotated[bool, typer.Option("--proven", help="Instances whose optimum is proven.")] = False,
    max_size: Annotated[
        int | None, typer.Option(metavar="N", help="Instances of at most N servers, jobs, gradients, ….")
    ] = None,
    methods: Annotated[bool, typer.Option("--methods", help="Methods instead of instances.")] = False,
    as_json: Json = False,
) -> None:  # fmt: skip
    """List problems; with a family, a problem or a filter the instances; with --methods the methods."""
    from ddlopt.analysis.fitted import out_console
    from ddlopt.analysis.texts import json_text

    if open_ and proven:
        raise typer.BadParameter("--open and --proven leave nothing; give one of them")
    problems = _problems(family)
    filtered = open_ or proven or max_size is not None
    if methods and filtered:
        raise typer.BadParameter("--methods lists no instances; leave out --open, --proven and --max-size")
    if methods:
        data, drawn = _methods(problems)
    elif family is None and not filtered:
        data, drawn = _overview(problems)
    else:
        data, drawn = _instances(
            problems, lambda each: not (each.proven if open_ else proven and not each.proven)
            and (max_size is None or each.size <= max_size),
        )  # fmt: skip
    if as_json:
        print(json_text(data))
        return
    console = out_console()
    for each in drawn:
        console.print(each)


def _problems(wanted: str | None) -> "dict[str, ListedProblem]":
    """The problems of a family, or the one, or all.

    Raises
    ------
    UnknownNameError
        If there is neither.
    """
    from ddlopt.instances import index
    from ddlopt.models.errors import UnknownNameError

    known = dict(index.read().problems)
    found = {
        name: problem
        for name, problem in known.items()
        if wanted in (None, name, name.partition("/")[0], name.partition("/")[2] or None)
    }
    if not found:
        families = dict.fromkeys(name.partition("/")[0] for name in known)
        several = ", ".join(name for name in known if "/" in name)
        raise UnknownNameError(
            f"there is no family '{wanted}'; there are: {', '.join(families)} (and of problems within them: {several})"
        )
    return found


def _overview(problems: "Mapping[str, ListedProblem]") -> tuple[dict[str, Any], list[Any]]:
    """A line for each problem."""
    from ddlopt.analysis.fitted import FittedTable
    from ddlopt.instances import index

    data, rows = [], []
    for name, problem in problems.items():
        own = [each for each in index.read().instances.values() if each.problem == name]
        proven = sum(each.proven for each in own)
        methods = len({method for each in own for method in each.methods})
        data.append({"problem": name, "decides": problem.title, "instances": len(own), "proven": proven,
                     "methods": methods})  # fmt: skip
        rows.append({"problem": name, "decides": problem.title, "instances": str(len(own)), "proven": str(proven),
                     "methods": str(methods)})  # fmt: skip
    table = FittedTable(rows, left=frozenset({"problem", "decides"}), fold=("decides",), drop=("methods",), narrow=28)
    return {"problems": data}, [table, "Instances: ddlopt list PROBLEM. Methods: ddlopt list PROBLEM --methods."]


def _instances(
    problems: "Mapping[str, ListedProblem]", keeps: "Callable[[Listed], bool]"
) -> tuple[dict[str, Any], list[Any]]:
    """A line for each instance that is kept, problem by problem."""
    import dataclasses

    from ddlopt.analysis.fitted import FittedTable
    from ddlopt.instances import index

    data, drawn = [], []
    for name, problem in problems.items():
        own = [each for each in index.read().instances.values() if each.problem == name and keeps(each)]
        data += [dataclasses.asdict(each) | {"proven": each.proven, "evidence": evidence_of(each)} for each in own]
        if own:
            title = f"{name}: {problem.title}. {len(own)} instances, {sum(each.proven for each in own)} proven"
            rows = [_row(each, problem) for each in own]
            drawn.append(
                FittedTable(rows, left=frozenset({"instance", "proven by", "found by"}), title=title,
                            drop=("found by", "bound", "proven by"))
            )  # fmt: skip
    return {"instances": data}, drawn or ["no instance is like that"]


def _row(listed: "Listed", problem: "ListedProblem") -> dict[str, str]:
    from ddlopt.analysis.texts import NONE, gap_text, objective_text

    sizes = {problem.counts if header == "size" else header: str(size) for header, size in listed.sizes.items()}
    sizes.pop("problem", None)
    return {
        "instance": listed.name,
        **sizes,
        "best known": objective_text(listed.objective, listed.unit),
        "bound": objective_text(listed.bound, listed.unit, like=listed.objective),
        "gap": gap_text(listed.gap),
        "proven by": evidence_of(listed) or "open",
        "found by": listed.found_by or NONE,
    }


def _methods(problems: "Mapping[str, ListedProblem]") -> tuple[dict[str, Any], list[Any]]:
    """The methods of each family; of a problem, those that cover one of its instances."""
    from ddlopt.analysis.fitted import FittedTable
    from ddlopt.analysis.texts import NONE
    from ddlopt.instances import index
    from ddlopt.solvers import catalogue
    from ddlopt.solvers.options import told

    data, drawn = [], []
    listed = index.read()
    for family in dict.fromkeys(name.partition("/")[0] for name in problems):
        wanted = {name for name in problems if name.partition("/")[0] == family}
        whole = wanted == {name for name in listed.problems if name.partition("/")[0] == family}
        of_family = {method for each in listed.instances.values() if each.family == family for method in each.methods}
        covering = {method for each in listed.instances.values() if each.problem in wanted for method in each.methods}
        rows = []
        for entry in catalogue.entries(family):
            if not whole and entry.name in of_family - covering:  # what no instance is known of may be a plug-in's
                continue
            options = told(entry.make("highs"))
            rows.append({"method": entry.name, "kind": entry.kind, "what it does": entry.summary,
                         "options": ", ".join(map(_brief, options)) or NONE})  # fmt: skip
            data.append({"family": family, "method": entry.name, "kind": entry.kind, "summary": entry.summary,
                         "options": [option._asdict() for option in options]})  # fmt: skip
        title = f"{family if whole else ', '.join(wanted)}: methods"
        drawn.append(
            FittedTable(rows, left=frozenset(rows[0]), fold=("what it does", "options"), head=("kind",), title=title)
        )
    return {"methods": data}, [*drawn, "What may be written for an option: ddlopt show METHOD."]


def _brief(option: "Option") -> str:
    """An option and what it is by default, a list without what is in it."""
    return f"{option.name}={'[…]' if len(option.default) > _LONG else option.default}"
