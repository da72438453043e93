"""Flows: closed forms, and that nothing beats the busiest link."""

import itertools

import numpy as np
import pytest

import ddlopt
from ddlopt.analysis.simulation.fair_flows import fair_rates, finish_times, incidence
from ddlopt.analysis.simulation.replay import Replay, Task, replay_of
from ddlopt.models.errors import NotApplicableError, OptionError, SolutionError, UnknownNameError
from ddlopt.models.topology import TopologyDesign, TopologyInstance
from ddlopt.models.topology.solution import Ring, Route
from tests.helpers.refusals import one_line


def chain(rates, paths, tasks):
    """Nodes in a row, each joined with the next."""
    return Replay(len(rates) + 1, {(k, k + 1): rate for k, rate in enumerate(rates)}, paths, tasks)


def ring_job(servers, *, degree=1, gradient_bytes=1.0, **more):
    """An all-reduce of all servers, and a design of one ring."""
    instance = TopologyInstance(
        name="ring",
        servers=servers,
        degree=degree,
        link_bandwidth_bytes_per_s=3.0,
        allreduce_groups=({"members": range(servers), "gradient_bytes": gradient_bytes},),
        traffic_bytes=np.zeros((servers, servers)),
        **more,
    )
    hops = tuple((k, (k + 1) % servers) for k in range(servers))
    ring = Ring(group=0, members=tuple(range(servers)), share=1.0, paths=hops)
    return instance, TopologyDesign(instance="ring", links=tuple((i, j, 1) for i, j in hops), rings=(ring,))


def test_two_flows_share_a_link():
    ended = finish_times(chain([1.0], ((0, 1), (0, 1)), (Task(channel=0, bytes=1.0), Task(channel=1, bytes=3.0))))
    assert ended == pytest.approx([2.0, 4.0], rel=1e-12)


def test_a_parking_lot():
    """A long flow has half of each link; where a link is narrow the others take what it leaves."""
    paths = ((0, 1, 2, 3), (0, 1), (1, 2), (2, 3))
    for rates, expected in (([1, 1, 1], [0.5, 0.5, 0.5, 0.5]), ([1, 0.5, 2], [0.25, 0.75, 0.25, 1.75])):
        uses, capacity = incidence(chain(rates, paths, ()))
        assert fair_rates(uses, capacity, np.ones(4, bool)) == pytest.approx(expected, rel=1e-12)


def test_rates_are_max_min_fair():
    """Every flow crosses a full link on which nobody is faster."""
    draw = np.random.default_rng(1)
    links = [(i, j) for i in range(6) for j in range(6) if i != j]
    for _ in range(20):
        paths = tuple(tuple(map(int, draw.permutation(6)[: draw.integers(2, 6)])) for _ in range(15))
        replay = Replay(6, {link: float(draw.uniform(1, 5)) for link in links}, paths, ())
        uses, capacity = incidence(replay)
        rates = fair_rates(uses, capacity, np.ones(len(paths), bool))
        load = dict(zip(replay.rates, uses @ rates, strict=True))
        assert all(load[link] <= rate * (1 + 1e-9) for link, rate in replay.rates.items())
        on = {
            link: [rate for path, rate in zip(paths, rates, strict=True) if link in itertools.pairwise(path)]
            for link in links
        }
        for path, rate in zip(paths, rates, strict=True):
            assert any(
                load[link] >= replay.rates[link] * (1 - 1e-9) and rate >= max(on[link]) * (1 - 1e-9)
                for link in itertools.pairwise(path)
            )


@pytest.mark.parametrize("servers", [2, 3, 7, 12])
def test_a_ring_all_reduce_is_the_closed_form(servers):
    instance, design = ring_job(servers, gradient_bytes=5.0, compute_s=0.25)
    found = ddlopt.simulate(instance, design)
    expected = 0.25 + 2 * (servers - 1) / servers * 5.0 / 3.0
    assert found.simulated_s == pytest.approx(expected, rel=1e-12)
    assert found.predicted_s == pytest.approx(expected, rel=1e-12)
    assert found.messages == 2 * servers * (servers - 1)


def test_overlap_takes_the_longer():
    for compute_s in (0.1, 9.0):
        instance, design = ring_job(4, compute_s=compute_s, overlap="full")
        assert ddlopt.simulate(instance, design).simulated_s == pytest.approx(max(compute_s, 0.5), rel=1e-12)


def test_steps_wait_for_each_other():
    """What is late at one member is late everywhere: traffic on one hop of three slows the ring, then goes on alone."""
    instance, design = ring_job(3, gradient_bytes=3.0)
    traffic = np.zeros((3, 3))
    traffic[0, 1] = 1.0
    instance = instance.model_copy(update={"traffic_bytes": traffic})
    design = design.model_copy(update={"routes": (Route(source=0, target=1, paths=((0, 1),), fractions=(1.0,)),)})
    # Link (0, 1) at rate 3: two messages of 1 byte share it, then three steps are alone: 2/3 + 3 · 1/3 s.
    # In bulk it has 5 bytes in all, which is as long.
    assert ddlopt.simulate(instance, design).simulated_s == pytest.approx(5 / 3, rel=1e-12)
    assert ddlopt.simulate(instance, design, steps=False).simulated_s == pytest.approx(5 / 3, rel=1e-12)
    # Over (0, 1, 2) the traffic meets the ring on two hops, the second of which also waits for the first.
    traffic = np.zeros((3, 3))
    traffic[0, 2] = 1.0
    instance = instance.model_copy(update={"traffic_bytes": traffic})
    design = design.model_copy(update={"routes": (Route(source=0, target=2, paths=((0, 1, 2),), fractions=(1.0,)),)})
    assert ddlopt.simulate(instance, design).simulated_s == pytest.approx(5 / 3, rel=1e-12)


@pytest.mark.parametrize(
    "name", ["danoint", "tiny-n5-d3-duplex", "tiny-n5-d2-overlap", "dlrm-n12-d4", "hybrid-n8-d3-s1"]
)
def test_never_before_the_busiest_link_is_done(name):
    instance = ddlopt.instances.load(f"topology/{name}")
    design = ddlopt.solve(instance, "topology-finder", time_limit=5).solution
    for steps in (True, False):
        found = ddlopt.simulate(instance, design, steps=steps)
        assert found.simulated_s >= found.predicted_s * (1 - 1e-9)


def test_iterations_follow_each_other():
    instance, design = ring_job(3, compute_s=0.5)
    built = replay_of(instance, design, iterations=3)
    spans = built.iterations_s(finish_times(built.replay).tolist())
    assert spans == pytest.approx([spans[0]] * 3, rel=1e-12)
    assert len(built.replay.paths) == 3


def test_a_plan_of_codesign():
    instance = ddlopt.load("codesign/tiny-tables-n4-d2")
    plan = ddlopt.solve(instance, "alternating", time_limit=5).solution
    found = ddlopt.simulate(instance, plan)
    assert found.simulated_s >= found.predicted_s * (1 - 1e-9)
    assert found.compute_s > 0


def refused(kind, words, instance, design, engine="flows", **options):
    with one_line(kind, words):
        ddlopt.simulate(instance, design, engine, **options)


def test_bad_input_is_one_line():
    instance, design = ring_job(3)
    other, _ = ring_job(4)
    refused(SolutionError, "is infeasible for", other, design)
    refused(SolutionError, "ring", instance, design.model_copy(update={"instance_digest": "0" * 64}))
    refused(SolutionError, "path_follows_links", instance, design.model_copy(update={"links": design.links[:2]}))
    wide = design.model_copy(update={"links": tuple((i, j, 2) for i, j, _ in design.links)})
    refused(SolutionError, "degree", instance, wide)
    refused(UnknownNameError, "engine 'omnet'", instance, design, engine="omnet")
    refused(OptionError, "no option 'speed'", instance, design, speed=1)
    refused(OptionError, "true or false", instance, design, steps=1)
    gang = ddlopt.load("scheduling/departures-half")
    refused(NotApplicableError, "topology", gang, ddlopt.solve(gang, "gadget").solution)


def test_command(tmp_path, capsys):
    from ddlopt.cli import run

    instance, design = ring_job(3)
    (tmp_path / "ring.json").write_text(instance.to_json())
    (tmp_path / "design.json").write_text(design.to_json())
    assert run(["simulate", str(tmp_path / "ring.json"), str(tmp_path / "design.json")]) == 0
    assert "(1.000 times)" in capsys.readouterr().out
    assert run(["simulate", str(tmp_path / "ring.json"), str(tmp_path / "none.json")]) == 2
    assert run(["simulate", str(tmp_path / "ring.json"), str(tmp_path / "design.json"), "--set", "steps=maybe"]) == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 2
