"""Measure a training job: how long each layer takes, and when each gradient is there. It needs nothing but PyTorch.

Run it where the training runs, on one accelerator, without data parallelism:

    python profile_job.py my_job:make --samples 32 --out profile.json

``make()`` in my_job.py gives ``(model, loss)``, a torch.nn.Module and a function that runs it on a batch of that many
samples and gives the loss. Or, in a script of your own:

    from profile_job import profile
    profile(model, loss, samples=32, out="profile.json")

Then ``ddlopt convert profile.json --from profile -o instance.json`` makes an instance of it.

The file has medians over the steps, in seconds: ``forward_s`` and ``backward_s`` of a whole step; ``layers``, the
modules without modules inside them, in the order in which they run, with ``forward_s`` and ``backward_s`` (from when
the gradient at the layer's output is there until the one at the next layer's is); and ``gradients``, in the order in
which they are there, with the name of the parameter, its ``layer`` (null where that does not run by itself, as when
nn.MultiheadAttention or F.linear takes its weight), its ``shape`` and ``ready_s`` since the backward pass began.
``rows`` of a layer are the vectors that a dense layer takes in, ``output_bytes`` what a layer gives. What gets no
gradient is in ``unused``. On a GPU times are those of CUDA events, so that nothing waits; on a CPU those of a clock.
"""

import argparse
import importlib
import json
import math
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

FORMAT = "ddlopt-profile/1"


class Moments:
    """Points in time by the device's own clock."""

    def __init__(self, device: torch.device) -> None:
        self.cuda = device.type == "cuda"

    def now(self) -> Any:
        """A point in time; of a GPU one that it passes later."""
        if not self.cuda:
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def settle(self) -> None:
        """Wait until all points are past."""
        if self.cuda:
            torch.cuda.synchronize()

    def seconds(self, first: Any, second: Any) -> float:
        """From one point to another."""
        return max(0.0, float(first.elapsed_time(second) / 1000 if self.cuda else second - first))


class Recorder:
    """Hooks on a model that note what happens in a step."""

    def __init__(self, model: torch.nn.Module) -> None:
        parameters = dict(model.named_parameters())
        device = next(iter(parameters.values())).device
        self.moments = Moments(device)
        self.leaves = {name: each for name, each in model.named_modules() if name and not any(each.children())}
        if not self.leaves:
            self.leaves = {"model": model}
        self.rows: dict[str, int] = {}
        self.handles: list[Any] = []
        self.clear()
        for name, module in self.leaves.items():
            self.handles.append(module.register_forward_pre_hook(self._begins(name)))
            self.handles.append(module.register_forward_hook(self._ends(name)))
        for name, parameter in parameters.items():
            if parameter.requires_grad:
                self.handles.append(parameter.register_post_accumulate_grad_hook(self._is_ready(name)))

    def clear(self) -> None:
        """Forget the last step."""
        self.forward: list[tuple[str, Any, Any]] = []
        self.errors: list[tuple[str, Any]] = []
        self.outputs: dict[str, int] = defaultdict(int)
        self.ready: dict[str, Any] = {}
        self.began: dict[str, Any] = {}

    def close(self) -> None:
        """Leave the model as it was."""
        for handle in self.handles:
            handle.remove()

    def _begins(self, name: str) -> Callable[..., None]:
        def hook(module: torch.nn.Module, inputs: Any) -> None:
            self.began[name] = self.moments.now()
            if isinstance(module, torch.nn.Linear) and inputs:
                self.rows[name] = math.prod(inputs[0].shape[:-1])

        return hook

    def _ends(self, name: str) -> Callable[..., None]:
        def hook(_module: torch.nn.Module, _inputs: Any, output: Any) -> None:
            self.forward.append((name, self.began[name], self.moments.now()))
            tensor = first_tensor(output)
            if tensor is not None:
                self.outputs[name] += tensor.numel() * tensor.element_size()
            if tensor is not None and tensor.requires_grad:
                tensor.register_hook(lambda _: self.errors.append((name, self.moments.now())))

        return hook

    def _is_ready(self, name: str) -> Callable[..., None]:
        def hook(_parameter: torch.Tensor) -> None:
            self.ready[name] = self.moments.now()

        return hook


def first_tensor(output: Any) -> Any:
    """The first tensor in what a module gives; None if there is none."""
    if isinstance(output, torch.Tensor):
        return output
    values = output.values() if isinstance(output, dict) else output if isinstance(output, list | tuple) else ()
    return next((found for found in map(first_tensor, values) if found is not None), None)


def profile(
    model: torch.nn.Module,
    loss: Callable[[], torch.Tensor],
    *,
    samples: int,
    out: str | None = None,
    steps: int = 10,
    warm_up: int = 3,
    name: str | None = None,
) -> dict[str, Any]:
    """Run a few steps and write what they took.

    Parameters
    ----------
    model : torch.nn.Module
        Whose parameters the loss depends on; they are not changed, but what a forward pass changes is (running means).
    loss : callable
        Runs the model forward on a batch, and gives a number to be differentiated.
    samples : int
        Of that batch.
    out : str, optional
        A file; None: only give the data back.
    steps, warm_up : int
        Steps that count, and those before them that do not.
    name : str, optional
        Of the model; its class's if not given.
    """
    recorder = Recorder(model)
    moments, found = recorder.moments, []
    try:
        for _ in range(warm_up + steps):
            model.zero_grad(set_to_none=True)
            recorder.clear()
            begin = moments.now()
            value = loss()
            middle = moments.now()
            value.backward()
            end = moments.now()
            moments.settle()
            found.append(step_of(recorder, begin, middle, end))
    finally:
        recorder.close()
        model.zero_grad(set_to_none=True)
    data = summary(model, recorder, found[warm_up:], samples, name or type(model).__name__)
    if out is not None:
        Path(out).write_text(json.dumps(data, indent=1, allow_nan=False), encoding="utf-8")
    return data


def step_of(recorder: Recorder, begin: Any, middle: Any, end: Any) -> dict[str, Any]:
    """Seconds of a step."""
    seconds = recorder.moments.seconds
    forward: dict[str, float] = defaultdict(float)
    backward: dict[str, float] = defaultdict(float)
    for name, first, last in recorder.forward:
        forward[name] += seconds(first, last)
    ends = [point for _, point in recorder.errors[1:]] + [end]
    for (name, point), after in zip(recorder.errors, ends, strict=True):
        backward[name] += seconds(point, after)
    return {
        "forward_s": seconds(begin, middle),
        "backward_s": seconds(middle, end),
        "forward": forward,
        "backward": backward,
        "ready": {name: seconds(middle, point) for name, point in recorder.ready.items()},
    }


def summary(
    model: torch.nn.Module, recorder: Recorder, steps: list[dict[str, Any]], samples: int, name: str
) -> dict[str, Any]:
    """Medians of steps, as the file has them."""

    def median(kind: str, key: str) -> float:
        return float(statistics.median(step[kind].get(key, 0.0) for step in steps))

    parameters = dict(model.named_parameters())
    ready = [each for each in parameters if all(each in step["ready"] for step in steps)]
    layer_of = {id(own): layer for layer, module in recorder.leaves.items() for own in module.parameters(recurse=False)}
    layers = dict.fromkeys(layer for layer, _, _ in recorder.forward)
    layer_of = {parameter: layer for parameter, layer in layer_of.items() if layer in layers}
    device = next(iter(parameters.values())).device
    return {
        "format": FORMAT,
        "model": name,
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else str(device),
        "torch": torch.__version__,
        "samples": samples,
        "steps": len(steps),
        "forward_s": statistics.median(step["forward_s"] for step in steps),
        "backward_s": statistics.median(step["backward_s"] for step in steps),
        "layers": [
            {
                "name": layer,
                "kind": type(recorder.leaves[layer]).__name__,
                "forward_s": median("forward", layer),
                "backward_s": median("backward", layer),
                "output_bytes": recorder.outputs[layer],
                **({"rows": recorder.rows[layer]} if layer in recorder.rows else {}),
            }
            for layer in layers
        ],
        "gradients": [
            {
                "name": each,
                "layer": layer_of.get(id(parameters[each])),
                "shape": list(parameters[each].shape) or [1],
                "ready_s": median("ready", each),
            }
            for each in sorted(ready, key=lambda each: median("ready", each))
        ],
        "unused": [each for each, one in parameters.items() if one.requires_grad and each not in ready],
    }


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="Measure a training job for ddlopt.")
    parser.add_argument("make", help="MODULE:FUNCTION that gives (model, loss)")
    parser.add_argument("--samples", type=int, required=True, help="of a batch")
    parser.add_argument("--out", default="profile.json")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--warm-up", type=int, default=3)
    asked = parser.parse_args()
    module, _, function = asked.make.partition(":")
    sys.path.insert(0, str(Path.cwd()))
    model, loss = getattr(importlib.import_module(module), function or "make")()
    data = profile(model, loss, samples=asked.samples, out=asked.out, steps=asked.steps, warm_up=asked.warm_up)
    print(f"{asked.out}: {len(data['gradients'])} gradients, {len(data['layers'])} layers, backward pass", end=" ")
    print(f"{1000 * data['backward_s']:.3g} ms on {data['device']}")
    for each in data["unused"]:
        print(f"{each} gets no gradient and is left out", file=sys.stderr)


if __name__ == "__main__":
    main()
