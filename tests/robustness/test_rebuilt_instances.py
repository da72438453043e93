"""An instance with other fields is rebuilt in one way, which checks them: ``Instance.changed``."""

import re
from pathlib import Path

import pytest

import ddlopt
from ddlopt.instances import generate
from ddlopt.models.errors import InstanceError
from ddlopt.solvers.contracts import Status

ROOT = Path(__file__).parents[2]
REBUILT = re.compile(r"\w*Instance\(\s*\*\*")
UNCHECKED = {
    "models/aggregation/graph/bounds.py": "figures in rational numbers",
    "instances/generators/by_kind.py": "name and source only",
    "instances/clusters/options.py": "source only",
    "instances/readers/models/jobs.py": "name and source only",
    "instances/readers/models/profile.py": "source only",
}
"""Files that copy an instance as it is, and why they may."""


def test_no_instance_is_rebuilt_without_a_check():
    found = set()
    for folder in ("models", "certificates", "solvers", "analysis", "ddlopt", "instances", "frontier"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            if "instance.model_copy(" in text or REBUILT.search(text):
                found.add(str(path.relative_to(ROOT)))
    assert found == set(UNCHECKED)


def test_what_is_changed_is_checked_and_keeps_nothing_that_was_calculated():
    instance = generate("scheduling", "tiny", 0, feature="star")
    before = instance.capacity
    (group, *others) = instance.servers
    larger = group.model_copy(update={"capacity": {"gpu": 7.0}})
    assert instance.changed(servers=(larger, *others)).capacity.max() == 7.0
    assert before.max() < 7.0
    with pytest.raises(InstanceError, match=r"there is no network to share"):
        instance.changed(network=None, bandwidth="shared")
    with pytest.raises(TypeError, match="has no field 'colour'"):
        instance.changed(colour="red")


def test_what_counts_in_one_objective_only_goes_with_it():
    instance = generate("scheduling", "tiny", 0, feature="finish_time_fairness")
    jobs = tuple(job.model_copy(update={"fair_s": 2.0}) for job in instance.jobs)
    fair = instance.changed(jobs=jobs)
    assert {job.fair_s for job in fair.changed(slots=fair.slots + 1).jobs} == {2.0}
    assert {job.fair_s for job in fair.changed(objective="makespan").jobs} == {None}
    priced = generate("scheduling", "tiny", 0, feature="energy")
    assert priced.energy_price_per_j > 0
    assert priced.changed(objective="max_min").energy_price_per_j == 0


@pytest.mark.parametrize("method", ["gadget", "exact"])
def test_fairness_on_a_network_is_answered(method):
    """A slot by itself is asked for utility, in which fair times do not count."""
    star = generate("scheduling", "tiny", 1, feature="star", slots=6)
    jobs = tuple(job.model_copy(update={"fair_s": 2.0}) for job in star.jobs)
    instance = star.changed(jobs=jobs, objective="finish_time_fairness")
    result = ddlopt.solve(instance, method, time_limit=5)
    assert result.status in (Status.FEASIBLE, Status.OPTIMAL)
