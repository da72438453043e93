"""Bounds of 0, outputs that many fetch, slow links: what once made formulations of plans and partitions false."""

import itertools

import pyomo.environ as pyo
import pytest
from partition_cases import optimum

import ddlopt
from ddlopt.certificates.linear import LinearCertificate
from ddlopt.frontier.deployment.partition.formulations.latency_partition import LatencyPartition
from ddlopt.frontier.deployment.plan.formulations.disjunctive_makespan import DisjunctiveMakespan
from ddlopt.models.deployment import DeploymentInstance
from ddlopt.models.deployment.partition.formulations.max_load_partition import MaxLoadPartition
from ddlopt.models.deployment.partition.formulations.tarnawski_latency import Tarnawski2020Latency
from ddlopt.models.deployment.partition.instance import PartitionInstance
from ddlopt.models.deployment.plan.bounds import plan_bound
from ddlopt.models.deployment.plan.formulations.makespan_bound import MakespanBound
from ddlopt.models.errors import RangeError, SolutionError
from ddlopt.solvers import proofs
from ddlopt.solvers.backends.highs import Highs
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.exact import build_model

PLANS = [MakespanBound(), DisjunctiveMakespan(), DisjunctiveMakespan(every_plan=True)]


def chain(*times, link=4.0):
    """A chain of operators with times on types a and b, two devices of a and one of b."""
    return DeploymentInstance.from_data(
        {
            "name": "chain",
            "operators": [
                {
                    "name": f"o{k}",
                    "group": k,
                    "times_s": {"a": [a], "b": [b]},
                    "gradient_bytes": 0.5,
                    "resident_bytes": 0,
                }
                for k, (a, b) in enumerate(times)
            ],
            "tensors": [{"producer": k, "consumers": [k + 1], "size_bytes": 1.0} for k in range(len(times) - 1)],
            "device_groups": [
                {"type": kind, "count": count, "memory_bytes": 1e9, "bandwidth_bytes_per_s": 2.0}
                for kind, count in (("a", 2), ("b", 1))
            ],
            "bandwidth_bytes_per_s": [[0, link], [link, 0]],
            "all_reduce": {"s_per_byte": [1.0], "fixed_s": [0.0], "at_bytes_per_s": 1.0},
        }
    )


def solved(formulation, instance):
    model = build_model(instance.family, formulation, instance)
    outcome = Highs().solve(model, Limits(time_s=60, gap=1e-9))
    assert outcome.status is Status.OPTIMAL
    return formulation.objective_value(instance, outcome.bound)


FREE = chain((0.0, 3.0), (0.5, 0.0))


@pytest.mark.parametrize("formulation", PLANS, ids=str)
def test_a_bound_of_nothing_is_no_bound_of_a_second(formulation):
    """Every operator is free somewhere, and the best plan sends what the first makes: a quarter of a second."""
    assert plan_bound(FREE) == 0
    best = ddlopt.solve(FREE, "brute-force").objective
    assert 0 < best < 0.3
    assert solved(formulation, FREE) <= best * (1 + 1e-6)


@pytest.mark.parametrize("method", ["makespan-bound", "disjunctive-makespan"])
def test_an_empty_proof_of_what_is_false_is_refused(method):
    claims = {"instance": "chain", "instance_digest": FREE.digest, "method": method, "model_digest": "0" * 64}
    for claim in ("9/10", "999"):
        data = {"format": "ddlopt linear certificate", "version": 1, **claims, "claim": claim}
        forged = LinearCertificate.from_data({**data, "nodes": [["dual", 0, [], []]]}, "forged")
        with pytest.raises(SolutionError):
            proofs.check(FREE, forged)


@pytest.mark.parametrize("formulation", PLANS, ids=str)
def test_nothing_takes_any_time(formulation):
    assert solved(formulation, chain((0.0, 0.0), (0.0, 1.0))) == pytest.approx(0, abs=1e-9)


def test_an_m_is_the_time_of_a_known_plan_unless_every_plan_is_wanted():
    """Links so slow that what they take is 1e8 times a step: nobody sends anything over them."""
    instance = chain((1.0, 2.0), (3.0, 2.0), (1.0, 1.0), link=1e-8)
    bound, best = solved(DisjunctiveMakespan(), instance), ddlopt.solve(instance, "brute-force").objective
    assert solved(MakespanBound(), instance) * (1 - 1e-6) <= bound <= best * (1 + 1e-6)
    with pytest.raises(RangeError, match=r"the time of a plan may be .* times the objective"):
        build_model("deployment", DisjunctiveMakespan(every_plan=True), instance)


def latency(nodes, edges, **fields):
    """Nodes with times on an accelerator and transfers, no processors."""
    return PartitionInstance.from_data(
        {
            "name": "fetched",
            "goal": "latency",
            "nodes": [
                {"name": f"n{k}", "accelerator_s": time, "processor_s": None, "transfer_s": sent, "memory_bytes": 1.0}
                for k, (time, sent) in enumerate(nodes)
            ],
            "edges": edges,
            "processors": 0,
            **fields,
        }
    )


@pytest.mark.parametrize("formulation", [Tarnawski2020Latency(), LatencyPartition()], ids=str)
def test_an_output_is_fetched_by_every_accelerator_that_needs_it(formulation):
    """Four nodes alone, a chain of which each fetches what the first makes: 3 + 3 x 4 rather than the M of before."""
    instance = latency(
        [(1.0, 3.0), *[(1.0, 0.0)] * 3], [(0, 1), (0, 2), (0, 3), (1, 2), (2, 3)], accelerators=4, memory_bytes=1.0
    )
    best = optimum(instance)
    assert best == 4 + 3 * 4
    assert solved(formulation, instance) == pytest.approx(best, rel=1e-6)


def test_a_limit_allows_for_what_empty_sets_are_charged():
    """On each accelerator a node without work: nothing takes longer than the limit but for the charge."""
    instance = latency([(0.0, 0.0)] * 3 + [(1e-3, 0.0)], [(0, 1), (1, 2), (2, 3)], accelerators=4, memory_bytes=1.0)
    best = optimum(instance)
    assert solved(LatencyPartition(best), instance) == pytest.approx(best, rel=1e-6)


def test_a_host_that_tells_accelerators_apart_turns_symmetry_off():
    """A node costs more on the second accelerator; in the order of the model the heaviest has to be on the first."""
    instance = PartitionInstance.from_data(
        {
            "name": "unlike",
            "nodes": [
                {"name": f"n{k}", "accelerator_s": time, "processor_s": None, "transfer_s": 0.0, "memory_bytes": 1.0}
                for k, time in enumerate((3.0, 2.0, 1.0, 0.0))
            ],
            "edges": [(2, 3)],
            "accelerators": 2,
            "processors": 0,
            "memory_bytes": 10.0,
        }
    )
    price, most = (1.0, 5.0), 1.1 * optimum(instance)

    def cheapest(formulation):
        model = build_model("deployment", formulation, instance)
        block, blocks = model.deployment, formulation.blocks(instance)
        model.objective.deactivate()
        model.fast = pyo.Constraint(expr=formulation.objective_value(instance, 1.0) * block.objective <= most)
        terms = [price[d] * len(blocks.members[v]) * block.on[v, d] for v, d in block.on]
        model.cost = pyo.Objective(expr=sum(terms))
        return Highs().solve(model, Limits()).objective

    costs = []
    for devices in itertools.product((0, 1), repeat=4):
        load = [sum(t for t, d in zip((3, 2, 1, 0), devices, strict=True) if d == own) for own in (0, 1)]
        if max(load) <= most:
            costs.append(sum(price[d] for d in devices))
    right = min(costs)
    assert cheapest(MaxLoadPartition(ordered=False, merged=False)) == pytest.approx(right)
    assert cheapest(MaxLoadPartition()) > right + 1


def test_tag_has_a_plan_where_nothing_takes_time():
    found = ddlopt.solve(chain((0.0, 2.0)), "tag:playouts=200")
    assert found.objective == 0
