"""The command ``show``: an instance or a method."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ddlopt.cli.shared.arguments import Json, Name

if TYPE_CHECKING:
    from ddlopt.models.contracts import Instance


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
    from ddlopt.cli.shared.display import profile

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


def _method(name: str) -> tuple[dict[str, Any], list[Any]]:
    """A method of any family, by ``NAME`` or ``FAMILY/NAME``, with its options."""
    from rich.text import Text

    from ddlopt.analysis.fitted import FittedTable
    from ddlopt.models.catalogue import FAMILY_NAMES
    from ddlopt.models.errors import plain
    from ddlopt.solvers import catalogue
    from ddlopt.solvers.names import split
    from ddlopt.solvers.options import told

    data: list[dict[str, Any]] = []
    drawn: list[Any] = []
    for family in FAMILY_NAMES:
        asked = name.removeprefix(f"{family}/")
        known = {entry.name: entry for entry in catalogue.entries(family)}
        entry = known.get(split(asked)[0])
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
