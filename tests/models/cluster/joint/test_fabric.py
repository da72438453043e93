"""A fabric that jobs share: the check of hosts and uplinks and every way to break it, bad fabrics, cuts."""

import math
from fractions import Fraction

import pytest
from refusals import one_line

from ddlopt.models.cluster import JointInstance, JointPlan, evaluate
from ddlopt.models.cluster.joint.bounds import least_times, uplinks_bound
from ddlopt.models.cluster.joint.fabric import Fabric
from ddlopt.models.errors import InstanceError
from ddlopt.models.tolerances import ROUNDING

# Two blocks: one of racks of 2 and 2 hosts, one of a rack of 3.
GROUPS = [
    {"name": "left", "uplink_bytes_per_s": 6.0},
    {"name": "right", "uplink_bytes_per_s": 5.0},
    {"name": "a", "inside": 0, "hosts": 2, "uplink_bytes_per_s": 4.0},
    {"name": "b", "inside": 0, "hosts": 2, "uplink_bytes_per_s": 3.0},
    {"name": "c", "inside": 1, "hosts": 3, "uplink_bytes_per_s": 10.0},
]
FABRIC = Fabric(groups=GROUPS)
CHOICES = [
    {"servers": 2, "step_s": 2.0, "crossing_bytes": 4.0},
    {"servers": 3, "step_s": 1.0, "crossing_bytes": 3.0},
    {"servers": 5, "step_s": 1.0, "crossing_bytes": 2.0},
]
DATA = {
    "name": "shared",
    "servers": 7,
    "workloads": [{"name": "told", "choices": CHOICES}],
    "jobs": [{"name": name, "workload": 0, "iterations": 10} for name in "xy"],
    "fabric": {"groups": GROUPS},
}


def made(**changes):
    return JointInstance.from_data(DATA | changes)


def answer(*runs, widths=None):
    """Of runs (start, places, own step)."""
    told = []
    for start, places, *own in runs:
        told.append({"start": start, "servers": sum(count for _, count in places), "places": places})
        told[-1] |= {"step_s": own[0]} if own else {}
    used = sorted({run["servers"] for run in told})
    steps = {choice["servers"]: choice["step_s"] for choice in CHOICES}
    plans = [{"workload": 0, "servers": width, "step_s": steps.get(width, 1.0)} for width in widths or used]
    return JointPlan.from_data({"instance": "shared", "runs": told, "plans": plans})


@pytest.mark.parametrize("exact", [False, True])
def test_jobs_share_racks_and_uplinks(exact):
    # x crosses a and b, at 2 B/s; y crosses a, b, left, right and c, at 2 B/s: b would carry 4 of 3.
    apart = evaluate(made(), answer(("0", [(2, 1), (3, 1)]), ("20", [(2, 2), (3, 1), (4, 2)])), exact)
    assert apart.feasible
    assert float(apart.objective) == 30
    assert apart.details["crossing_jobs"] == 2
    assert apart.details["busiest_uplink"] == pytest.approx(2 / 3)
    inside = evaluate(made(), answer(("0", [(2, 2)]), ("0", [(4, 3)])), exact)
    assert inside.feasible
    assert (inside.objective, inside.details["crossing_jobs"], inside.details["busiest_uplink"]) == (20, 0, 0)


def test_a_job_may_be_slowed_down_to_fit():
    x, y = ("0", [(2, 1), (3, 1)]), [(2, 1), (4, 2)]
    assert [each.kind for each in evaluate(made(), answer(x, ("0", y)), True).violations] == [
        "an uplink carries what is reserved"
    ]
    slowed = evaluate(made(), answer(x, ("0", y, 1.5)), True)
    assert slowed.feasible
    assert slowed.objective == 20  # y takes 15 s in place of 10
    assert slowed.details["busiest_uplink"] == 1
    again = evaluate(made(), answer(x, ("0", y, 3.0)), True)
    assert again.objective == 30


GOOD = (("0", [(2, 2)]), ("0", [(4, 3)]))


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize(
    ("runs", "kind", "where"),
    [
        ((("0", [(2, 2)]), ("0", [(2, 1), (4, 2)])), "hosts of a rack suffice", "rack 'a', 0 s"),
        ((("0", [(2, 2)]), ("39/2", [(2, 1), (4, 2)])), "hosts of a rack suffice", "rack 'a', 19.5 s"),
        ((("0", [(2, 1), (3, 1)]), ("0", [(3, 1), (4, 2)], 1.4)), "an uplink carries what is reserved", "of 'b', 0 s"),
        ((("0", [(2, 2)]), ("0", [(4, 3)], 0.9)), "a job is no faster than its plan", "job 'y'"),
        ((("0", [(0, 2)]), GOOD[1]), "places are racks", "job 'x'"),
        ((("0", [(5, 2)]), GOOD[1]), "places are racks", "job 'x'"),
        ((("0", [(2, 2), (3, 0)]), GOOD[1]), "a job has hosts where it is", "job 'x', group 3"),
        ((("0", [(2, 1), (2, 1)]), GOOD[1]), "a rack is named once", "job 'x'"),
    ],
)  # fmt: skip
def test_every_way_to_break_a_fabric(runs, kind, where, exact):
    told = [(each.kind, each.where) for each in evaluate(made(), answer(*runs), exact).violations]
    assert [told for told in told if told[0] == kind and where in told[1]]


def test_the_moment_before_the_end_is_too_early_and_the_end_is_not():
    for start, feasible in (("19999999999/1000000000", False), ("20", True)):
        assert evaluate(made(), answer(GOOD[0], (start, [(2, 1), (4, 2)])), True).feasible is feasible


def test_a_job_has_a_host_for_each_server_and_none_without_a_fabric():
    good = answer(*GOOD)
    fewer = good.changed(runs=[good.runs[0].model_dump() | {"places": [(2, 1)]}, good.runs[1]])
    assert {each.kind for each in evaluate(made(), fewer).violations} == {"a job has a host for each of its servers"}
    assert {each.kind for each in evaluate(made(fabric=None), good).violations} == {"places are in a fabric"}
    plain = good.changed(runs=[run.model_dump() | {"places": []} for run in good.runs])
    assert evaluate(made(fabric=None), plain).feasible
    assert {each.kind for each in evaluate(made(), plain).violations} == {"a job has a host for each of its servers"}


def test_what_jobs_send_at_least_is_carried_by_all_uplinks_of_a_cut():
    """Five hosts are in two groups of either cut: 20 bytes a job over each uplink; seven send 40 over two or three."""
    choices = [{"servers": width, "step_s": 1.0, "crossing_bytes": sent} for width, sent in ((5, 2.0), (7, 4.0))]
    jobs = [DATA["jobs"][place] | {"arrival_s": arrival_s} for place, arrival_s in enumerate((4, 3))]
    wide = made(workloads=[{"name": "told", "choices": choices}], jobs=jobs)

    def bound_of(instance):
        return uplinks_bound(instance, least_times(instance, lambda _, choice: 1.0))

    exact = 3 + 2 * 2 * 20 / 11  # the cut of blocks; racks carry as much at 17
    assert exact * (1 - 3 * ROUNDING) <= bound_of(wide) < exact
    short = wide.changed(jobs=[job | {"iterations": 0.01} for job in DATA["jobs"]])
    assert bound_of(short) == pytest.approx(2 * 2 * 0.02 / 11)
    assert bound_of(wide.changed(objective="weighted_completion")) == 0
    assert bound_of(wide.changed(fabric=None)) == 0


def test_what_does_not_use_a_fabric_is_written_as_before():
    plain = made(fabric=None, workloads=[{"name": "told", "choices": [{"servers": 2, "step_s": 2.0}]}])
    assert "fabric" not in plain.to_json()
    assert "crossing_bytes" not in plain.to_json()
    assert '"places"' not in JointPlan.from_data(
        {"instance": "shared", "runs": [{"start": "0", "servers": 2}], "plans": []}
    ).to_json()  # fmt: skip
    assert JointInstance.from_data(made().model_dump(mode="json")).digest == made().digest


def test_cuts_and_what_jobs_cross_at_least():
    assert FABRIC.cuts == ((0, 1), (2, 3, 4))
    assert FABRIC.hosts == 7
    assert FABRIC.sizes == (4, 3, 2, 2, 3)
    assert [FABRIC.least_groups(FABRIC.cuts[1], width) for width in (1, 3, 4, 5, 6, 7)] == [0, 0, 2, 2, 3, 3]
    assert [FABRIC.least_groups(FABRIC.cuts[0], width) for width in (4, 5)] == [0, 2]
    assert FABRIC.widest(3) == math.inf
    assert FABRIC.widest(4) == 4  # a and c
    assert FABRIC.widest(5) == 4
    assert FABRIC.widest(6) == 3  # b, too
    assert [load.rate for load in FABRIC.loads((5,))] == [11, 17]
    assert FABRIC.loads((1, 3)) == ()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"fabric": {"groups": GROUPS[:2]}}, "'left') has neither hosts nor groups inside"),
        ({"fabric": {"groups": [GROUPS[2] | {"inside": None}]}}, "fabric has 2 hosts, and servers is 7"),
        ({"fabric": {"groups": [GROUPS[2]]}}, "does not nest: inside is 0"),
        ({"fabric": {"groups": [*GROUPS, GROUPS[4] | {"inside": 9, "name": "d"}]}}, "does not nest: inside is 9"),
        ({"fabric": {"groups": [*GROUPS[:4], GROUPS[4] | {"inside": 3}]}}, "'b') has 2 hosts and groups inside"),
        ({"fabric": {"groups": [*GROUPS[:4], GROUPS[4] | {"name": "a"}]}}, "groups[4] ('a') is named like groups[2]"),
        ({"fabric": {"groups": [*GROUPS[:4], GROUPS[4] | {"uplink_bytes_per_s": 0}]}}, "greater than 0"),
        ({"fabric": {"groups": []}}, "at least 1 item"),
        ({"workloads": [{"name": "told", "choices": [CHOICES[0] | {"crossing_bytes": -1}]}]}, "crossing_bytes"),
    ],
)
def test_bad_fabrics_are_a_line(changes, words):
    with pytest.raises(InstanceError) as error:
        made(**changes)
    one_line(error.value, words)


def test_rates_are_counted_in_fractions():
    """A third and two thirds of an uplink are all of it, and a hair more is too much."""
    jobs = [{"name": name, "workload": 0, "iterations": 1} for name in "xy"]
    groups = [{"name": str(place), "hosts": 2, "uplink_bytes_per_s": 3.0} for place in range(3)]
    choices = [{"servers": 2, "step_s": 1.0, "crossing_bytes": 1.0}]
    data = {"servers": 6, "jobs": jobs, "workloads": [{"name": "told", "choices": choices}]}
    instance = made(**data, fabric={"groups": groups})
    for step, feasible in ((0.5, True), (math.nextafter(0.5, 0), False)):
        runs = [{"start": "0", "servers": 2, "places": [(0, 1), (1, 1)], "step_s": own} for own in (1.0, step)]
        plans = [{"workload": 0, "servers": 2, "step_s": step}]
        told = made(**data | {"workloads": [{"name": "told", "choices": [choices[0] | {"step_s": step}]}]},
                    fabric={"groups": groups})  # fmt: skip
        found = evaluate(told, JointPlan.from_data({"instance": "shared", "runs": runs, "plans": plans}), True)
        assert found.feasible is feasible
        assert found.details["busiest_uplink"] == Fraction(1, 3) + Fraction(1) / Fraction(step) / 3
    assert instance.at(lambda *_: None, crossing=True).jobs[0].step_s == (None, 1.0)
