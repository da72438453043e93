"""What the shell completes: instances, methods, families, formats; from the library's index, so that nothing waits."""

from pathlib import Path

import typer

from ddlopt.instances import index

_FILES = (".json", ".json.gz")


def instances(context: typer.Context, incomplete: str) -> list[str]:
    """Bundled instances, or files that may hold one."""
    known = index.read().instances
    found = [name for name in known if name.startswith(incomplete)]
    if not found and "/" not in incomplete:
        found = [name for name in known if name.partition("/")[2].startswith(incomplete)] if incomplete else []
    return found + _files(incomplete)


def problems(incomplete: str) -> list[str]:
    """Families and problems."""
    known = index.read().problems
    names = dict.fromkeys([*(name.partition("/")[0] for name in known), *known])
    return [name for name in names if name.startswith(incomplete)]


def families(incomplete: str) -> list[str]:
    """Families."""
    return [name for name in problems(incomplete) if "/" not in name]


def methods(context: typer.Context, incomplete: str) -> list[str]:
    """Methods that cover the instances on the command line, after the last comma; all where there is none."""
    before, comma, word = incomplete.rpartition(",")
    given = context.params.get("names") or context.params.get("name") or ()
    known = index.read().instances
    wanted = [known[name] for name in ([given] if isinstance(given, str) else given) if name in known]
    found = dict.fromkeys(method for each in wanted or known.values() for method in each.methods)
    return [f"{before}{comma}{method}" for method in sorted(found) if method.startswith(word)]


def formats(incomplete: str) -> list[str]:
    """Formats that can be read."""
    from ddlopt.instances import readers

    return [name for name in readers.FORMATS if name.startswith(incomplete)]


def plan_formats(context: typer.Context, incomplete: str) -> list[str]:
    """Formats of plans, of those for the instance on the command line where it is a bundled one."""
    from ddlopt.instances import load, writers

    name = context.params.get("name") or ""
    found = writers.formats_of(load(name)) if name in index.read().instances else writers.FORMATS
    return [each for each in found if each.startswith(incomplete)]


def _files(incomplete: str) -> list[str]:
    """Files and folders that begin so; without a word nothing, as there may be thousands."""
    if not incomplete:
        return []
    whole = Path(incomplete)
    folder, start = (whole, "") if incomplete.endswith("/") else (whole.parent, whole.name)
    try:
        entries = sorted(folder.iterdir()) if folder.is_dir() else []
    except OSError:
        return []
    matching = (entry for entry in entries if entry.name.startswith(start))
    return [
        f"{entry}/" if entry.is_dir() else str(entry) for entry in matching if entry.is_dir() or _may_hold_one(entry)
    ]


def _may_hold_one(file: Path) -> bool:
    return file.name.endswith(_FILES)
