"""Reader of the layout of INARouting: small files of both kinds, and bad ones."""

import json
from pathlib import Path
from typing import Any

import pytest

from ddlopt.instances.readers import convert
from ddlopt.models.errors import InstanceError
from ddlopt.solvers.aggregation.graph.methods import milp
from ddlopt.solvers.contracts import Limits


def layout(nested: bool) -> dict[str, Any]:
    pairs = [("a", "leaf1"), ("b", "leaf1"), ("c", "leaf2"), ("leaf1", "spine"), ("leaf2", "spine")]
    rows = [
        {"source": one, "target": two, "bandwidth": 200} for pair in pairs for one, two in (pair, tuple(reversed(pair)))
    ]
    return {
        "network_json": {
            "metadata": {"type": "any"},
            "nodes": {"leaf_switches": ["leaf1", "leaf2"], "spine_switches": ["spine"], "all_servers": ["a", "b", "c"]},
            "links": {"potential_links_with_bandwidth": rows} if nested else rows,
            "switch_processing_capacities": {"leaf1": 100, "leaf2": 200, "spine": 200},
        },
        "jobs_json": [{"id": 1, "workers": ["a", "b"], "ps": "c", "ps_leaf": "leaf2"}],
    }


def written(folder: Path, data: Any) -> Path:
    path = folder / "small.json"
    path.write_text(json.dumps(data))
    return path


@pytest.mark.parametrize("nested", [False, True])
def test_a_network_with_jobs(tmp_path: Path, nested: bool) -> None:
    instance: Any = convert(written(tmp_path, layout(nested)), "ina-routing")
    assert instance.name == "small"
    assert len(instance.links) == 5
    assert [node.name for node in instance.nodes] == ["leaf1", "leaf2", "spine", "a", "b", "c"]
    assert [node.forwards for node in instance.nodes] == [True] * 3 + [False] * 3
    assert instance.jobs[0].workers == (3, 4)
    assert instance.merging
    # Both messages meet in leaf1, which adds up 100 in a second.
    assert milp(instance, "highs").solve(instance, Limits()).objective == pytest.approx(100)


def test_bad_files(tmp_path: Path) -> None:
    odd = layout(False)
    odd["network_json"]["links"][0]["bandwidth"] = 300
    with pytest.raises(InstanceError, match="leaf1-a has bandwidth 200"):
        convert(written(tmp_path, odd), "ina-routing")
    odd = layout(False)
    del odd["network_json"]["nodes"]["all_servers"]
    with pytest.raises(InstanceError, match="expected the layout of INARouting"):
        convert(written(tmp_path, odd), "ina-routing")
    odd = layout(False)
    odd["jobs_json"][0]["ps"] = "nobody"
    with pytest.raises(InstanceError, match="nobody"):
        convert(written(tmp_path, odd), "ina-routing")
    with pytest.raises(InstanceError, match="expected an object"):
        convert(written(tmp_path, []), "ina-routing")
