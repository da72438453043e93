"""Rows of the store: what is kept of an instance, and of a solve, whatever became of it."""

import signal
import socket
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from ddlopt.analysis.bench.origin import machine, revision
from ddlopt.analysis.bench.tasks import Task
from ddlopt.analysis.views import sizes
from ddlopt.models.contracts import Instance


class Finished(NamedTuple):
    """What a solve came to: a row of ``runs`` and one of ``instances``."""

    run: dict[str, Any]
    instance: dict[str, Any]


class Described:
    """Rows of ``instances``, made once each."""

    def __init__(self) -> None:
        self._rows: dict[str, dict[str, Any]] = {}

    def of(self, task: Task) -> Mapping[str, Any]:
        """The row of a task's instance."""
        if task.digest not in self._rows:
            self._rows[task.digest] = instance_row(task.load(), task)
        return self._rows[task.digest]


def instance_row(instance: Instance, task: Task) -> dict[str, Any]:
    """What the store keeps of an instance."""
    from ddlopt import instances
    from ddlopt.models.catalogue import family

    best = instances.best(task.instance) if task.text is None else None
    objective = None if best is None else family(instance.family).evaluate(instance, best).objective
    return {
        "digest": task.digest,
        "name": instance.name,
        "family": instance.family,
        "sense": instance.sense,
        "unit": instance.objective_unit,
        "sizes": sizes(instance),
        "source": instance.source,
        "best_objective": None if objective is None else float(objective),
    }


def run_row(task: Task, described: Mapping[str, Any], outcome: dict[str, Any], wall_s: float) -> dict[str, Any]:
    """What the store keeps of a solve on this machine.

    Parameters
    ----------
    task : Task
    described : mapping
        The instance's row.
    outcome : dict
        As :func:`no_outcome` has it.
    wall_s : float
        Seconds from the start of its process to the end.
    """
    return {
        "key": task.key,
        "instance_digest": task.digest,
        "instance": described["name"],
        "family": task.family,
        "method": task.method,
        "options": task.options,
        "solver": task.solver,
        "seed": task.seed,
        "time_limit_s": task.limits.time_s,
        "gap_limit": task.limits.gap,
        "threads": task.limits.threads,
        "memory_limit_bytes": task.memory_bytes,
        "wall_s": wall_s,
        "host": socket.gethostname(),
        "machine": machine(),
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": task.versions,
        "revision": revision(),
        **outcome,
    }


def no_outcome(
    status: str, message: str, runtime_s: float = 0.0, claims: Sequence[float | None] = (None, None)
) -> dict[str, Any]:
    """The outcome of a solve that gave no result.

    Parameters
    ----------
    status, message : str
    runtime_s : float
    claims : sequence of float or None
        Incumbent and bound that it reported last. Nobody has checked them, so they are kept among the details.
    """
    named = zip(("claimed_objective", "claimed_bound"), claims, strict=True)
    return {
        "status": status, "objective": None, "bound": None, "evidence": None, "gap": None,
        "checked": False, "found_by": None, "proved_by": None,
        "scope": None, "scope_bound": None, "runtime_s": runtime_s, "compile_s": 0.0, "answer_s": None,
        "peak_memory_bytes": None, "message": message,
        "details": {name: claim for name, claim in named if claim is not None}, "trace": [], "solution": None,
    }  # fmt: skip


def ended(exit_code: int) -> tuple[str, str]:
    """Status and message of a solve whose process ended by itself without a result."""
    if exit_code == -signal.SIGKILL:
        return "out_of_memory", "killed by the system, which does so where memory is short"
    how = f"by {signal.Signals(-exit_code).name}" if exit_code < 0 else f"with exit code {exit_code}"
    return "crashed", f"the process ended {how}"
