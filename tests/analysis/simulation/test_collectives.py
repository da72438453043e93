"""Plans of collectives as flows: what the model says is the limit of many pieces."""

from fractions import Fraction

import pytest
from refusals import one_line

import ddlopt
from ddlopt import instances
from ddlopt.analysis.simulation.collective_replay import replay_of_collective
from ddlopt.instances import generators
from ddlopt.models.errors import OptionError

PLANS = ("all-gather-kautz-2-3", "all-reduce-path-4", "reduce-scatter-unequal-n8-d3", "all-to-all-circulant-8-1-3")


@pytest.mark.parametrize("name", PLANS)
def test_many_pieces_come_near_to_the_model(name):
    instance, plan = ddlopt.load(f"topology/{name}"), instances.best(f"topology/{name}")
    predicted = float(ddlopt.check(instance, plan, exact=True).objective)
    times = [ddlopt.simulate(instance, plan, pieces=pieces).simulated_s for pieces in (1, 32)]
    assert predicted * (1 - 1e-9) <= times[1] <= times[0]
    assert times[1] <= 1.1 * predicted
    apart = ddlopt.simulate(instance, plan, steps=False)
    assert apart.simulated_s == pytest.approx(predicted, rel=1e-9)
    assert apart.link_time_s == pytest.approx(predicted, rel=1e-9)


@pytest.mark.parametrize("pieces", [1, 4, 10])
def test_a_broadcast_along_a_path_fills_its_pipeline(pieces):
    """Three links one after the other: the last piece starts behind all others and takes two links more."""
    instance = generators.generate(
        "topology", "collective", network="path", collective="broadcast", accelerators=4, gigabytes=1
    )
    found = ddlopt.simulate(instance, ddlopt.solve(instance).solution, pieces=pieces)
    assert found.simulated_s == pytest.approx(float(Fraction(pieces + 2, pieces)))
    assert found.predicted_s == 1
    assert found.messages == 3 * pieces


def test_sums_wait_for_all_their_parts():
    """An all-reduce along a path: what comes back waits for the sum, which waits for the far end."""
    name = "topology/all-reduce-path-4"
    instance, plan = ddlopt.load(name), instances.best(name)
    tasks = replay_of_collective(instance, plan, pieces=1).replay.tasks
    first = plan.trees[0]
    gathered = [place for place, path in enumerate(sorted_up(first)) if path[-1] == first.root]
    spread = next(task for task in tasks[len(first.gather) :] if task.channel is not None)
    assert spread.after == tuple(gathered)
    assert all(max(task.after, default=-1) < place for place, task in enumerate(tasks))
    assert len(tasks) == sum(len(tree.gather) + len(tree.spread) for tree in plan.trees)


def sorted_up(tree):
    """Paths that gather, the farthest first."""
    above = {path[0]: path[-1] for path in tree.gather}

    def far(node):
        return 0 if node == tree.root else 1 + far(above[node])

    return sorted(tree.gather, key=lambda path: -far(path[0]))


def test_pieces_have_a_range():
    with one_line(OptionError, "pieces is 0; expected 1 to 1000"):
        ddlopt.simulate("topology/all-reduce-path-4", instances.best("topology/all-reduce-path-4"), pieces=0)
