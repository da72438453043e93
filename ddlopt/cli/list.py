"""Commands that tell what there is: ``list``, ``show`` and ``schema``."""

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ddlopt import completion
from ddlopt.arguments import Json, Name, Out, emit

if TYPE_CHECKING:
    from ddlopt.instances.index import Listed, ListedProblem
    from ddlopt.models.contracts import Instance
    from ddlopt.solvers.options import Option

_LONG = 20
"""Characters of a default beyond which a list of methods leaves it out."""


def list_(
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
        data += [dataclasses.asdict(each) | {"proven": each.proven, "evidence": _evidence(each)} for each in own]
        if own:
            title = f"{name}: {problem.title}. {len(own)} instances, {sum(each.proven for each in own)} proven"
            rows = [_row(each, problem) for each in own]
            drawn.append(
                FittedTable(rows, left=frozenset({"instance", "proven by", "found by"}), title=title,
                            drop=("found by", "bound", "proven by"))
            )  # fmt: skip
    return {"instances": data}, drawn or ["no instance is like that"]


def _evidence(listed: "Listed") -> str | None:
    """By what the best known solution is proven, None where it is not."""
    from ddlopt.instances.library import certificates

    return certificates.label(listed.name, listed.digest) if listed.proven else None


def best_known_line(name: str) -> str | None:
    """Of a bundled instance the objective that is known and by what it is proven; None of another one."""
    from ddlopt import instances
    from ddlopt.analysis.texts import objective_text
    from ddlopt.instances import index

    listed = index.read().instances.get(instances.find(name) or "")
    if listed is None or listed.objective is None:
        return None
    proof = f"optimal ({_evidence(listed)})" if listed.proven else "not proven optimal"
    return f"best known: {objective_text(listed.objective, listed.unit)}, {proof}"


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
        "proven by": _evidence(listed) or "open",
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


def _method(name: str) -> tuple[dict[str, Any], list[Any]]:
    """A method of any family, by ``NAME`` or ``FAMILY/NAME``, with its options."""
    from rich.text import Text

    from ddlopt.analysis.fitted import FittedTable
    from ddlopt.models.catalogue import FAMILY_NAMES
    from ddlopt.models.errors import plain
    from ddlopt.solvers import aliases, catalogue
    from ddlopt.solvers.names import split
    from ddlopt.solvers.options import told

    data: list[dict[str, Any]] = []
    drawn: list[Any] = []
    for family in FAMILY_NAMES:
        asked = name.removeprefix(f"{family}/")
        known = {entry.name: entry for entry in catalogue.entries(family)}
        entry = known.get(split(aliases.present(asked, family))[0])
        if entry is None:
            continue
        method = catalogue.method(asked, family)
        rows = [option._asdict() for option in told(method)]
        data.append({"family": family, "method": method.name, "kind": entry.kind, "summary": entry.summary,
                     "options": rows})  # fmt: skip
        drawn.append(Text(plain(f"{family}/{method.name}: {entry.summary} ({entry.kind})")))
        shown = [{"option": row["name"], "may be": row["values"], "is": row["default"], "what it is": row["meaning"]}
                 for row in rows]  # fmt: skip
        drawn.append(FittedTable(shown, left=frozenset(shown[0]), fold=("may be", "what it is", "is")) if shown
                     else "It has no options.")  # fmt: skip
    return {"methods": data}, drawn


def show(name: Name, as_json: Json = False) -> None:
    """Show an instance: sizes, optimum, methods that cover it. Or a method (NAME or FAMILY/NAME): its options."""
    from rich.table import Table
    from rich.text import Text

    import ddlopt
    from ddlopt.analysis.fitted import out_console
    from ddlopt.analysis.texts import json_text
    from ddlopt.models.errors import UnknownNameError, plain

    try:
        instance = ddlopt.load(name)
    except UnknownNameError:
        found, drawn = _method(name)
        if not drawn:
            raise
        if as_json:
            print(json_text(found))
        for each in () if as_json else drawn:
            out_console().print(each)
        return
    facts = _facts(name, instance)
    if as_json:
        print(json_text(facts | {"fields": instance.model_dump(mode="json")}))
        return
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for label, text in _told(instance, facts):
        whole = label == "digest"  # half of one is no use, and to break it is worse
        table.add_row(Text(label), Text(plain(text), no_wrap=whole, overflow="ellipsis" if whole else "fold"))
    out_console().print(table)


def _facts(name: str, instance: "Instance") -> dict[str, Any]:
    """What is known of an instance, as data."""
    from ddlopt.analysis.views import size_of
    from ddlopt.models.catalogue import problem_of

    problem = problem_of(instance)
    return {
        "name": instance.name,
        "problem": problem.path,
        "decides": problem.title,
        "size": size_of(instance),
        "counts": problem.counts,
        "limits": problem.limited_by,
        "source": instance.source,
        "sense": instance.sense,
        "unit": instance.objective_unit,
        "digest": instance.digest,
        **_known(name, instance),
        **_covering(instance),
    }


def _known(name: str, instance: "Instance") -> dict[str, Any]:
    """The best known solution and the best bound: of a bundled instance as recorded, of a file what needs no solver."""
    from ddlopt import instances
    from ddlopt.analysis.index import gap_of, run_text
    from ddlopt.instances.index import read
    from ddlopt.models.catalogue import family

    record = instances.record(name) if instances.find(name) else None
    found, bound = (None, None) if record is None else (record.found, record.bound)
    value = bound.value if bound else family(instance.family).bound(instance)
    listed = _listed(instance)
    return {
        "licence": listed and read().instances[listed].licence,
        "objective": found and found.objective,
        "found_by": found and run_text(found),
        "bound": value,
        "bound_by": run_text(bound) if bound else ("combinatorial" if value is not None else None),
        "gap": gap_of(record, instance),
    }


def _covering(instance: "Instance") -> dict[str, Any]:
    """The methods that cover an instance, by kind, and the one by default: from the index where it has the instance."""
    import ddlopt
    from ddlopt.instances.index import read
    from ddlopt.solvers import catalogue

    entries = catalogue.entries(instance.family)
    own = {entry.name for entry in catalogue.own_entries(instance.family)}
    listed = _listed(instance)
    known = set(read().instances[listed].methods) if listed else set()
    covering = [
        entry
        for entry in entries
        if (entry.name in known if listed and entry.name in own else entry.make("highs").refuses(instance) is None)
    ]
    default = read().instances[listed].default_method if listed else ddlopt.default_method(instance)
    return {
        "methods": {kind: [entry.name for entry in covering if entry.kind == kind]
                    for kind in dict.fromkeys(entry.kind for entry in covering)},
        "default_method": default,
    }  # fmt: skip


def _listed(instance: "Instance") -> str | None:
    """The name under which the index has this very instance."""
    from ddlopt.instances.index import read

    name = f"{instance.family}/{instance.name}"
    known = read().instances.get(name)
    return name if known is not None and known.digest == instance.digest else None


def _told(instance: "Instance", facts: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The same for people."""
    from ddlopt.analysis.texts import gap_text, objective_text
    from ddlopt.display import profile

    unit, goal = facts["unit"], f"{facts['sense']}, {'seconds' if facts['unit'] == 's' else facts['unit'] or 'no unit'}"
    yield "name", facts["name"]
    yield "problem", f"{facts['problem']}: {facts['decides']}"
    yield "sense", goal
    yield "limited by", facts["limits"]
    yield from profile(instance)
    yield "source", facts["source"] + (f" ({facts['licence']})" if facts["licence"] else "")
    yield "digest", facts["digest"]
    if facts["found_by"]:
        yield "best known", f"{objective_text(facts['objective'], unit)} by {facts['found_by']}"
    bound = objective_text(facts["bound"], unit, like=facts["objective"])
    yield "bound", f"{bound} by {facts['bound_by']}" if facts["bound_by"] else bound
    yield "gap", gap_text(facts["gap"])
    for kind, names in facts["methods"].items():
        yield _PLURALS.get(kind, kind), ", ".join(names)
    yield "by default", facts["default_method"]


_PLURALS = {"exact": "exact", "heuristic": "heuristics", "reference": "references"}


def schema(
    family: Annotated[str, typer.Argument(metavar="FAMILY", autocompletion=completion.families)],
    solution: Annotated[bool, typer.Option("--solution", help="The schema of solutions.")] = False,
    out: Out = None,
) -> None:
    """Print the JSON schema of a family's instances or solutions, or of a cluster's file (`cluster-file`)."""
    import ddlopt
    from ddlopt.analysis.tables import json_text

    emit(json_text(ddlopt.schema(family, solution=solution)), out)
