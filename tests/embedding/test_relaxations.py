"""No formulation is weaker than it was: the relaxation of each against a pinned value."""

import dataclasses

import pyomo.environ as pyo
import pytest
import relaxation_pins
from relaxation_pins import Pin, Program, Relaxed, measured, pins, programs
from volume import slow

QUICK = [pin for pin in pins() if not pin.slow]
SLOW = [pin for pin in pins() if pin.slow]


@pytest.mark.parametrize("held", [QUICK, slow(SLOW)], ids=["quick", "slow"])
def test_every_relaxation_is_as_strong_as_its_pin(held, capsys):
    known, weaker, stronger = programs(), [], []
    for pin in (each for each in held if each.formulation in known):
        now = measured(known[pin.formulation], pin.instance)
        worse = ["it is refused, or has no optimum"] if now is None else now.weaker_than(pin)
        weaker += [f"{pin.formulation} on {pin.instance}: {', '.join(worse)}"] * bool(worse)
        stronger += [f"{pin.formulation} on {pin.instance}"] * (not worse and bool(pin.weaker_than(now)))
    with capsys.disabled():
        for each in stronger:
            print(f"\nraise the pin of {each}: python tests/helpers/relaxation_pins.py")
    assert not weaker, "rows that make a formulation strong were lost:\n" + "\n".join(weaker)


def test_every_formulation_has_a_pin():
    assert {pin.formulation for pin in pins()} == set(programs())


class Knapsack:
    """Two of three items, and the cover inequality that cuts the fractional optimum off."""

    sense = "maximize"

    def __init__(self, cut, most=3):
        self.cut, self.most = cut, most

    def build(self, block, instance):
        block.taken = pyo.Var(range(3), domain=pyo.Binary)
        block.total = pyo.Var(bounds=(0, self.most))
        block.weight_suffices = pyo.Constraint(expr=sum(2 * block.taken[i] for i in range(3)) <= 5)
        block.two_at_most = pyo.Constraint(expr=sum(block.taken[i] for i in range(3)) <= 2)
        block.total_is_counted = pyo.Constraint(expr=block.total <= sum(block.taken[i] for i in range(3)))
        if not self.cut:
            block.two_at_most.deactivate()
        block.objective = pyo.Expression(expr=block.total)


def knapsack(**options):
    name = "topology/tiny-n4-d2"
    return measured(Program("knapsack", "topology", Knapsack, lambda _: Knapsack(**options)), name)


def test_a_lost_row_is_weaker_and_a_new_one_stronger():
    strong, weak = knapsack(cut=True), knapsack(cut=False)
    assert (strong.value, weak.value) == (pytest.approx(2), pytest.approx(2.5))
    assert weak.weaker_than(strong)
    assert not strong.weaker_than(weak)
    assert not strong.weaker_than(strong)


def test_a_bound_on_the_objective_does_not_hide_a_lost_row():
    strong, weak = knapsack(cut=True, most=2), knapsack(cut=False, most=2)
    assert strong.value == weak.value == pytest.approx(2)
    assert "rows" in [each.split()[0] for each in weak.weaker_than(strong)]


def test_the_sense_counts():
    pin = Pin("a", "b", "minimize", 10.0)
    assert dataclasses.replace(pin, value=9.99).weaker_than(pin)
    assert not dataclasses.replace(pin, value=10.1).weaker_than(pin)
    assert not dataclasses.replace(pin, value=9.9999).weaker_than(pin)


def test_nothing_weaker_is_written_unless_it_is_named(monkeypatch):
    made = Program("knapsack", "topology", Knapsack, lambda _: Knapsack(cut=False))
    monkeypatch.setattr(relaxation_pins, "programs", lambda: {"knapsack": made})
    old = [Pin("knapsack", "topology/tiny-n4-d2", "maximize", 2.0)]
    table, refused = relaxation_pins.renewed(old, [])
    assert table == old
    assert len(refused) == 1
    table, refused = relaxation_pins.renewed(old, ["knapsack"])
    assert not refused
    assert table[0].value == pytest.approx(2.5)


def test_felt_constraints_are_found():
    made = Program("knapsack", "topology", Knapsack, lambda _: Knapsack(cut=True))
    every, felt = relaxation_pins.felt(made, "topology/tiny-n4-d2")
    assert every == Relaxed(made, relaxation_pins.cases.loaded("topology/tiny-n4-d2")).constraints()
    assert felt == ["two_at_most", "total_is_counted"]
