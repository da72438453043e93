"""One job in, one design and bound out."""

import numpy as np
import pytest
from volume import for_each

from ddlopt.models.codesign import CodesignInstance, Device, Layer, Layout, Reduction, Strategy, evaluate, job_of
from ddlopt.models.codesign.formulations.rows.coupling import plan_of
from ddlopt.models.codesign.tables import tables_of
from ddlopt.models.errors import InfeasibleError, NoSolutionError
from ddlopt.models.topology import TopologyInstance
from ddlopt.models.topology.bounds import congestion_bounds
from ddlopt.solvers.codesign.planes import answer_topology, load_of_time
from ddlopt.solvers.contracts import Limits


def two_layers(**options):
    """Four servers; each of two layers data parallel or whole on server 0."""
    strategies = (
        Strategy(name="all", reads=0, writes=0, measured_s=1.0, reductions=(Reduction(groups=0, bytes=8.0),)),
        Strategy(name="one", reads=1, writes=1, measured_s=3.0),
    )
    fields = {
        "name": "two layers",
        "servers": 4,
        "degree": 2,
        "link_bandwidth_bytes_per_s": 2.0,
        "device": Device(flops_per_s=1.0, convolution_flops_per_s=1.0, memory_bytes_per_s=1.0),
        "layouts": (Layout(batch_parts=4, servers=(0, 1, 2, 3)), Layout(batch_parts=1, servers=(0,))),
        "group_sets": (((0, 1, 2, 3),),),
        "layers": tuple(Layer(name=name, output_bytes=4.0, strategies=strategies) for name in ("first", "second")),
        "edges": ((0, 1),),
    }
    return CodesignInstance(**(fields | options))


@for_each("optics", ["one_way", "duplex"])
@for_each("choices", [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_plan_has_the_load_of_the_design(optics, choices):
    instance = two_layers(optics=optics)
    design, busiest, bound = answer_topology(job_of(instance, choices), "link-exchange", Limits())
    judged = evaluate(instance, plan_of(instance, choices, design))
    assert judged.feasible
    assert judged.objective == pytest.approx(
        instance.iteration_time_s(tables_of(instance).compute_of(choices), busiest)
    )
    assert bound <= busiest


def test_nothing_to_send_is_a_plan_without_links():
    instance = two_layers()
    assert job_of(instance, (1, 1)) is None
    assert answer_topology(None, "exact", Limits()) == (None, 0.0, 0.0)
    judged = evaluate(instance, plan_of(instance, (1, 1), None))
    assert judged.feasible
    assert judged.objective == 6.0


@for_each("overlap", ["none", "full"])
@for_each("compute_s", [0.0, 1.0, 1e6])
def test_bound_in_bytes_is_below_the_optimum(overlap, compute_s):
    # Three hops of traffic on one ring of three: of one and two hops, (1 + 2) / 1 bytes.
    traffic = np.ones((3, 3)) - np.eye(3)
    job = TopologyInstance(
        name="all to all",
        servers=3,
        degree=1,
        link_bandwidth_bytes_per_s=1.0,
        traffic_bytes=traffic,
        compute_s=compute_s,
        overlap=overlap,
    )
    design, busiest, bound = answer_topology(job, "exact", Limits())
    assert busiest == pytest.approx(3.0)
    assert bound == pytest.approx(3.0, rel=1e-5)
    assert bound <= busiest
    assert len(design.links) == 3


def test_hidden_communication_has_the_bound_of_the_closed_forms():
    job = job_of(two_layers(overlap="full"), (0, 1))
    assert load_of_time(job, job.compute_s) == 0
    _, _, bound = answer_topology(job, "link-exchange", Limits())
    assert bound >= max(congestion_bounds(job).values()) * (1 - 1e-9)


def test_bound_of_a_time_is_mapped_back():
    without, full = job_of(two_layers(), (0, 0)), job_of(two_layers(overlap="full"), (0, 0))
    assert without.compute_s == full.compute_s == 2.0
    assert load_of_time(without, 5.0) == pytest.approx(6.0)
    assert load_of_time(full, 5.0) == pytest.approx(10.0)
    assert load_of_time(without, None) == 0


def test_what_no_degree_serves_is_infeasible():
    # With one duplex port each, servers meet in pairs; no ring of four.
    with pytest.raises(InfeasibleError):
        answer_topology(job_of(two_layers(optics="duplex", degree=1), (0, 0)), "link-exchange", Limits())


def test_a_method_that_gives_no_design_says_so():
    with pytest.raises(NoSolutionError, match="ideal-switch"):
        answer_topology(job_of(two_layers(), (0, 0)), "ideal-switch", Limits())
