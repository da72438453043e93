"""Predicted and measured times of compression plans: six layers in PyTorch, over a slow link between two processes.

Two workers in network namespaces of this machine, with a token bucket on the link between them, train a perceptron on
processors with the hook that `export-plan --to torch-ddp` writes. Costs of options and the times at which gradients are
ready are measured first, each option by itself; from these the model predicts plans as a whole. Needs Linux, root, and
a Python with PyTorch: this one or that of `DDLOPT_TORCH_PYTHON`.
"""

import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from statistics import median, quantiles

import ddlopt
from benchmarks.harness import Asked, Benchmark, Option, Skipped
from ddlopt.analysis.texts import time_text
from ddlopt.instances.workloads.compression.compressors import Compression, kept
from ddlopt.models.compression import CompressionInstance, CompressionPlan, Gradient
from ddlopt.models.compression import Option as Sent

WORKER = Path(__file__).with_name("hook_worker.py")
WAYS = {"none": "none", "fp16": "fp16", "top-k 1 %": "top_k:0.01", "PowerSGD rank 4": "powersgd:4", "sign": "sign"}
SPACES = tuple(f"ddlopt-hook-{os.getpid()}-{number}" for number in range(2))
"""Of this process, so that two runs do not take each other's away."""


def orders(asked: Asked):
    """Predicted and measured seconds of the backward pass with communication."""
    python = os.environ.get("DDLOPT_TORCH_PYTHON") or (sys.executable if find_spec("torch") else None)
    if python is None:
        raise Skipped("PyTorch is in no Python that is known; DDLOPT_TORCH_PYTHON names one")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        try:
            _link(asked.megabits)
            yield from _rows(asked, python, folder)
        finally:
            for space in SPACES:
                subprocess.run(["ip", "netns", "del", space], check=False, capture_output=True)


def _rows(asked: Asked, python: str, folder: Path):
    shape = (asked.width, asked.width)
    ways = {label: Compression.from_words(words) for label, words in WAYS.items()}
    names = [f"{2 * layer}.weight" for layer in reversed(range(asked.layers))]
    blank = _instance(names, shape, ways, dict.fromkeys(ways, (0.0, 1.0, 0.0)), dict.fromkeys(names, 0.0))
    spent = _run(asked, python, folder, blank, [_same(blank, 0)], "costs")
    told = {label: " + ".join(time_text(each, digits=3) for each in times) for label, times in spent.items()}
    yield {f"a gradient of {shape[0]} x {shape[1]}": "encode + wire + decode"} | told
    instance = _instance(names, shape, ways, spent, dict.fromkeys(names, 0.0))
    menu = instance.menus[0]
    plans = {option.label: _same(instance, place) for place, option in enumerate(menu)}
    budget = max(option.error for option in menu) * asked.layers / 2
    best = ddlopt.solve(instance.model_copy(update={"error_budget": budget}), time_limit=60.0)
    mixed = CompressionPlan(instance=instance.name, choices=best.solution.choices)
    plans["fastest with half of the largest error"] = mixed
    found = _run(asked, python, folder, instance, list(plans.values()), "steps")
    predicting = _instance(names, shape, ways, spent, found["ready_s"])
    both = []
    for (label, plan), runs in zip(plans.items(), found["runs"], strict=True):
        predicted = float(ddlopt.check(predicting, plan).objective)
        both.append((predicted, median(runs)))
        low, _, high = quantiles(runs, n=4)
        yield {
            "plan": label,
            "predicted": time_text(predicted, digits=3),
            "measured, median": time_text(median(runs), digits=3),
            "quartiles": f"{time_text(low, digits=3)} .. {time_text(high, digits=3)}",
            "measured / predicted": median(runs) / predicted,
        }
    taken = [menu[choice].label for choice in mixed.choices]
    counts = ", ".join(f"{taken.count(label)} by {label}" for label in dict.fromkeys(taken))
    yield f"Fastest with half of the largest error: {counts}."
    pairs = list(itertools.combinations(both, 2))
    agree = sum((a[0] - b[0]) * (a[1] - b[1]) > 0 for a, b in pairs)
    yield f"Of {len(pairs)} pairs of plans, {agree} are in the same order by prediction and by measurement."


def _instance(names, shape, ways, spent, ready_s) -> CompressionInstance:
    """The perceptron's gradients, from the last layer to the first."""
    menu = []
    for label, way in ways.items():
        times = dict(zip(("encode_s", "wire_s", "decode_s"), spent[label], strict=True))
        menu.append(Sent(label=label, **way.fields, **times, error=way.relative_error(shape)))
    ordered = list(itertools.accumulate((ready_s[name] for name in names), max))
    gradients = tuple(
        Gradient(name=name, shape=shape, ready_s=at, menu=0) for name, at in zip(names, ordered, strict=True)
    )
    return CompressionInstance(name="perceptron", gradients=gradients, menus=(tuple(menu),))


def _same(instance: CompressionInstance, place: int) -> CompressionPlan:
    """All gradients by one option."""
    return CompressionPlan(instance=instance.name, choices=(place,) * len(instance.gradients))


def _run(asked, python, folder, instance, plans, what):
    """What two workers find out."""
    hooks = [folder / f"hook{place}.py" for place in range(len(plans))]
    for plan, hook in zip(plans, hooks, strict=True):
        ddlopt.export_plan(instance, plan, "torch-ddp", out=hook)
    options = {}
    for option in instance.menus[0]:
        entries = kept(option.ratio, instance.gradients[0].elements) if option.ratio else 0
        amount = option.rank or option.levels or entries
        options[option.label] = option.compressor, amount
    spec = {"what": what, "width": asked.width, "layers": asked.layers, "batch": asked.batch, "steps": asked.steps}
    spec |= {"hooks": list(map(str, hooks)), "store": str(folder / f"store-{what}"), "out": str(folder / "out.json")}
    (folder / "spec.json").write_text(json.dumps(spec | {"options": options}))
    here = os.environ | {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "wire"}
    words = [python, str(WORKER), str(folder / "spec.json")]
    workers = [
        subprocess.Popen(["ip", "netns", "exec", space, *words, str(rank)], env=here, cwd=folder)
        for rank, space in enumerate(SPACES)
    ]
    try:
        failed = sum(worker.wait(timeout=900) for worker in workers)
    finally:
        for worker in workers:
            worker.kill()
    if failed:
        raise RuntimeError("a worker failed")
    return json.loads((folder / "out.json").read_text())


def _link(megabits: float) -> None:
    """Two namespaces, and a link of that rate in each direction between them."""
    if shutil.which("ip") is None or shutil.which("tc") is None:
        raise Skipped("there is no ip or tc")
    ends = ["netns", SPACES[0], "type", "veth", "peer", "name", "wire", "netns", SPACES[1]]
    commands = [["ip", "netns", "add", space] for space in SPACES] + [["ip", "link", "add", "wire", *ends]]
    for number, space in enumerate(SPACES):
        bucket = ["root", "tbf", "rate", f"{megabits}mbit", "burst", "256kb", "latency", "200ms"]
        commands += [
            ["ip", "-n", space, "address", "add", f"10.77.0.{number + 1}/24", "dev", "wire"],
            *(["ip", "-n", space, "link", "set", device, "up"] for device in ("lo", "wire")),
            ["tc", "-n", space, "qdisc", "add", "dev", "wire", *bucket],
        ]
    for words in commands:
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode:
            raise Skipped(f"there can be no such network here: {' '.join(words)}: {done.stderr.strip()}")


BENCH = Benchmark(
    orders,
    megabits=Option(100.0, "rate of the link"),
    width=Option(1024, "of the perceptron", quick=256),
    layers=Option(6, "of the perceptron", quick=3),
    batch=Option(256, "samples of a step", quick=32),
    steps=Option(15, "runs of each", quick=4),
)
