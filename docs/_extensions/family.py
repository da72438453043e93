"""Directives that document a family from what is installed, so that nothing of it can be forgotten.

.. code-block:: rst

    .. formulations:: topology
    .. methods:: topology heuristic
    .. building-blocks:: topology
    .. modules:: ddlopt.instances.readers

The first documents every formulation, the second every class behind the methods of a kind that is not a formulation,
the third all that is left of the family's modules, and the last all modules of a package.
"""

import importlib
import inspect
import pkgutil
import sys
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from itertools import chain
from types import ModuleType
from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.util.docutils import SphinxDirective

from ddlopt.solvers.catalogue import entries
from ddlopt.solvers.exact import Exact
from ddlopt.solvers.wrappers.warm_started import WarmStarted

KINDS = ("exact", "heuristic", "reference")
"""Of methods; a class behind methods of several is documented with the first."""

STOREYS = ("models", "certificates", "solvers", "frontier")
"""The packages in which a family has a room."""


def modules(package: str) -> list[Any]:
    """The modules of a package and of the packages in it, imported."""
    folder = importlib.import_module(package)
    found = (each for each in pkgutil.walk_packages(folder.__path__, f"{package}.") if not each.ispkg)
    return [importlib.import_module(each.name) for each in found]


def own(module: Any) -> Iterator[Any]:
    """The public classes and functions that a module defines itself."""
    for name, thing in vars(module).items():
        if not name.startswith("_") and getattr(thing, "__module__", "") == module.__name__:
            yield thing


def formulations(family: str) -> list[type[Any]]:
    """The classes of a family that fill a Pyomo block or give a problem of CVXPY."""
    classes = (
        thing for module in modules(f"ddlopt.models.{family}") for thing in own(module) if inspect.isclass(thing)
    )
    return [each for each in classes if hasattr(each, "build") or hasattr(each, "problem")]


def behind(family: str, kinds: Iterable[str]) -> dict[type[Any], list[str]]:
    """The classes behind a family's methods of these kinds, each with the names of its methods."""
    found: dict[type[Any], list[str]] = {}
    for entry in entries(family):
        method = entry.make("highs")
        kind = type(method.formulation) if isinstance(method, Exact) else type(method)
        if entry.kind in kinds and kind is not WarmStarted and kind.__module__.startswith("ddlopt."):
            found.setdefault(kind, []).append(entry.name)
    return found


def class_lines(kind: type[Any], names: Iterable[str]) -> Iterator[str]:
    """The lines that document a class; one that several families share is in no index, as it can be there once."""
    shared = kind.__module__.count(".") == 2 or kind.__module__.startswith("ddlopt.solvers.wrappers.")
    yield from (f".. autoclass:: {kind.__module__}.{kind.__qualname__}", "   :no-members:")
    yield from ("   :no-index:", "") if shared else ("",)
    if names:
        yield from (f"   As a method: {', '.join(f'``{name}``' for name in names)}.", "")


class _Generated(SphinxDirective):
    required_arguments = 1
    optional_arguments = 3

    def run(self) -> list[nodes.Node]:
        """Parse the lines that stand for the directive."""
        return self.parse_text_to_nodes("\n".join(self.lines(*self.arguments)), allow_section_headings=False)

    def lines(self, family: str, *kinds: str) -> Iterator[str]:
        """What the directive stands for."""
        raise NotImplementedError


class Formulations(_Generated):
    """Every formulation of a family."""

    def lines(self, family: str, *kinds: str) -> Iterator[str]:
        """A class after the other, those behind methods first."""
        methods = behind(family, KINDS)
        for kind in sorted(formulations(family), key=lambda kind: kind not in methods):
            yield from class_lines(kind, methods.get(kind, ()))


class Methods(_Generated):
    """Every class behind the methods of a kind, apart from formulations."""

    def lines(self, family: str, *kinds: str) -> Iterator[str]:
        """A class after the other, in the order of the methods."""
        earlier = KINDS[: KINDS.index(kinds[0])]
        known = {*formulations(family), *behind(family, earlier)}
        for kind, names in behind(family, kinds).items():
            if kind not in known:
                yield from class_lines(kind, names)


class BuildingBlocks(_Generated):
    """What else there is in the modules of a family."""

    def lines(self, family: str, *kinds: str) -> Iterator[str]:
        """A module after the other, without what other pages document."""
        package = importlib.import_module(f"ddlopt.models.{family}")
        # A class is found under its home as well as where it is handed on; a function only where it is documented.
        elsewhere = [thing for name in package.__all__ if inspect.isclass(thing := getattr(package, name))]
        elsewhere += [*formulations(family), *behind(family, KINDS)]
        rooms = [f"ddlopt.{storey}.{family}" for storey in STOREYS if find_spec(f"ddlopt.{storey}.{family}")]
        for module in chain.from_iterable(map(modules, rooms)):
            left_out = [thing.__name__ for thing in own(module) if thing in elsewhere]
            # What a module hands on by its ``__all__`` stands at its home.
            left_out += [name for name in getattr(module, "__all__", ()) if _is_from_elsewhere(module, name)]
            room, _, name = module.__name__.rpartition(".")
            of_a_problem = room == package.__name__ or find_spec(f"{room}.instance") is not None
            # On the family's page, or of no interest.
            if name.endswith("methods") or (name in ("bounds", "evaluate") and of_a_problem):
                continue
            yield f".. automodule:: {module.__name__}"
            if left_out:
                yield f"   :exclude-members: {', '.join(left_out)}"
            yield ""


def _is_from_elsewhere(module: ModuleType, name: str) -> bool:
    """Whether a class that a module hands on was made in another."""
    thing = getattr(module, name)
    return inspect.isclass(thing) and thing.__module__ != module.__name__


class Modules(_Generated):
    """All modules of a package, those in the packages named after it apart."""

    def lines(self, family: str, *kinds: str) -> Iterator[str]:
        """A module after the other."""
        for module in modules(family):
            if not module.__name__.startswith(tuple(f"{kind}." for kind in kinds)):
                yield from (f".. automodule:: {module.__name__}", "")


def link_by_scope(_app: Any, doctree: nodes.document) -> None:
    """Let the bare names in types mean what they mean in their module; words such as "number" are no names.

    Sphinx would take any class or field of that name, in whichever module.
    """
    for link in list(doctree.findall(pending_xref)):
        if link.get("refdomain") == "py" and link.hasattr("refspecific") and "." not in link["reftarget"]:
            meant = getattr(sys.modules.get(link.get("py:module") or ""), link["reftarget"], None)
            if inspect.isclass(meant):
                link["reftarget"] = f"{meant.__module__}.{meant.__qualname__}"
            else:
                link.replace_self(link.children)


DIRECTIVES = {
    "formulations": Formulations,
    "methods": Methods,
    "building-blocks": BuildingBlocks,
    "modules": Modules,
}


def setup(app: Any) -> dict[str, bool]:
    """Called by Sphinx."""
    for name, directive in DIRECTIVES.items():
        app.add_directive(name, directive)
    app.connect("doctree-read", link_by_scope)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
