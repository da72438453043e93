"""Pipelines: Piper's inputs at its paper's settings proven, and what its greedy for options loses on drawn networks.

``--released`` is a checkout of msr-fiddle/piper, whose program is built by ``g++`` and run beside ours; its inputs
are in ``piper`` in the folder that DDLOPT_SHARED_DATA names.
"""

import json
import re
import subprocess
import tempfile
from pathlib import Path

from benchmarks.harness import Benchmark, Option, data, shown, solved
from ddlopt.instances.generators.deployment import generate
from ddlopt.instances.readers import convert
from ddlopt.models.deployment.pipeline.bounds import pipeline_bound
from ddlopt.solvers import catalogue

SETTINGS = {
    "bert32a100": (1920, dict.fromkeys((8, 32, 64, 128, 512), (1, 2, 8, 80))),
    "resnet": (None, {
        8: (4, 8, 16), 16: (1.5, 2, 4, 8, 16), 32: (1.5, 2, 4, 8, 16), 64: (1, 1.5, 2, 4, 8, 16),
        128: (1, 1.5, 2, 4, 8, 16),
    }),
    "gnmt": (None, {2: (2.5, 3.5), 4: (1.2, 2.5), 8: (0.6, 1.2, 2.4), 16: (0.3, 0.6, 1.2), 32: (0.3, 0.8), 64: (0.3,)}),
}  # fmt: skip
"""Micro-batches (those of the file where there is none), devices and their GiB, as in the program's ``main``."""
DRAWN = [
    {"layers": layers, "devices": layers // 2, "memory": memory, "shape": shape, "alike": False, "tensors": (1,)}
    for layers in (8, 16)
    for shape in ("chain", "branches", "random")
    for memory in (1.1, 1.2, 1.3)
]
MAIN = """
#define main experiments
#include "algo.cpp"
#undef main
int main(int, char **given) {
    json read; ifstream(given[1]) >> read;
    const Instance instance = read.get<Instance>();
    Graph graph(instance);
    const Result found = graph.runDP();
    printf("FOUND %.15g\\n", found.stages.empty() ? -1.0 : graph.getTPSForResult(found));
}
"""
NAMES = {"kept": "vanilla", "recomputed": "activation recomp"}


def papers(asked):
    """Every setting of the paper up to 512 devices: seconds of a sample, and of the solve."""
    for name in asked.inputs:
        samples, settings = SETTINGS[name]
        path = data("piper") / f"{name}.json"
        chosen = [(devices, memory) for devices, memories in settings.items() for memory in memories]
        for devices, memory in chosen[: asked.most]:
            instance = convert(
                path, "piper", devices=devices, memory_gib=memory, micro_batches=samples, bandwidth_gib_per_s=25.0
            )
            yield {"input": name, "devices": devices, "GiB": memory, **beside(asked, instance)}


def greedy(asked):
    """Networks of unlike blocks with tight memory: in how many draws Piper's options lose, and how much at most."""
    for options in DRAWN[: asked.most]:
        lost_by: dict[str, list[float]] = {"ours of Piper": [], "released": []}
        fit = 0
        for seed in range(1, asked.draws + 1):
            instance = generate("pipeline", seed, micro_batches=16, **options)
            best = solved("exact", instance, asked.limits).objective
            if best is None:
                continue
            fit += 1
            rule = solved(catalogue.method("piper", "deployment"), instance, asked.limits).objective
            values = {"ours of Piper": rule, "released": released(asked, instance) if asked.released else None}
            for name, value in values.items():
                if value is not None:
                    lost_by[name].append(value / best - 1)
        row = {name: str(options[name]) for name in ("layers", "devices", "shape", "memory")} | {"draws that fit": fit}
        for name, losses in lost_by.items():
            row[f"{name} loses"] = f"{sum(loss > LOST for loss in losses)} of {len(losses)}"
            row[f"{name}: largest"] = f"{100 * max(losses, default=0.0):.1f} %"
        yield row


def wide(asked):
    """Graphs too wide for all of their ideals: how far plans are from the bound, before (one order) and by default."""
    for number, options in enumerate(WIDE[: asked.most], start=1):
        instance = generate("pipeline", number, layers=asked.layers, alike=False, **options)
        line = solved(catalogue.method("pipeline-ideals:line=true", "deployment"), instance, asked.limits).objective
        best = solved("exact", instance, asked.limits)
        simple = pipeline_bound(instance)
        yield {
            **{name: str(options.get(name, "")) for name in ("shape", "width", "devices", "memory")},
            "bound before": shown(simple), "plan before": shown(line), "gap before": gap(simple, line),
            "bound": shown(best.bound), "plan": shown(best.objective), "gap": gap(best.bound, best.objective),
            "search": gap(best.objective, line), "s": f"{best.runtime_s:.0f}",
        }  # fmt: skip


def gap(bound, value):
    """In per cent of the value."""
    return None if bound is None or value is None else f"{100 * (1 - bound / value):.1f} %"


WIDE = [
    {"shape": "random", "devices": 16, "memory": 0.5},
    {"shape": "random", "devices": 64, "memory": 0.5},
    {"shape": "random", "devices": 64, "memory": 0.25},
    {"shape": "random", "devices": 16, "memory": 2.0, "tensors": (1,)},
    {"shape": "layered", "width": 4, "devices": 16, "memory": 0.5},
    {"shape": "layered", "width": 4, "devices": 64, "memory": 2.0},
    {"shape": "layered", "width": 8, "devices": 16, "memory": 2.0},
    {"shape": "layered", "width": 16, "devices": 32, "memory": 0.5},
    {"shape": "cells", "width": 16, "devices": 16, "memory": 2.0},
    {"shape": "cells", "width": 8, "devices": 64, "memory": 0.5},
    {"shape": "branches", "width": 4, "devices": 16, "memory": 0.5},
    {"shape": "branches", "width": 4, "devices": 64, "memory": 2.0},
]
"""Of the generator; the seeds are 1, 2, …"""
LOST = 1e-6
"""From where on it counts."""


def beside(asked, instance):
    """Our optimum and our Piper's, and what the released program finds."""
    best = solved("exact", instance, asked.limits)
    rule = solved(catalogue.method("piper", "deployment"), instance, asked.limits) if instance.size < 100 else None
    row = {
        "status": best.status.value, "sample s": shown(best.objective, ".10g"), "solve s": f"{best.runtime_s:.1f}",
        "ours of Piper": lost(rule and rule.objective, best.objective),
    }  # fmt: skip
    return row | ({"released": lost(released(asked, instance), best.objective)} if asked.released else {})


def lost(value, best):
    """How much longer, in per cent."""
    return None if value is None or best is None else f"{100 * (value / best - 1):+.3f} %"


def released(asked, instance):
    """What the released program finds; None if that is nothing, or it takes too long."""
    with tempfile.TemporaryDirectory() as folder:
        program = BUILT.get(asked.released) or build(asked.released)
        graph = Path(folder) / "graph.json"
        graph.write_text(json.dumps(as_piper(instance)), encoding="utf-8")
        try:
            done = subprocess.run(
                [program, graph], capture_output=True, text=True, timeout=asked.released_limit, check=False
            )
        except subprocess.TimeoutExpired:
            return None
    found = re.search(r"FOUND ([0-9.e+-]+)", done.stdout)
    value = None if found is None else float(found[1])
    return value if value is not None and 0 <= value < 1e29 else None


BUILT = {}
"""Programs by their checkouts."""


def build(checkout):
    """The program, with another ``main``."""
    folder = Path(tempfile.mkdtemp())
    (folder / "one.cpp").write_text(MAIN, encoding="utf-8")
    BUILT[checkout] = folder / "one"
    command = ["g++", "-O2", f"-I{checkout}", f"-I{checkout}/nlohmann", "one.cpp", "-o", "one"]
    subprocess.run(command, cwd=folder, check=True)
    return BUILT[checkout]


def as_piper(instance):
    """The instance in Piper's format."""
    return {
        "maxDevices": instance.devices, "maxMemoryPerDevice": instance.memory_bytes,
        "bandwidth": instance.bandwidth_bytes_per_s, "mbsInBatch": instance.micro_batches,
        "nodes": [
            {
                "id": place, "name": layer.name,
                "TMPCs": {
                    str(menu.tensor): [option_as_piper(instance, place, option) for option in menu.options]
                    for menu in layer.menus
                },
            }
            for place, layer in enumerate(instance.layers)
        ],
        "edges": [
            {"sourceId": edge.maker, "destId": edge.user, "communicationCost": edge.size_bytes}
            for edge in instance.edges
        ],
    }  # fmt: skip


def option_as_piper(instance, place, option):
    """An option of a layer, with every edge of it named."""
    gathered, scattered = dict(option.gathered), dict(option.scattered)
    return {
        "id": NAMES.get(option.name, option.name), "timePerSample": option.time_s,
        "parameterSize": option.weight_bytes, "memoryUsageA": option.kept_bytes, "memoryUsageB": option.fixed_bytes,
        "syncTimeFw": {str(e.maker): gathered.get(e.maker, 0.0) for e in instance.edges if e.user == place},
        "syncTimeBw": {str(e.user): scattered.get(e.user, 0.0) for e in instance.edges if e.maker == place},
    }  # fmt: skip


BENCH = Benchmark(
    papers, greedy, wide,
    inputs=Option(list(SETTINGS), "Piper's inputs", type=str, quick=["bert32a100"]),
    most=Option(100, "how many settings", quick=2),
    draws=Option(20, "of each setting", quick=1),
    layers=Option(200, "of wide graphs", quick=40),
    released=Option(None, "a checkout of msr-fiddle/piper", type=Path),
    released_limit=Option(60.0, "seconds for its program"),
    time_limit=Option(100.0, quick=5.0),
)  # fmt: skip
