"""The nine networks that come with the package onnx, through three problems: what the default methods find and prove.

Each is converted as a user would: gradients to compress on four machines of eight V100 with an error budget, layers and
links of TopoOpt's prototype, operators on TAG's test-bed. Seconds are the processor's, for the solve alone.
"""

from pathlib import Path

import ddlopt
from benchmarks.harness import Benchmark, Option, Skipped, clocked
from ddlopt.analysis.texts import gap_text, time_text
from ddlopt.models.errors import OptionError

PROBLEMS = {
    "compression": ("onnx", {"cluster": "azure-ndv2", "batch": 32, "error_budget_part": 0.1}),
    "codesign": ("onnx-codesign", {"cluster": "topoopt-prototype", "batch": 32}),
    "deployment": ("onnx-deployment", {"cluster": "tag-testbed", "batch": 96, "groups": 12}),
}
"""Format and options."""


def networks(asked):
    """A row for each network: size, then time of a step, gap and seconds for each problem."""
    try:
        import onnx
    except ImportError:
        raise Skipped("the package onnx is not installed: pip install 'ddlopt[onnx]'") from None
    folder = Path(onnx.__file__).parent / "backend/test/data/light"
    for path in sorted(folder.glob("*.onnx")):
        name = path.stem.removeprefix("light_")
        if asked.networks and name not in asked.networks:
            continue
        row = {"network": name}
        for problem, (source, options) in PROBLEMS.items():
            try:
                instance = ddlopt.convert(path, source, **options)
            except OptionError as problem_found:
                row |= {problem: str(problem_found)[:40], f"gap of {problem}": "", f"s of {problem}": ""}
                continue
            if problem == "compression":
                numbers = sum(each.elements for each in instance.gradients)
                row |= {"million": f"{numbers / 1e6:.2f}", "gradients": len(instance.gradients)}
            result, spent = clocked(ddlopt.default_method(instance), instance, asked.limits)
            row |= {
                problem: time_text(None if result is None else result.objective),
                f"gap of {problem}": gap_text(None if result is None else result.gap),
                f"s of {problem}": f"{spent.processor_s:.1f}",
            }
        yield row


BENCH = Benchmark(
    networks,
    networks=Option([], quick=["squeezenet"]),
    time_limit=Option(10.0, quick=1.0),
)
