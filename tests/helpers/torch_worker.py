"""One worker of a training job, for tests of exported hooks: ``torch_worker.py SPEC RANK`` with PyTorch's Python.

Gradients are what the test says: the loss is the sum of products of parameters with given numbers, and of a linear
layer's outputs with given errors.
"""

import importlib.util
import json
import sys
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist


class Given(torch.nn.Module):
    """A model whose gradients are given: arrays by name, and perhaps the inputs and errors of a linear layer."""

    def __init__(self, arrays):
        super().__init__()
        self.arrays = {name: torch.tensor(array, dtype=torch.float32) for name, array in arrays.items()}
        for name, array in self.arrays.items():
            if name not in ("inputs", "errors"):
                self.register_parameter(name, torch.nn.Parameter(torch.zeros(array.shape)))
        if "inputs" in arrays:
            self.linear = torch.nn.Linear(arrays["inputs"].shape[-1], arrays["errors"].shape[-1], bias=False)

    def forward(self):
        total = sum((each * self.arrays[name]).sum() for name, each in self.named_parameters() if "." not in name)
        if "inputs" in self.arrays:
            total = total + (self.linear(self.arrays["inputs"]) * self.arrays["errors"]).sum()
        return total


def main(spec_file, rank):
    spec = json.loads(Path(spec_file).read_text())
    folder = Path(spec["folder"])
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder / 'store'}", rank=rank, world_size=spec["world"])
    loader = importlib.util.spec_from_file_location("plan", spec["hook"])
    plan = importlib.util.module_from_spec(loader)
    loader.loader.exec_module(plan)
    calls = []
    for name in ("all_reduce", "all_gather", "broadcast"):
        original = getattr(dist, name)
        setattr(dist, name, lambda *a, _name=name, _as=original, **k: (calls.append(_name), _as(*a, **k))[1])
    arrays = dict(np.load(folder / f"gradients-{rank}.npz"))
    model = Given(arrays)
    try:
        wrapped = plan.wrap(model, names=spec["names"], node_size=spec["node_size"], **spec["options"])
    except ValueError as problem:
        (folder / f"refused-{rank}.txt").write_text(str(problem))
        dist.destroy_process_group()
        return
    found, counts = {}, []
    for step in range(spec["steps"]):
        calls.clear()
        model.zero_grad()
        wrapped().backward()
        counts.append(dict.fromkeys(calls, 0) | {name: calls.count(name) for name in calls})
        found |= {f"{name}/{step}": each.grad.numpy().copy() for name, each in model.named_parameters()}
    np.savez(folder / f"found-{rank}.npz", **found)
    (folder / f"calls-{rank}.json").write_text(json.dumps(counts))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
