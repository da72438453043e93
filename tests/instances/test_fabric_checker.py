"""The checker that stands alone agrees with ``evaluate`` on drawn answers in a fabric, good and bad ones."""

import importlib.util
import json
import random
from collections import Counter
from pathlib import Path

from ddlopt.models.cluster import JointInstance, JointPlan, evaluate

FILE = Path(__file__).resolve().parents[2] / "instances" / "checkers" / "cluster_joint.py"
GROUPS = [
    {"name": "left", "uplink_bytes_per_s": 6.0},
    *({"name": name, "inside": 0, "hosts": 2, "uplink_bytes_per_s": 4.0} for name in "ab"),
    {"name": "c", "hosts": 3, "uplink_bytes_per_s": 5.0},
]
STEPS = {2: 2.0, 3: 1.0, 4: 1.0}
INSTANCE = JointInstance.from_data(
    {
        "name": "shared",
        "servers": 7,
        "workloads": [
            {
                "name": "told",
                "choices": [{"servers": w, "step_s": s, "crossing_bytes": 1.5 * w} for w, s in STEPS.items()],
            }
        ],
        "jobs": [{"name": name, "workload": 0, "iterations": 10} for name in "xyz"],
        "fabric": {"groups": GROUPS},
    }
)


def drawn(draw):
    runs = []
    for _ in INSTANCE.jobs:
        width = draw.choice(list(STEPS))
        places = Counter(draw.choice((1, 1, 2, 3, 3) if draw.random() < 0.97 else (0, 4)) for _ in range(width))
        run = {
            "start": draw.choice(("0", "0", "20", "61/3", "40", "60")),
            "servers": width,
            "places": sorted(places.items()),
        }
        if draw.random() < 0.3:
            run["step_s"] = draw.choice((0.5, 3.0, 4.0))
        if draw.random() < 0.05:
            run["places"] = run["places"][1:]
        runs.append(run)
    used = sorted({run["servers"] for run in runs})
    plans = [{"workload": 0, "servers": width, "step_s": STEPS[width], "answer": None} for width in used]
    return {"family": "cluster", "problem": "joint", "instance": "shared", "runs": runs, "plans": plans}


def test_both_find_the_same():
    spec = importlib.util.spec_from_file_location("checker_of_fabrics", FILE)
    checker = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(checker)
    draw, kinds, data = random.Random(1), Counter(), json.loads(INSTANCE.to_json())
    for _ in range(600):
        answer = drawn(draw)
        ours = evaluate(INSTANCE, JointPlan.from_data(answer), True)
        objective, broken = checker.check(data, answer)
        assert objective == ours.objective, answer
        assert {rule for rule, _ in broken} == {each.kind for each in ours.violations}, answer
        kinds.update({rule for rule, _ in broken} or {"none"})
    assert len(kinds) >= 7, kinds
    assert min(kinds.values()) >= 5, kinds
