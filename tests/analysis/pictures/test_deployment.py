"""Pictures of deployments: every row is a resource, bars are the simulation's, loads are those of the check."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from ddlopt.analysis.pictures.deployment.partition import loads_s
from ddlopt.analysis.pictures.deployment.plan import rows_of
from ddlopt.analysis.views import picture_of
from ddlopt.instances.generators.deployment import generate
from ddlopt.models.deployment import (
    Deployment,
    GroupPlan,
    Partition,
    PartitionInstance,
    StrategyAssignment,
    StrategyInstance,
    evaluate,
)
from ddlopt.models.deployment.plan.simulator.simulate import simulate


def drawn(instance, solution):
    axes = Figure().add_subplot()
    picture_of(instance)(axes, instance, solution)
    return axes


def test_a_step_has_a_bar_for_every_task_in_a_row_of_its_resource():
    instance = generate("random", 3, groups=3, device_groups=2)
    everywhere = GroupPlan(device_groups=(0, 1), mode="all_reduce")
    alone = GroupPlan(device_groups=(0,), mode="all_reduce")
    plan = Deployment(instance=instance.name, groups=(everywhere, alone, everywhere))
    timeline = simulate(instance, plan)
    rows = rows_of(instance, timeline)
    axes = drawn(instance, plan)
    (bars,) = axes.collections
    assert len(bars.get_paths()) == sum(task.resource in rows for task in timeline.tasks)
    assert len(axes.get_yticks()) == len(rows)
    widths = [path.get_extents().width for path in bars.get_paths()]
    expected = [1e3 * (task.finish - task.start) for task in timeline.tasks if task.resource in rows]
    assert widths == pytest.approx(expected)
    assert axes.get_xlim()[1] == pytest.approx(1.02e3 * timeline.time_s)
    assert "all-reduce" in [text.get_text() for text in axes.get_yticklabels()]


def partition():
    node = {"accelerator_s": 2.0, "processor_s": 5.0, "transfer_s": 0.5}
    return PartitionInstance.from_data(
        {
            "name": "pair",
            "nodes": [{"name": f"n{k}", "backward": k > 1} | node for k in range(4)],
            "edges": [[0, 1], [1, 2], [2, 3]],
            "accelerators": 1,
            "processors": 1,
            "memory_bytes": 10,
        }
    )


def test_loads_are_those_that_count():
    instance, solution = partition(), Partition(instance="pair", devices=(0, 0, 0, 1))
    loads = loads_s(instance, solution.devices)
    assert loads == {"forward": [4.0, 0.0], "backward": [2.0, 5.0], "transfer": [0.5, 0.0]}
    largest = max(sum(column) for column in zip(*loads.values(), strict=True))
    assert evaluate(instance, solution).objective == largest
    assert len(drawn(instance, solution).patches) == 6


def test_memory_of_strategies_over_time():
    instance = StrategyInstance.from_data(
        {"name": "pair", "costs": [[1], [2]], "usages": [[3], [4]], "intervals": [[0, 10], [5, 20]], "usage_limit": 8}
    )
    axes = drawn(instance, StrategyAssignment(instance="pair", strategies=(0, 0)))
    (area,) = axes.collections
    heights = area.get_paths()[0].vertices[:, 1]
    assert heights.max() == 7
    assert np.isclose(heights, 3).any()
    assert [line.get_ydata()[0] for line in axes.lines] == [8]
