"""Orders of micro-batches: how time grows with devices and micro-batches, beside CP-SAT and beside published orders.

    python benchmarks deployment/order_rivals growth
    python -m venv cp-sat && cp-sat/bin/pip install ortools
    python benchmarks deployment/order_rivals cp_sat --python cp-sat/bin/python
    python benchmarks deployment/order_rivals published --published zero-bubble-pipeline-parallelism

CP-SAT is in a process of its own. The last one runs the generators of a checkout of
sail-sg/zero-bubble-pipeline-parallelism on the same input as ours, and looks at both orders with one evaluation; the
two packages that these import and hardly use are replaced where they are not installed.
"""

import contextlib
import importlib.util
import io
import json
import subprocess
import sys
import types
from pathlib import Path

from benchmarks.deployment.cp_sat import require
from benchmarks.harness import Benchmark, Option, Skipped, clocked
from ddlopt.instances.generators.deployment import generate
from ddlopt.models.deployment import MicroBatchOrder
from ddlopt.models.deployment.microbatches.bounds import ticks_bound
from ddlopt.models.deployment.microbatches.evaluate import evaluate_order
from ddlopt.models.deployment.microbatches.ticks import B, F, W, exact_ticks
from ddlopt.solvers import catalogue

GROWTH = ((2, 4), (3, 6), (4, 8), (4, 12), (4, 16), (6, 12), (8, 16), (8, 24))
METHODS = ("exact", "counted-starts", "ordered-passes")
TIMES = {"1 : 1 : 1": (1, 1, 1, 0), "2 : 3 : 1": (2, 3, 1, 0), "3 : 4 : 2, transfers 1": (3, 4, 2, 1)}
"""F : B : W and transfers."""
SIZES = ((2, 4), (4, 8), (4, 12), (8, 24))
PACKAGE = "megatron.core.pipeline_parallel.zerobubble.scheduler"


def between(p, n, objective="span"):
    """Unit times in the memory between those of ZB-H1 and ZB-H2, where the papers have no order."""
    return generate("microbatches", 1, stages=p, micro_batches=n, memory=p + 1.0, objective=objective)


def growth(asked):
    """Seconds of the processor until proven, or the gap that is left; unit times, room for p + 1 micro-batches."""
    for p, n in GROWTH[: asked.settings]:
        row = {"devices": p, "micro-batches": n}
        for name in METHODS:
            result, spent = clocked(name, between(p, n), asked.limits)
            row[name] = "refused" if result is None else told(result, spent, asked)
        yield row


def told(result, spent, asked):
    if result.gap is None or result.gap > asked.limits.gap:
        return "–" if result.gap is None else f"gap {result.gap:.1%}"
    return f"{spent.processor_s:.1f} s"


def cp_sat(asked):
    """The same pipelines by CP-SAT."""
    require(asked)
    for p, n in GROWTH[: asked.settings]:
        for objective in ("span", "makespan"):
            instance = between(p, n, objective)
            result, spent = clocked("exact", instance, asked.limits)
            theirs = answer_of(asked, instance)
            row = {"devices": p, "micro-batches": n, "least": objective, "`exact`": told(result, spent, asked)}
            best, bound = theirs["objective"], theirs["bound"]
            proven = best is not None and best <= bound
            shown = (
                f"{theirs['processor_s']:.1f} s" if proven else f"{bound:g} to {'–' if best is None else f'{best:g}'}"
            )
            yield row | {"optimum": f"{result.objective:g}", "CP-SAT": shown}


def answer_of(asked, instance):
    """CP-SAT's, from a process of the other environment."""
    ticks = exact_ticks(instance)
    number = {kind: k for k, kind in enumerate(ticks.kinds)}
    data = {
        "micro_batches": instance.micro_batches,
        "most": 3 * sum(ticks.work),
        "low": ticks_bound(ticks) if asked.bounded else 0,
        "times": [[ticks.time[kind]] for kind in ticks.kinds],
        "waits": [(number[kind], number[one], lag) for kind in ticks.kinds for one, lag in ticks.waits[kind]],
        "on": [[number[kind] for kind in own] for own in ticks.on],
        "held": [
            [(number[c, F], number[c, k], ticks.cells[c, k]) for c, k in own if k in (B, W) and ticks.cells[c, k]]
            for own in ticks.on
        ],
        "room": list(ticks.room),
        "span": instance.objective == "span",
        "time_limit": asked.time_limit,
    }
    script = Path(__file__).with_name("order_cp_sat_model.py")
    done = subprocess.run(
        [asked.python, "-I", str(script)], input=json.dumps(data), capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    return json.loads(done.stdout)


def published(asked):
    """Spans and makespans of published generators' orders and of ours, in the memory of each."""
    if not asked.published:
        raise Skipped("give --published FOLDER, a checkout of sail-sg/zero-bubble-pipeline-parallelism")
    folder = Path(asked.published)
    inner = folder / PACKAGE.replace(".", "/")
    theirs = Published(inner if inner.is_dir() else folder)
    for label, (f, b, w, lag) in TIMES.items():
        for p, n in SIZES[: asked.settings]:
            for name, memory in (("zb-h1", p), ("zb-h2", 2 * p - 1), ("zb-v", 2 * p)):
                row = {"F : B : W": label, "devices": p, "micro-batches": n, "order": name}
                for objective in ("makespan", "span"):
                    chunks = {"chunks": 2, "shape": "v"} if name == "zb-v" else {}
                    instance = generate(
                        "microbatches", 1, stages=p, micro_batches=n, memory=float(memory), objective=objective,
                        forward_s=float(f), backward_s=float(b), weights_s=float(w), transfer_s=float(lag), **chunks,
                    )  # fmt: skip
                    order = theirs.order(instance, p, n, (f, b, w, lag), memory, name == "zb-v")
                    row[f"their {objective}"] = f"{float(evaluate_order(instance, order, exact=True).objective):g}"
                    for ours in (name, "list-scheduling"):
                        found = catalogue.method(ours, "deployment").solve(instance, asked.limits)
                        row[f"{'list' if ours != name else 'our'} {objective}"] = f"{found.objective:g}"
                yield row


class Published:
    """The generators of a checkout."""

    def __init__(self, folder):
        for name, own in (("torch", {"Tensor": object}), ("pulp", {"value": lambda figure: figure})):
            if importlib.util.find_spec(name) is None:
                sys.modules[name] = types.ModuleType(name)
                vars(sys.modules[name]).update(own)
        parts = PACKAGE.split(".")
        for k in range(1, len(parts) + 1):
            name = ".".join(parts[:k])
            sys.modules.setdefault(name, types.ModuleType(name))
        self.graph, self.one, self.v = (self.load(folder, name) for name in ("graph", "zb", "zbv"))

    def load(self, folder, name):
        path = folder / f"{name}.py"
        if not path.is_file():
            raise Skipped(f"there is no {path}")
        spec = importlib.util.spec_from_file_location(f"{PACKAGE}.{name}", path)
        module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    def order(self, instance, p, n, times, memory, v):
        """What they make, with memory for ``memory`` micro-batches of a chunk; B frees half and W the other half."""
        f, b, w, lag = map(float, times)
        config = self.graph.GraphConfig(
            mem_f=[2.0] * p, mem_b=[-1.0] * p, mem_w=[-1.0] * p, max_mem=[2.0 * memory] * p,
            cost_f=[f] * p, cost_b=[b] * p, cost_w=[w] * p, cost_comm=lag,
            n_stages=p, n_micro=n, max_chunks=2 if v else 1,
        )  # fmt: skip
        with contextlib.redirect_stdout(io.StringIO()):
            if v:
                made = self.v.PipelineGraph(p, n, f, b, w, lag, f_mem=2, b_mem=-1, w_mem=-1, max_mem=2 * memory)
                rows = made.create_schedule(config)
            else:
                rows = self.one.create_schedule(config)
        names = {self.graph.F: "F", self.graph.B: "I", self.graph.W: "W"}
        words = (tuple(f"{x.layer_group_idx}{names[x.type]}{x.microbatch}" for x in row) for row in rows)
        return MicroBatchOrder(instance=instance.name, orders=tuple(words))


BENCH = Benchmark(
    growth, cp_sat, published,
    settings=Option(8, "how many sizes", quick=1),
    time_limit=Option(60.0, "seconds for each solve", quick=5.0),
    python=Option("python-with-ortools", "interpreter of an environment that has OR-Tools", type=str),
    bounded=Option(False, "CP-SAT is told the combinatorial bound"),
    published=Option("", "a checkout of sail-sg/zero-bubble-pipeline-parallelism", type=str),
    in_all=False,
)  # fmt: skip
