"""``index.json`` of the library, from instances, records and methods; read by :mod:`ddlopt.instances.index`."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ddlopt import instances
from ddlopt.analysis.views import size_of, sizes
from ddlopt.instances import library
from ddlopt.instances.library.records import Record, read
from ddlopt.models.catalogue import FAMILY_NAMES, problems
from ddlopt.models.contracts import Instance
from ddlopt.models.files import write_whole
from ddlopt.models.problem import path_of
from ddlopt.solvers import catalogue
from ddlopt.solvers.contracts import Method, relative_gap

_LICENCES = {"CC BY 4.0": "CC-BY-4.0", "CC-BY-4.0": "CC-BY-4.0"}
"""What an instance's source says of a licence that is not our own, and its SPDX identifier."""
_OURS = "Apache-2.0"


def index_data(names: Iterable[str] | None = None) -> dict[str, Any]:
    """The index as plain data: of all bundled instances, or of some."""
    wanted = tuple(instances.names() if names is None else names)
    families = dict.fromkeys(name.split("/")[0] for name in wanted)
    records = {family: read(family) for family in families}
    methods = {family: _own_methods(family) for family in families}
    listed = {}
    for name in wanted:
        family, stem = name.split("/")
        listed[name] = _entry(instances.load(name), records[family].get(stem), methods[family])
    return {
        "problems": {
            path: {"title": problem.title, "counts": problem.counts, "limited_by": problem.limited_by}
            for path, problem in problems().items()
        },
        "instances": listed,
    }


def index_text(data: Mapping[str, Any]) -> str:
    """JSON with a line for each problem and each instance."""
    parts = []
    for key, entries in data.items():
        lines = [f"  {json.dumps(name)}: {json.dumps(entry, ensure_ascii=False)}" for name, entry in entries.items()]
        parts.append(f" {json.dumps(key)}: {{\n" + ",\n".join(lines) + "\n }")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def write_listing() -> bool:
    """Write ``index.json``; whether that changed it."""
    path, text = listing_file(), index_text(index_data())
    if path.is_file() and path.read_text(encoding="utf-8") == text:
        return False
    write_whole(path, text)
    return True


def listing_file() -> Path:
    """Where the file is."""
    return library.library_folder(FAMILY_NAMES[0]).parent / "index.json"


def covering(instance: Instance, methods: Iterable[Method]) -> list[str]:
    """Names of the methods that cover an instance."""
    return [method.name for method in methods if method.refuses(instance) is None]


def _own_methods(family: str) -> list[Method]:
    """Those of ddlopt itself: what else is installed on a machine has no place in the library."""
    return [catalogue.method(entry.name, family) for entry in catalogue.own_entries(family)]


def _entry(instance: Instance, known: Record | None, methods: Iterable[Method]) -> dict[str, Any]:
    digest = instance.digest
    if known is not None and known.instance_digest != digest:
        known = None
    found, bound = (None, None) if known is None else (known.found, known.bound)
    objective = None if found is None else found.objective
    value = None if bound is None else bound.value
    return {
        "problem": path_of(instance),
        "size": size_of(instance),
        "sizes": sizes(instance),
        "sense": instance.sense,
        "unit": instance.objective_unit,
        "objective": objective,
        "bound": value,
        "gap": relative_gap(objective, value, instance.sense),
        "found_by": found and found.by,
        "bound_by": bound and bound.by,
        "source": instance.source,
        "licence": next((spdx for said, spdx in _LICENCES.items() if said in instance.source), _OURS),
        "digest": digest,
        "methods": covering(instance, methods),
        "default_method": catalogue.default_method(instance),
    }
