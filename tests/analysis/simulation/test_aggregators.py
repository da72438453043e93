"""Packets through slots of switches: closed forms of rates, and what may be asked."""

import pytest

from ddlopt.analysis.simulation.aggregators import SlotOptions, through_slots
from ddlopt.models.aggregation.slots.instance import SlotPlan, SlotsInstance
from ddlopt.models.errors import NotApplicableError, OptionError
from tests.helpers.refusals import one_line

PAYLOAD, NIC, RTT = 256.0, 1e9, 1e-5
CARD_S = PAYLOAD / NIC


def rack_job(**changes):
    return {"name": "job", "gradient_bytes": 1e9, "nic_bytes_per_s": NIC, "rtt_s": RTT, "switches": [0]} | changes


def instance_of(*jobs, uplink=None, speed=None):
    """One rack, or two with links to the switch above them."""
    racks = 1 if uplink is None else 2
    switch = {"slots": 1000, "payload_bytes": PAYLOAD, "aggregation_bytes_per_s": speed}
    return SlotsInstance.from_data(
        {
            "name": "few",
            "switches": [switch | {"name": f"switch {k}"} for k in range(racks + (racks > 1))],
            "links": [{"name": f"up {k}", "bandwidth_bytes_per_s": uplink} for k in range(racks if uplink else 0)],
            "jobs": list(jobs),
        }
    )


def simulated(instance, slots, rate=NIC, **options):
    """Rates, with so many slots for every job at each of its switches."""
    plan = SlotPlan(
        instance=instance.name,
        slots=tuple((slots,) * len(job.switches) for job in instance.jobs),
        rates_bytes_per_s=(rate,) * len(instance.jobs),
    )
    return through_slots(instance, plan, SlotOptions(**options))


@pytest.mark.parametrize("slots", [1, 7, 30])
@pytest.mark.parametrize("workers", [1, 3])
def test_slots_are_what_is_on_its_way(slots, workers):
    """A slot is used again after a round trip and the time that the card needs for a packet."""
    (rate,) = simulated(instance_of(rack_job()), slots, workers=workers).rates_bytes_per_s
    assert rate == pytest.approx(slots * PAYLOAD / (RTT + CARD_S), rel=1e-9)


def test_parts_of_slots_are_left_empty():
    instance = instance_of(rack_job())
    whole, part, little = (simulated(instance, slots).rates_bytes_per_s[0] for slots in (7, 7.9, 0.3))
    assert part == whole
    assert little == pytest.approx(whole / 7, rel=1e-9)


@pytest.mark.parametrize("header", [0.0, 64.0])
def test_no_faster_than_the_card(header):
    (rate,) = simulated(instance_of(rack_job()), 200, header_bytes=header).rates_bytes_per_s
    assert rate == pytest.approx(NIC * PAYLOAD / (PAYLOAD + header), rel=1e-6)


def test_racks_share_a_link():
    """Two jobs with slots for more than the links carry have half of it each."""
    wide = rack_job(switches=[0, 1, 2], links=[0, 1])
    rates = simulated(instance_of(wide, wide, uplink=NIC / 2), 200, rounds=200).rates_bytes_per_s
    assert sum(rates) == pytest.approx(NIC / 2, rel=1e-2)
    (alone,) = simulated(instance_of(wide, uplink=NIC), 5).rates_bytes_per_s
    assert alone == pytest.approx(5 * PAYLOAD / (RTT + 2 * CARD_S), rel=1e-9)


def test_a_switch_of_limited_speed():
    rates = simulated(instance_of(rack_job(), rack_job(), speed=NIC / 4), 100, rounds=200).rates_bytes_per_s
    assert sum(rates) == pytest.approx(NIC / 4, rel=1e-2)


def test_pacing_is_the_plans_rate():
    (rate,) = simulated(instance_of(rack_job()), 30, rate=NIC / 2, paced=True).rates_bytes_per_s
    assert rate == pytest.approx(NIC / 2, rel=1e-6)


def test_a_sum_waits_for_the_last_worker():
    """There and back are two ways of 0 to 2 parts; the longer of two such sums has a mean of 37/15, as E|S_4 - 2| is
    7/15 for the sum of four uniform numbers.
    """
    instance = instance_of(rack_job())
    one, two = (simulated(instance, 20, workers=workers, jitter=1.0, rounds=400) for workers in (1, 2))
    assert one.rates_bytes_per_s[0] == pytest.approx(20 * PAYLOAD / (RTT + CARD_S), rel=0.02)
    assert two.rates_bytes_per_s[0] == pytest.approx(20 * PAYLOAD / (RTT * 37 / 30 + CARD_S), rel=0.02)
    assert one.held == 0 < two.held < 1


@pytest.mark.parametrize("workers", [1, 2])
def test_a_lost_packet_costs_a_timeout(workers):
    """One of two ways of one of the workers is lost so often: a timer each time, to first order."""
    loss, timeout_s = 1e-3, 1e-3
    (rate,) = simulated(
        instance_of(rack_job()), 20, workers=workers, loss=loss, timeout_s=timeout_s, rounds=4000
    ).rates_bytes_per_s
    expected = RTT + CARD_S + 2 * workers * loss * timeout_s
    assert rate == pytest.approx(20 * PAYLOAD / expected, rel=0.03)


def test_losses_end_for_racks_too():
    wide = rack_job(switches=[0, 1, 2], links=[0, 1])
    found = simulated(instance_of(wide, uplink=NIC), 5, loss=0.2, timeout_s=1e-4, rounds=4000)
    assert found.sent_again > 100
    assert 0 < found.rates_bytes_per_s[0] < 5 * PAYLOAD / RTT


def test_who_falls_back_is_not_simulated():
    instance = instance_of(rack_job(), rack_job(fallback_bytes_per_s=1e8))
    plan = SlotPlan(instance="few", slots=((5,), (0,)), rates_bytes_per_s=(1e8, None))
    assert through_slots(instance, plan).rates_bytes_per_s[1] is None


def test_other_networks_are_one_line():
    odd = instance_of(rack_job(switches=[0, 1], links=[]), uplink=NIC)
    with one_line(NotApplicableError, "jobs[0] ('job') has 2 switches and 0 links"):
        simulated(odd, 5)


@pytest.mark.parametrize(
    ("name", "value"),
    [("workers", 0), ("header_bytes", -1.0), ("jitter", 1.5), ("loss", 0.9), ("timeout_s", 0.0), ("rounds", 1)],
)
def test_options_out_of_range_are_one_line(name, value):
    with one_line(OptionError, f"{name} is {value}"):
        SlotOptions(**{name: value})
