"""Methods for partitions: against all partitions, against each other, and the published optima."""

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from partition_cases import optimum, several
from shared_data import shared_data
from volume import slow

from ddlopt.instances.generators.deployment import generate
from ddlopt.instances.readers.graphs.dnn_partitioning import read_dnn_partitioning
from ddlopt.models.deployment.graph_cut import partition
from ddlopt.models.deployment.partition.instance import PartitionInstance
from ddlopt.solvers.contracts import Limits, Method, Status
from ddlopt.solvers.deployment.partition import methods as partition_methods
from ddlopt.solvers.deployment.partition.dynamic_program import IdealProgram
from ddlopt.solvers.deployment.partition.exact import Latency, MaxLoad, limited_max_load
from ddlopt.solvers.deployment.partition.latency_search import LatencyGreedy, LatencySearch
from ddlopt.solvers.deployment.partition.linear import Linear, PipeDream
from ddlopt.solvers.deployment.partition.search import GraphCut, HeaviestFirst, LocalSearch, PartitionSearch

HEURISTICS = (Linear(), PipeDream(), HeaviestFirst(), LocalSearch(), GraphCut(), PartitionSearch(rounds=40))


def layered(seed: int, **options: Any) -> PartitionInstance:
    instance = generate("layered", seed, **options)
    assert isinstance(instance, PartitionInstance)
    return instance


def test_the_dynamic_program_finds_the_best_of_all_contiguous_partitions() -> None:
    infeasible = 0
    for instance in [*several(25, 500, contiguous=True), *several(5, 600, contiguous=True, processors=0)]:
        best = optimum(instance)
        result = IdealProgram().solve(instance, Limits())
        if result.status is Status.INFEASIBLE:
            assert best is None
            infeasible += 1
            continue
        assert result.status is Status.OPTIMAL
        assert result.objective == pytest.approx(best)
    assert infeasible


@pytest.mark.parametrize(("training", "processors"), [(False, 0), (True, 0), (False, 2), slow(True, 2)])
def test_the_dynamic_program_and_the_integer_program_agree(training: bool, processors: int) -> None:
    for seed in range(2):
        options = {
            "nodes": 4 if processors else 12,
            "training": training,
            "accelerators": 2 if processors else 3,
            "processors": processors,
            "memory": 1.5,
        }
        instance = layered(seed, contiguous=True, slowdown=3.0, **options)
        one = IdealProgram().solve(instance, Limits())
        other = limited_max_load().solve(instance, Limits(gap=1e-6), start=one.solution)
        free = limited_max_load().solve(instance, Limits(gap=1e-6))
        assert one.status is other.status is Status.OPTIMAL
        assert one.objective == pytest.approx(other.objective, rel=1e-6) == pytest.approx(free.objective, rel=1e-6)


@pytest.mark.slow
def test_contiguous_is_a_scope_of_instances_that_are_not() -> None:
    instance = layered(3, nodes=8, accelerators=2)
    result = IdealProgram().solve(instance, Limits())
    assert (result.scope, result.scope_bound) == ("contiguous", result.objective)
    best = MaxLoad("highs").solve(instance, Limits(gap=1e-6))
    assert best.objective is not None
    assert result.objective is not None
    assert best.objective <= result.objective + 1e-12
    assert result.bound is not None
    assert result.bound <= best.objective + 1e-12


@pytest.mark.parametrize("method", HEURISTICS, ids=lambda method: method.name)
@pytest.mark.parametrize("fields", [{}, slow({"separate_passes": True}), slow({"contiguous": True})], ids=str)
def test_heuristics_give_what_holds_and_are_not_below_the_optimum(method: Method, fields: dict[str, Any]) -> None:
    answered = met = 0
    for instance in several(12, 700, **fields):
        if method.refuses(instance) is not None:
            continue
        best = optimum(instance)
        result = method.solve(instance, Limits(), seed=1)
        if result.objective is not None:
            assert best is not None
            assert result.objective >= best - 1e-9
            answered += 1
            met += result.objective <= best + 1e-9
    if "contiguous" in fields and method.name not in ("linear", "pipedream"):
        assert not answered
    else:
        assert answered >= met > 0


def test_the_search_is_no_worse_than_what_it_starts_from() -> None:
    for seed in range(3):
        instance = layered(seed, nodes=30)
        ours = PartitionSearch(rounds=80).solve(instance, Limits())
        for start in (Linear(), HeaviestFirst()):
            other = start.solve(instance, Limits())
            assert (ours.objective or 0) <= (other.objective or 0) + 1e-12
        again = PartitionSearch(rounds=80).solve(instance, Limits())
        assert again.solution == ours.solution


def test_latency_methods_agree_with_all_partitions() -> None:
    exact = 0
    for instance in several(15, 900, goal="latency"):
        best = optimum(instance)
        for method in (LatencyGreedy(), LatencySearch(), Latency()):
            result = method.solve(instance, Limits(gap=1e-6))
            if result.objective is not None:
                assert best is not None
                assert result.objective >= best - 1e-9
                assert result.bound is None or result.bound <= best + 1e-9
            if method.name == "latency" and len(instance.colours) == len(instance.nodes):
                exact += 1
                assert result.objective == (None if best is None else pytest.approx(best))
    assert exact > 3


def test_best_is_what_fits() -> None:
    names = {
        "ideals": layered(1, nodes=12, contiguous=True),
        "device-sets": layered(1, nodes=12),
        "max-load": layered(1, nodes=101),
        "latency": layered(1, nodes=12, goal="latency"),
    }
    for name, instance in names.items():
        assert partition_methods.best(instance, "highs").name == name
    wide = layered(1, nodes=12, contiguous=True, separate_passes=True, training=True)
    assert partition_methods.best(wide, "highs").name == "max-load"
    for entry in partition_methods.ENTRIES:
        assert entry.make("highs").name == entry.name


def test_too_many_ideals_are_refused() -> None:
    nodes = [{"name": f"n{v}", "accelerator_s": 1} for v in range(30)]
    data = {"name": "apart", "nodes": nodes, "accelerators": 3, "memory_bytes": 1, "contiguous": True}
    instance = PartitionInstance.from_data(data)
    assert "more than 200000 ideals" in str(IdealProgram().refuses(instance))
    assert Linear().solve(instance, Limits()).objective == 10


def test_a_graph_is_cut_evenly_where_edges_are_light() -> None:
    # Two cliques of five, joined by one edge.
    edges = [(u, v) for side in (0, 5) for u in range(side, side + 5) for v in range(side, u)] + [(4, 5)]
    parts = partition([1.0] * 10, edges, [1.0] * len(edges), 2, seed=3)
    assert sorted(map(sorted, (np.flatnonzero(parts == part).tolist() for part in (0, 1)))) == [
        [0, 1, 2, 3, 4],
        [5, 6, 7, 8, 9],
    ]
    assert (parts == partition([1.0] * 10, edges, [1.0] * len(edges), 2, seed=3)).all()
    assert (partition([1.0, 1.0], [], [], 1) == 0).all()


CONTIGUOUS_MS = {
    "LayerGraphs_bert24_inference": 17.78990625,
    "LayerGraphs_bert24_training": 41.7458125,
    "LayerGraphs_gnmt_inference": 32.910658203125,
    "LayerGraphs_resnet50_inference": 33.774666015625,
    "OperatorGraphs_bert_l-3_inference": 27.9185676799125,
    "OperatorGraphs_bert_l-3_training": 65.30314912,
}
ANYWHERE_MS = {
    "LayerGraphs_bert24_inference": 17.71472,
    "LayerGraphs_bert24_training": 39.78954,
    "OperatorGraphs_bert_l-3_inference": 21.908376,
    "OperatorGraphs_bert_l-3_training": 54.207399,
}


def printed(value_s: float | None, like: float) -> str:
    """Milliseconds with as many digits as a published figure has."""
    return f"{1e3 * (value_s or 0):.{len(str(like).partition('.')[2])}f}"


@pytest.mark.parametrize("name", CONTIGUOUS_MS)
def test_published_contiguous_optima(name: str) -> None:
    instance = read_dnn_partitioning(shared_data(f"dnn-partitioning/{name}.json"), contiguous=True)
    result = IdealProgram().solve(instance, Limits())
    assert result.status is Status.OPTIMAL
    assert printed(result.objective, CONTIGUOUS_MS[name]) == str(CONTIGUOUS_MS[name])


@pytest.mark.parametrize("name", ANYWHERE_MS)
def test_optima_without_contiguity(name: str) -> None:
    instance = read_dnn_partitioning(shared_data(f"dnn-partitioning/{name}.json"))
    result = MaxLoad("highs").solve(instance, Limits())
    assert result.status is Status.OPTIMAL
    assert printed(result.objective, ANYWHERE_MS[name]) == str(ANYWHERE_MS[name])


def test_pipedream_is_that_of_the_released_code() -> None:
    for name, value in (("LayerGraphs_bert24_inference", 17.7899), ("LayerGraphs_resnet50_inference", 39.398)):
        instance = read_dnn_partitioning(shared_data(f"dnn-partitioning/{name}.json"), contiguous=True)
        assert printed(PipeDream().solve(instance, Limits()).objective, value) == str(value)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "value"), [("inceptionv3_inference", 51.55186358642579), ("inceptionv3_training", 122.7616162109375)]
)
def test_inception_v3_is_solved(name: str, value: float) -> None:
    path: Path = shared_data(f"dnn-partitioning/LayerGraphs_{name}.json")
    result = IdealProgram().solve(read_dnn_partitioning(path, contiguous=True), Limits())
    assert result.status is Status.OPTIMAL
    assert result.details["ideals"] == 36596
    assert 1e3 * (result.objective or 0) == pytest.approx(value, rel=1e-12)


def test_methods_stop_soon_after_the_time_is_up() -> None:
    instance = layered(4, nodes=150, accelerators=6, contiguous=True, branched=0.6, residual=0.0)
    IdealProgram().solve(layered(4, nodes=12, contiguous=True), Limits())
    began = time.perf_counter()
    result = IdealProgram().solve(instance, Limits(time_s=0.01))
    assert result.objective is not None
    assert time.perf_counter() - began < 60


def test_an_output_passes_by_a_piece_that_has_no_part_of_it() -> None:
    # a0 -> b -> c keeps b between a1 and c, whose transfer b does not pay for.
    nodes = [
        {"name": "a0", "accelerator_s": 0, "colour": 0, "memory_bytes": 1},
        {"name": "a1", "accelerator_s": 1, "colour": 0, "transfer_s": 10},
        {"name": "b", "accelerator_s": 9, "memory_bytes": 1},
        {"name": "c", "accelerator_s": 1, "memory_bytes": 1},
    ]
    data = {"name": "by", "nodes": nodes, "edges": [(0, 2), (2, 3), (1, 3)], "accelerators": 3, "memory_bytes": 1}
    instance = PartitionInstance.from_data({**data, "contiguous": True})
    assert IdealProgram().solve(instance, Limits()).objective == 11 == optimum(instance)
