"""Slots that are held for the last packet: what a simulation measures, beside the expectations of the model."""

from typing import Any

import pytest
from refusals import one_line

from ddlopt.analysis.simulation.aggregators import through_slots
from ddlopt.analysis.simulation.slot_holds import through_holds
from ddlopt.models.aggregation import SlotPlan, SlotsInstance
from ddlopt.models.errors import NotApplicableError, OptionError

LATE = {"delays_s": [2e-5, 6e-5], "chances": [0.05, 0.01], "loss": 0.01, "timeout_s": 5e-5}


def planned(switches: int = 1, slots: int = 16, **delivery: Any) -> tuple[SlotsInstance, SlotPlan]:
    """One job with so many slots at each switch; cards that are not in the way."""
    job = {"name": "a", "gradient_bytes": 1e8, "nic_bytes_per_s": 1e11, "rtt_s": 1e-5, "switches": [*range(switches)]}
    instance = SlotsInstance.from_data(
        {
            "name": "one",
            "switches": [{"name": f"s{k}", "slots": 64, "payload_bytes": 256.0} for k in range(switches)],
            "jobs": [job | ({"delivery": delivery} if delivery else {})],
        }
    )
    return instance, SlotPlan(instance="one", slots=[[slots] * switches], rates_bytes_per_s=[1e6])


def test_without_delays_a_slot_gives_a_payload_a_round_trip() -> None:
    (found,) = through_holds(*planned(slots=4), packets=400)
    assert found.expected_bytes_per_s == pytest.approx(4 * 256 / 1e-5)
    assert found.goodput_bytes_per_s == pytest.approx(4 * 256 / 1e-5, rel=0.02)


@pytest.mark.parametrize("workers", [1, 8])
def test_goodput_of_a_switch_is_what_expected_holding_times_say(workers: int) -> None:
    instance, plan = planned(workers=[workers], **LATE)
    (found,) = through_holds(instance, plan, packets=8000, seed=1)
    hold_s = instance.jobs[0].hold_s(0)
    # Four standard errors, of which the model without waits would be twelve or more away.
    assert abs(found.holds_s[0] - hold_s) <= 4 * found.errors_s[0]
    assert hold_s - 1e-5 > 12 * found.errors_s[0]
    assert found.goodput_bytes_per_s == pytest.approx(16 * 256 / hold_s, rel=5 * found.errors_s[0] / hold_s)
    assert found.expected_bytes_per_s == pytest.approx(16 * 256 / hold_s)


def test_switches_above_wait_for_all_workers_and_goodput_stays_below_what_each_allows() -> None:
    instance, plan = planned(3, 64, workers=[2, 6, 8], **LATE)
    (found,) = through_holds(instance, plan, packets=8000, seed=2)
    for number, (mean, error) in enumerate(zip(found.holds_s, found.errors_s, strict=True)):
        assert abs(mean - instance.jobs[0].hold_s(number)) <= 4 * error
    assert found.holds_s[0] < found.holds_s[1] < found.holds_s[2]
    assert 0.9 < found.goodput_bytes_per_s / found.expected_bytes_per_s < 1.03


def test_a_card_sends_what_is_lost_again() -> None:
    instance, plan = planned(slots=9, workers=[1], loss=0.25, timeout_s=1e-9)
    slow = instance.model_copy(update={"jobs": (instance.jobs[0].model_copy(update={"nic_bytes_per_s": 1e7}),)})
    (found,) = through_holds(slow, plan, packets=200)
    assert found.goodput_bytes_per_s == pytest.approx(0.75e7, rel=1e-6)


def test_who_falls_back_is_not_simulated_and_seeds_repeat() -> None:
    instance, plan = planned(workers=[4], **LATE)
    back = plan.model_copy(update={"rates_bytes_per_s": (None,)})
    assert through_holds(instance, back) == [None]
    assert through_holds(instance, plan, 500, 3) == through_holds(instance, plan, 500, 3)
    assert through_holds(instance, plan, 500, 3) != through_holds(instance, plan, 500, 4)


def test_what_is_not_simulated_is_told() -> None:
    instance, plan = planned(2, workers=[4, 5], **LATE)
    with one_line(NotApplicableError, "has 5 workers at its last switch, 4 at the others"):
        through_holds(instance, plan)
    with one_line(OptionError, "packets is 319, but jobs[0] ('a') has 16 slots; expected at least 320"):
        through_holds(instance, plan, packets=319)
    with one_line(NotApplicableError, "jobs[0] ('a') has a delivery"):
        through_slots(*planned(workers=[1], **LATE))
