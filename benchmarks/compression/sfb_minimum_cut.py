"""Sufficient factor broadcasting: minimum cut against HiGHS and against CBC, which TAG uses, on the same graphs.

Random training graphs of growing size; processor seconds, which suffer least from what else a machine does. ``solve``
is what a solver does once it holds the model: for the minimum cut, one in a network that had one before (median of
five); for HiGHS, its run; for CBC, what it prints. ``all`` is from the instance: network, or model, its hand-over (to
CBC as an MPS file) and solve. CBC gets TAG's program, with integral broadcasts, but operators that cannot be duplicated
are fixed, where TAG has a row for all of them. Ratios are to the minimum cut on the same graph in the same run. All
optima must be equal.
"""

import os
import re
import shutil
import statistics
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import highspy
import numpy as np

from benchmarks.harness import Benchmark, Option, timed
from ddlopt.instances.generators import generate
from ddlopt.models.compression import SfbSelection, evaluate
from ddlopt.models.compression.sfb.cut_network import CutNetwork
from ddlopt.models.compression.sfb.formulations.sfb_milp import SfbMilp
from ddlopt.solvers.backends.highs import pass_model
from ddlopt.solvers.backends.matrix import linear_model, load_values
from ddlopt.solvers.backends.silent_highs import SilentHighs
from ddlopt.solvers.exact import build_model

_MIP_GAP = 1e-9


@dataclass
class Run:
    """Processor seconds of a method, and its objective; None where it did not end within the limit."""

    solve_s: float
    all_s: float
    objective: float | None


def clock():
    """Processor seconds of this process and of those that it has waited for."""
    return sum(os.times()[:4])


def min_cut(instance, limit):
    firsts, others = [], []
    for _ in range(5):
        (network, cut), first = timed(cut_of, instance)
        firsts.append(first.processor_s)
        others.append(timed(network.cut)[1].processor_s)
    return Run(statistics.median(others), statistics.median(firsts), objective_of(instance, cut.duplicated))


def cut_of(instance):
    network = CutNetwork(instance)
    return network, network.cut()


def highs_run(instance, limit, relaxed):
    started = clock()
    model, linear = arrays(instance)
    highs = SilentHighs()
    pass_model(highs, linear)
    settings = {"solve_relaxation": relaxed, "threads": 1, "mip_rel_gap": _MIP_GAP, "time_limit": limit}
    for name, value in settings.items():
        highs.setOptionValue(name, value)
    handed = clock()
    highs.run()
    ended = clock()
    objective = None
    if highs.getModelStatus() == highspy.HighsModelStatus.kOptimal:
        objective = objective_from(instance, model, linear, np.asarray(highs.getSolution().col_value))
    return Run(ended - handed, ended - started, objective)


def cbc(instance, limit):
    started = clock()
    model, linear = arrays(instance)
    with tempfile.TemporaryDirectory() as folder:
        mps, answer = Path(folder, "model.mps"), Path(folder, "answer.txt")
        highs = SilentHighs()
        pass_model(highs, linear)
        whole = np.full(len(linear.columns), highspy.HighsVarType.kInteger)
        highs.changeColsIntegrality(len(whole), np.arange(len(whole), dtype=np.int32), whole)
        highs.writeModel(str(mps))
        command = ["cbc", mps, "-sec", str(limit), "-ratio", str(_MIP_GAP), "-solve"]
        told = subprocess.run([*command, "-solution", answer], capture_output=True, text=True, check=True).stdout
        ended = clock()
        values, optimal = read_answer(answer, linear)
    solve_s = float(re.findall(r"Total time \(CPU seconds\):\s+([\d.]+)", told)[-1])
    objective = objective_from(instance, model, linear, values) if optimal else None
    return Run(solve_s, ended - started, objective)


METHODS = {
    "minimum cut": min_cut,
    "HiGHS, relaxation": lambda instance, limit: highs_run(instance, limit, True),
    "HiGHS, integer": lambda instance, limit: highs_run(instance, limit, False),
    "CBC, integer": cbc,
}


def arrays(instance):
    model = build_model("compression", SfbMilp(), instance)
    return model, linear_model(model)


def read_answer(path, linear):
    """Values of the columns c0, c1 … of the file that HiGHS wrote, and whether CBC says that they are optimal."""
    head, *rows = path.read_text().splitlines()
    values = np.zeros(len(linear.columns))
    for row in rows:
        _, name, value, *_ = row.replace("**", "").split()
        values[int(name.removeprefix("c"))] = float(value)
    return values, head.startswith("Optimal")


def objective_from(instance, model, linear, values):
    load_values(linear, values)
    return evaluate(instance, SfbMilp().read(model.compression, instance)).objective


def objective_of(instance, duplicated):
    chosen = tuple(np.flatnonzero(duplicated).tolist())
    return evaluate(instance, SfbSelection(instance=instance.name, duplicated=chosen)).objective


def ratios(asked):
    """Times as slow as the cut."""
    without = {*asked.without, *([] if shutil.which("cbc") else ["CBC, integer"])}
    if "CBC, integer" in without and "CBC, integer" not in asked.without:
        yield "CBC is left out, as it is not installed (apt-get install coinor-cbc)."
    for size in asked.sizes:
        instance = generate(
            "compression", "sfb-random", asked.seed, operators=size, shape=asked.shape, broadcast=asked.broadcast,
            cost_model=asked.cost_model,
        )  # fmt: skip
        edges = sum(len(tensor.consumers) for tensor in instance.tensors)
        runs = {name: run(instance, asked.time_limit) for name, run in METHODS.items() if name not in without}
        least = runs["minimum cut"]
        for name, run in runs.items():
            if run.objective is not None and abs(run.objective - least.objective) > 1e-9 * least.objective:
                raise SystemExit(f"{size} operators: {name} has {run.objective!r}, the cut {least.objective!r}")
            over = "" if run.objective is not None else "> "
            yield {
                "method": name, "operators": f"{size:,}", "edges": f"{edges:,}", "solve s": f"{over}{run.solve_s:.3f}",
                "all s": f"{over}{run.all_s:.2f}", "solve, ratio": f"{over}{run.solve_s / least.solve_s:.1f}",
                "all, ratio": f"{over}{run.all_s / least.all_s:.1f}",
            }  # fmt: skip


BENCH = Benchmark(
    ratios,
    sizes=Option([1000, 3000, 10_000, 30_000, 100_000], "operators", quick=[300]),
    shape=Option("training", choices=["training", "any"]),
    broadcast=Option("per_edge", choices=["per_edge", "per_tensor"]),
    cost_model=Option("per_link", choices=["per_link", "total_bytes", "tag_code"]),
    seed=Option(1),
    time_limit=Option(1800.0, quick=10.0),
    without=Option([], "leave out", choices=list(METHODS)[1:], type=str),
)
