"""Pictures of jobs with plans: the partition of a fabric's servers over time."""

from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from ddlopt.analysis.pictures.cluster import joint
from ddlopt.models.cluster import JointInstance, JointPlan, evaluate

GROUPS = [
    {"name": "block b", "uplink_bytes_per_s": 1},
    {"name": "block a", "uplink_bytes_per_s": 1},
    {"name": "r0", "inside": 1, "hosts": 2, "uplink_bytes_per_s": 1},
    {"name": "r1", "inside": 0, "hosts": 1, "uplink_bytes_per_s": 1},
    {"name": "r2", "inside": 1, "hosts": 2, "uplink_bytes_per_s": 1},
]


def instance(**more):
    data = {
        "name": "racks",
        "servers": 5,
        "workloads": [{"name": "w", "choices": [{"servers": 2, "step_s": 1.0}, {"servers": 3, "step_s": 1.0}]}],
        "jobs": [{"name": name, "workload": 0, "iterations": 10} for name in "abc"],
    }
    return JointInstance.from_data(data | more)


def answer(*runs):
    plans = [{"workload": 0, "servers": width, "step_s": 1.0} for width in sorted({run["servers"] for run in runs})]
    return JointPlan.from_data({"instance": "racks", "runs": list(runs), "plans": plans})


def drawn(given, plan):
    assert evaluate(given, plan).feasible
    axes = Figure().add_subplot()
    joint.draw(axes, given, plan)
    above = axes.child_axes[0]
    boxes = [
        (to_hex(box.get_facecolor()), box.get_x(), box.get_width(), box.get_y(), box.get_height())
        for box in above.patches
    ]
    return boxes, [text.get_text() for text in above.texts if text.get_text().startswith("r")], above


def test_a_job_is_drawn_in_the_racks_where_its_servers_are():
    plan = answer(
        {"start": "0", "servers": 3, "places": [[3, 1], [4, 2]]},
        {"start": "0", "servers": 2, "places": [[2, 2]], "step_s": 2.0},
        {"start": "10", "servers": 2, "places": [[4, 2]]},
    )
    boxes, names, above = drawn(instance(fabric={"groups": GROUPS}), plan)
    # Racks of a block are beside each other: r1 has row 0, r0 rows 1 and 2, r2 rows 3 and 4.
    where = [box[1:] for box in boxes]
    assert sorted(where) == [(0, 10, 0, 1), (0, 10, 3, 2), (0, 20, 1, 2), (10, 10, 3, 2)]
    colour = {box[1:]: box[0] for box in boxes}
    assert colour[0, 10, 0, 1] == colour[0, 10, 3, 2] != colour[0, 20, 1, 2]
    assert names == ["r1", "r0", "r2"]
    assert [line.get_ydata()[0] for line in above.lines] == [1, 3]


def test_without_a_fabric_a_job_has_the_lowest_servers_that_are_free():
    plan = answer({"start": "0", "servers": 3}, {"start": "0", "servers": 2}, {"start": "10", "servers": 2})
    boxes, names, above = drawn(instance(), plan)
    assert sorted(box[1:] for box in boxes) == [(0, 10, 0, 3), (0, 10, 3, 2), (10, 10, 0, 2)]
    assert not names
    assert not len(above.lines)
