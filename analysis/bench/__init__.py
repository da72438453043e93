"""Sweeps: many solves, each in a process of its own, every result kept in a store as soon as it is there."""

from ddlopt.analysis.bench.store import Store
from ddlopt.analysis.bench.sweep import Sweep
from ddlopt.analysis.bench.tasks import Task, plan

__all__ = ["Store", "Sweep", "Task", "plan"]
