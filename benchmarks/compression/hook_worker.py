"""A worker of `hook_steps`, for PyTorch's Python: ``hook_worker.py SPEC RANK`` measures costs, or steps of a plan."""

import importlib.util
import json
import statistics
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist


def main(spec_file, rank):
    spec = json.loads(Path(spec_file).read_text())
    torch.set_num_threads(1)
    torch.manual_seed(rank)
    dist.init_process_group("gloo", init_method=f"file://{spec['store']}", rank=rank, world_size=2)
    plans = [_loaded(place, file) for place, file in enumerate(spec["hooks"])]
    batch = torch.randn(spec["batch"], spec["width"])
    found = {"costs": costs, "steps": steps}[spec["what"]](plans, batch, spec)
    if rank == 0:
        Path(spec["out"]).write_text(json.dumps(found))
    dist.barrier()
    dist.destroy_process_group()


def _loaded(place, file):
    """The module of an exported hook."""
    loader = importlib.util.spec_from_file_location(f"plan{place}", file)
    plan = importlib.util.module_from_spec(loader)
    loader.loader.exec_module(plan)
    return plan


def _model(spec):
    layers = [torch.nn.Linear(spec["width"], spec["width"], bias=False) for _ in range(spec["layers"])]
    return torch.nn.Sequential(*[each for layer in layers for each in (layer, torch.nn.ReLU())])


class Watched:
    """A model that nothing is sent for, and when its gradients are ready."""

    def __init__(self, spec):
        self.model, self.began = _model(spec), 0.0
        self.ready = {name: [] for name, _ in self.model.named_parameters()}
        for name, parameter in self.model.named_parameters():
            parameter.register_post_accumulate_grad_hook(lambda _, name=name: self._note(name))

    def _note(self, name):
        self.ready[name].append(time.perf_counter() - self.began)

    def step(self, batch):
        loss = self.model(batch).square().sum()
        dist.barrier()
        self.began = time.perf_counter()
        loss.backward()

    def ready_s(self):
        return {name: statistics.median(each[1:]) for name, each in self.ready.items()}


def costs(plans, batch, spec):
    """What each option takes: medians over repetitions, in turn."""
    (plan,) = plans
    watched = Watched(spec)
    watched.step(batch)
    among = plan.Among(dist.new_group([0, 1]), 2, 0)
    gradient = next(watched.model.parameters()).grad
    runs, memories = {label: [] for label in spec["options"]}, {label: plan.Memory(0) for label in spec["options"]}
    for _ in range(spec["steps"]):
        for label, (compressor, amount) in spec["options"].items():
            send = plan.Send("g", tuple(gradient.shape), compressor, amount)
            dist.barrier()
            work = plan.COMPRESSORS[compressor](send, gradient.flatten() / 2, memories[label], among)
            runs[label].append(_once(plan, work))
    return {label: [statistics.median(each) for each in zip(*run[1:], strict=True)] for label, run in runs.items()}


def _once(plan, steps):
    """Seconds of encoding, on the wire, and of all else that a message takes."""
    began = time.perf_counter()
    asked = next(steps)
    encode, wire = time.perf_counter() - began, 0.0
    while True:
        sent = time.perf_counter()
        (answer,) = plan._collective([asked])
        wire += time.perf_counter() - sent
        try:
            asked = steps.send(answer)
        except StopIteration:
            return encode, wire, time.perf_counter() - began - encode - wire


def steps(plans, batch, spec):
    """Seconds of backward passes with all that is sent, of the slower worker each; the plans take turns."""
    watched, models, runs = Watched(spec), [plan.wrap(_model(spec)) for plan in plans], [[] for _ in plans]
    for _ in range(spec["steps"] + 3):
        watched.step(batch)
        for model, run in zip(models, runs, strict=True):
            model.zero_grad()
            loss = model(batch).square().sum()
            dist.barrier()
            began = time.perf_counter()
            loss.backward()
            longest = torch.tensor([time.perf_counter() - began])
            dist.all_reduce(longest, dist.ReduceOp.MAX)
            run.append(float(longest))
    # The first steps find out in which order gradients come.
    return {"ready_s": watched.ready_s(), "runs": [run[3:] for run in runs]}


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
