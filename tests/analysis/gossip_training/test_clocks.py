"""Simulated time by hand, and against a clock that goes message by message."""

import numpy as np
import pytest
from refusals import one_line
from volume import for_each

from ddlopt.analysis.gossip_training.clocks import Clock, Timing
from ddlopt.analysis.gossip_training.exchange import Sent
from ddlopt.analysis.gossip_training.policies import policy_of
from ddlopt.analysis.gossip_training.training import Training, train
from ddlopt.instances.generators.gossip.graphs import network_of
from ddlopt.models.errors import OptionError


def graph(shape="path", nodes=3):
    return network_of(np.random.default_rng(0), shape, nodes, 3)


def sent(*links, nodes=3, together=False):
    """A model over each of the links (from, to)."""
    matrix = np.zeros((nodes, nodes))
    for link in links:
        matrix[link] = 1.0
    return Sent(matrix.sum(axis=1), np.ones(nodes) if together else matrix.sum(axis=1), matrix, together)


def clock(steps=4, late=0, seconds=None, nodes=3, **options):
    """Workers of a path that compute for the given seconds in each step."""
    found = Clock(Timing(**options), graph("path", nodes), steps, late)
    if seconds is not None:
        found._computing = np.tile(np.array(seconds, dtype=float), (steps, 1))
    return found


def test_only_those_who_hear_wait_for_the_slow_one():
    found = clock(seconds=[1, 1, 5], message_s=2.0)
    found.step(sent((0, 1)))
    assert found.ready.tolist() == [3, 3, 5]
    found.step(sent((2, 1)))
    assert found.ready.tolist() == [4, 12, 12]
    assert found.seconds == 12


def test_all_wait_where_anybody_sends():
    found = clock(seconds=[1, 1, 5], message_s=2.0, wait="all")
    found.step(sent())
    assert found.ready.tolist() == [1, 1, 5]
    found.step(sent((0, 1)))
    assert found.ready.tolist() == [10, 10, 10]


def test_a_worker_sends_one_message_after_the_other():
    found = clock(seconds=[1, 1, 1], message_s=2.0)
    found.step(sent((1, 0), (1, 2)))
    assert found.ready.tolist() == [3, 5, 5]


def test_an_all_reduce_begins_with_the_last():
    found = clock(seconds=[1, 2, 5], message_s=2.0)
    found.step(sent(together=True))
    assert found.ready.tolist() == [7, 7, 7]


def test_late_messages_hide_behind_computing():
    """Sent after step 1, waited for at the end of step 2: two seconds of the way are hidden by computing."""
    found = clock(seconds=[2, 2, 2], late=1, message_s=3.0)
    found.step(sent((0, 1)))
    assert found.ready.tolist() == [2, 2, 2]
    found.step(sent((0, 1)))
    assert found.ready.tolist() == [5, 5, 4]
    # The card is free at 5 and sends until 8 what was ready at 4.
    found.step(sent())
    assert found.ready.tolist() == [8, 8, 6]


def test_a_server_is_waited_for_by_who_asks_it_alone():
    found = clock(seconds=[1, 1, 4], message_s=2.0)
    found.step(Sent(np.ones(3), 2 * np.ones(3), np.diag([2.0, 2.0, 2.0])))
    assert found.ready.tolist() == [5, 5, 8]


def message_by_message(timing, network, transcript, computing, link_s):
    """The same without arrays and without delay."""
    n = network.nodes
    ready, card = [0.0] * n, [0.0] * n
    for step, said in enumerate(transcript):
        ended = [ready[i] + computing[step][i] for i in range(n)]
        after = list(ended)
        for i in range(n):
            for j in range(n):
                if said.links[i, j]:
                    card[i] = max(card[i], ended[i]) + said.links[i, j] * link_s[i][j]
                    after[j] = max(after[j], card[i])
                    after[i] = max(after[i], card[i])
        anybody = said.links.any()
        ready = [max(after)] * n if timing.wait == "all" and anybody else after
    return ready


@for_each("wait", ["neighbours", "all"])
@for_each("policy", ["period:2,spread=yes", "dpsgd:every=3", "matcha", "adaptive:0.1", "choco", "eventgrad", "easgd:2"])
def test_clocks_of_trainings_go_message_by_message(wait, policy):
    network = graph("cycle", 5)
    training = Training(network, data="wine", epochs=4, batch=8, hidden=(5,))
    timing = Timing(uneven=1.0, slow_chance=0.3, slow_factor=4.0, message_s=0.7, uneven_links=2.0, wait=wait)
    found, transcript = Clock(timing, network, training.steps, seed=3), []

    def tick(each):
        transcript.append(each)
        found.step(each)

    run = train(training, policy_of(policy), 3, on_step=tick)
    assert sum(float(each.links.sum(axis=1).mean()) for each in transcript) == pytest.approx(run.models)
    again = Clock(timing, network, training.steps, seed=3)
    wanted = message_by_message(timing, network, transcript, again._computing, again._link_s)
    assert found.ready == pytest.approx(wanted)


def test_the_clock_is_what_the_study_of_accuracy_says_where_all_are_alike():
    network = graph("complete", 4)
    training = Training(network, data="wine", epochs=3, batch=8, hidden=(5,))
    found = Clock(Timing(message_s=1.3), network, training.steps)
    run = train(training, policy_of("period:4"), on_step=found.step)
    every = train(training, policy_of("period:1"))
    assert found.seconds == pytest.approx(run.time(1.3) * (every.steps + 1.3 * every.models))


def test_times_are_drawn_as_told():
    timing = Timing(compute_s=2.0, uneven=1.0, slow_chance=0.25, slow_factor=3.0, uneven_links=1.0)
    found = Clock(timing, graph("cycle", 5), 4000, seed=1)
    pace = found._computing.min(axis=0)
    assert sorted(pace) == pytest.approx([2.0, 2.5, 3.0, 3.5, 4.0])
    slow = found._computing / pace
    assert set(np.round(slow.ravel(), 9)) == {1.0, 3.0}
    assert (slow > 2).mean() == pytest.approx(0.25, abs=0.01)
    links = found._link_s[np.triu_indices(5, 1)]
    assert sorted(links[links > 0]) == pytest.approx([1.0, 1.25, 1.5, 1.75, 2.0])
    assert (found._link_s == found._link_s.T).all()
    other = Clock(timing, graph("cycle", 5), 4000, seed=2)
    assert (other._computing != found._computing).any()


@for_each(
    ("options", "said"),
    [
        ({"compute_s": -1.0}, "compute_s is -1; expected 0 or more"),
        ({"uneven": float("nan")}, "uneven is nan; expected 0 or more"),
        ({"slow_chance": 1.5}, "slow_chance is 1.5; expected 0..1"),
        ({"slow_factor": 0.5}, "slow_factor is 0.5; expected 1 or more"),
        ({"message_s": float("inf")}, "message_s is inf; expected 0 or more"),
        ({"wait": "some"}, "wait is 'some'; expected neighbours or all"),
    ],
)
def test_bad_timings_are_one_line(options, said):
    with one_line(OptionError, said):
        Timing(**options)
