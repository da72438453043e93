"""Mathematical-optimization models for distributed deep learning: exact optima, the papers' heuristics, certified gaps.

>>> import ddlopt
>>> result = ddlopt.solve("topology/all-to-all-n6-d2")  # doctest: +SKIP
>>> result.objective, result.bound, result.checked  # doctest: +SKIP
(4.2, 4.2, True)

Everything here is imported on first use, so that ``import ddlopt`` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ddlopt.analysis.bench.public import bench, frame, report
    from ddlopt.analysis.certify import certify, check_certificate
    from ddlopt.api import (
        check,
        compare,
        convert,
        default_method,
        describe,
        families,
        generate,
        load,
        methods,
        names,
        schema,
        solve,
    )
    from ddlopt.instances.plans import export_plan, import_plan
    from ddlopt.models.contracts import Evaluation, Formulation, Instance, Solution, Violation
    from ddlopt.models.errors import DdloptError
    from ddlopt.solvers.contracts import Limits, Method, Result, Status, TracePoint

    __version__: str

__all__ = [
    "DdloptError",
    "Evaluation",
    "Formulation",
    "Instance",
    "Limits",
    "Method",
    "Result",
    "Solution",
    "Status",
    "TracePoint",
    "Violation",
    "__version__",
    "bench",
    "certify",
    "check",
    "check_certificate",
    "compare",
    "convert",
    "default_method",
    "describe",
    "export_plan",
    "families",
    "frame",
    "generate",
    "import_plan",
    "load",
    "methods",
    "names",
    "report",
    "schema",
    "simulate",
    "solve",
]

_ELSEWHERE = {
    "ddlopt.analysis.certify": {"certify", "check_certificate"},
    "ddlopt.analysis.bench.public": {"bench", "frame", "report"},
    "ddlopt.models.contracts": {"Evaluation", "Formulation", "Instance", "Solution", "Violation"},
    "ddlopt.models.errors": {"DdloptError"},
    "ddlopt.analysis.simulation.simulate": {"simulate"},
    "ddlopt.instances.plans": {"export_plan", "import_plan"},
    "ddlopt.solvers.contracts": {"Limits", "Method", "Result", "Status", "TracePoint"},
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'ddlopt' has no attribute '{name}'")
    if name == "__version__":
        return import_module("importlib.metadata").version("ddlopt")
    home = next((module for module, names in _ELSEWHERE.items() if name in names), "ddlopt.api")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
