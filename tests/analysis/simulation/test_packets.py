"""Packets: what is asked of ns-3, and, where it is installed, that it says what theory says."""

import threading
from importlib.util import find_spec

import pytest

import ddlopt
from ddlopt.analysis.simulation import packets
from ddlopt.analysis.simulation.packets import PacketOptions, sent_as_packets
from ddlopt.analysis.simulation.replay import Replay, Task
from ddlopt.models.errors import NotApplicableError, OptionError, SolverError, SolverMissingError
from tests.analysis.simulation.test_flows import ring_job
from tests.helpers.refusals import one_line

HAS_NS3 = find_spec("ns") is not None and find_spec("cppyy") is not None


def slow_and_needs_ns3(test):
    absent = pytest.mark.skipif(not HAS_NS3, reason="ns3 is not installed: pip install 'ddlopt[packets]'")
    return pytest.mark.slow(absent(test))


@pytest.fixture
def asked(monkeypatch):
    """What ns-3 would be asked; it answers that all took no time."""
    requests = []

    def answer(request):
        requests.append(request)
        return {"complete": True, "ends": [0.0] * len(request["tasks"]), "drops": 0, "sent_packets": 0, "timeouts": 0}

    monkeypatch.setattr(packets, "_asked", answer)
    monkeypatch.setattr(packets, "require_ns3", lambda: None)
    return requests


def test_absent_is_one_line(monkeypatch):
    monkeypatch.setattr(packets, "find_spec", lambda name: None)
    instance, design = ring_job(3)
    with one_line(SolverMissingError, "ddlopt[packets]"):
        ddlopt.simulate(instance, design, "ns3")


def test_the_busiest_link_carries_as_many_packets_as_asked(asked):
    """A ring of 1 byte and rate 3 takes 4/9 s; its hops carry 500 packets of 1448 bytes in as long."""
    instance, design = ring_job(3)
    found = ddlopt.simulate(instance, design, "ns3", packets=500, iterations=2)
    (request,) = asked
    assert sum(size for channel, size, _, _ in request["tasks"] if channel == 0) == 2 * 500 * 1448
    assert request["links"][0][2] == round(8 * 500 * 1448 / (4 / 9))
    assert found.details["time_scale"] == 1.0
    slow = instance.model_copy(update={"link_bandwidth_bytes_per_s": 3e-6})
    assert ddlopt.simulate(slow, design, "ns3").details["time_scale"] == pytest.approx(0.1 / (4e6 / 9))


def test_headers_may_take_no_bandwidth(asked):
    instance, design = ring_job(3)
    for headers in (True, False):
        ddlopt.simulate(instance, design, "ns3", headers=headers)
    rates = [request["links"][0][2] for request in asked]
    assert rates[1] / rates[0] == pytest.approx(1502 / 1448, rel=1e-6)


def test_acknowledgements_go_back_over_links(asked):
    """On a one-way ring of three the way back from a neighbour has two links."""
    instance, design = ring_job(3)
    ddlopt.simulate(instance, design, "ns3", acknowledgements="links")
    ddlopt.simulate(instance, design, "ns3")
    assert asked[0]["paths"][0] == ((0, 1), (1, 2, 0))
    assert asked[1]["paths"][0] == ((0, 1), ())


def test_no_way_back_is_one_line(asked):
    alone = Replay(2, {(0, 1): 1.0}, ((0, 1),), (Task(channel=0, bytes=1.0),))
    with one_line(NotApplicableError, "no links lead back from server 1 to server 0"):
        sent_as_packets(alone, PacketOptions(acknowledgements="links"))


@pytest.mark.parametrize(
    "options",
    [{"packets": 1}, {"mtu_bytes": 52}, {"control": "quic"}, {"delay_s": -1.0}, {"acknowledgements": "never"}],
)
def test_bad_options_are_one_line(options):
    instance, design = ring_job(3)
    with one_line(OptionError, next(iter(options))):
        ddlopt.simulate(instance, design, "ns3", **options)


def test_a_crash_is_one_line(monkeypatch, tmp_path):
    """Where the process dies its last words are told."""
    monkeypatch.setattr(packets, "require_ns3", lambda: None)
    monkeypatch.setattr(packets, "_OF_THREAD", threading.local())
    monkeypatch.setattr(packets, "PROCESS", ("-c", "import sys; sys.exit('no memory\\nfor packets')"))
    instance, design = ring_job(3)
    with one_line(SolverError, "exit code 1: for packets"):
        ddlopt.simulate(instance, design, "ns3")


@slow_and_needs_ns3
def test_packets_on_a_link_take_what_their_bytes_take():
    """One long message: its packets with their headers, one after the other."""
    alone = Replay(2, {(0, 1): 1.25e8}, ((0, 1),), (Task(channel=0, bytes=1.25e7),))
    found = sent_as_packets(alone, PacketOptions(packets=5000, queue_packets=10_000, iterations=1))
    assert found.finished[0] == pytest.approx(0.1 * 1502 / 1448, rel=0.02)
    assert found.drops == found.timeouts == 0


@slow_and_needs_ns3
def test_packets_of_a_ring():
    """Between the closed form with headers and five percent more; messages of two iterations do not mix."""
    instance, design = ring_job(4, compute_s=0.1)
    found = ddlopt.simulate(instance, design, "ns3", packets=3000)
    assert 0.1 + 0.5 * 1502 / 1448 <= found.simulated_s <= 0.1 + 0.5 * 1502 / 1448 * 1.05


@slow_and_needs_ns3
def test_packets_are_lost_and_counted():
    """Five senders whose packets meet at one link with a short queue; all arrive in the end."""
    links = {(k, 5): 1.25e8 for k in range(5)} | {(5, 6): 1.25e8}
    paths = tuple((k, 5, 6) for k in range(5))
    meeting = Replay(7, links, paths, tuple(Task(channel=k, bytes=1e7) for k in range(5)))
    found = sent_as_packets(meeting, PacketOptions(queue_packets=10, iterations=1))
    assert found.drops > 0
    assert found.timeouts > 0
    assert max(found.finished) > 0.4


@slow_and_needs_ns3
def test_a_process_simulates_again():
    """Nothing is left of the simulations before, of another network too."""
    instance, design = ring_job(4)
    first = ddlopt.simulate(instance, design, "ns3", packets=300, queue_packets=20)
    ddlopt.simulate(*ring_job(3), "ns3", packets=200)
    assert ddlopt.simulate(instance, design, "ns3", packets=300, queue_packets=20) == first
