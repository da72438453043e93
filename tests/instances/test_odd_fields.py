"""Every field of every instance's schema is something else in some odd instance than where that began."""

from collections import defaultdict

from pydantic import BaseModel
from volume import for_each, slow

from ddlopt.instances.odd import SETTINGS, odd_instance
from ddlopt.instances.schema_walk import field_name, walk
from ddlopt.models.catalogue import problem, problems

SEEDS = 60
QUICK = ("aggregation/graph", "aggregation/registers", "compression/sfb", "gossip/circulant", "gossip/exchange")
"""Problems whose fields are soon all met."""
ANOTHER_NOTATION = "the sparse notation of a matrix, which is read into the same one"
SIZE = "a size that is drawn: matrices or edges have to fit it"
GOAL = "each needs its budget and refuses the other's; both are drawn"
NEVER = {
    ("topology", "servers"): SIZE,
    ("gossip/weights", "network.nodes"): SIZE,
    ("gossip/matchings", "network.nodes"): SIZE,
    ("gossip/period", "rounds.network.nodes"): SIZE,
    ("compression/timeline", "goal"): GOAL,
    ("compression/levels", "goal"): GOAL,
    ("compression/timeline", "lanes.*"): "names that stages refer to, with a menu of stages for each gradient",
    ("deployment/step", "sharding.*"): "levels 0 to 3, each once and ascending: some of them are left out",
    ("aggregation/hot", "jobs.*.registers"): "one figure for all of a list's, which it is read into",
    ("cluster/joint", "fabric.groups.*.inside"): "there is one order in which groups nest; blocks and none are drawn",
    ("topology", "traffic_bytes.size"): ANOTHER_NOTATION,
    ("deployment/plan", "bandwidth_bytes_per_s.size"): ANOTHER_NOTATION,
    ("compression/forward", "timeline.fusion"): "refused: its gradients are sent one by one",
    ("compression/forward", "timeline.goal"): "refused: it is the time",
    ("compression/forward", "timeline.time_budget_s"): "goes with the other goal only",
    ("compression/forward", "timeline.lanes.*"): "refused: there is one wire",
    ("compression/forward", "timeline.menus.*.*.stages.*.lane"): "stages go with lanes only",
    ("compression/forward", "timeline.menus.*.*.stages.*.busy_s"): "stages go with lanes only",
    ("compression/forward", "timeline.menus.*.*.stages.*.launch_s"): "stages go with lanes only",
    ("deployment/step", "embedding.count"): "there is one embedding",
    ("deployment/step", "head.count"): "there is one head",
}
"""Fields that no odd instance changes, each with the reason."""


def fields(whole):
    """Names of all fields that hold a figure, a truth value or a text; ``*`` for a place in a list or mapping."""
    for path, each in walk(whole):
        if "const" not in each and each.get("type") in ("number", "integer", "string", "boolean"):
            yield field_name(path)


def values(value, found, path=""):
    """Note what an instance has, by field, also what is left out of its JSON."""
    if isinstance(value, BaseModel):
        for name in type(value).model_fields:
            values(getattr(value, name), found, f"{path}.{name}".lstrip("."))
    elif isinstance(value, dict):
        for each in value.values():
            values(each, found, f"{path}.*")
    elif hasattr(value, "__len__") and not isinstance(value, str):
        for each in value:
            values(each, found, f"{path}.*")
    elif value is not None:
        found[path].append(value)


def values_of(instance):
    found = defaultdict(list)
    values(instance, found)
    return found


def not_met(path):
    """Fields that have the same values in all odd instances of a problem as where those began."""
    schema = problem(path).instance.model_json_schema(mode="validation")
    left = {name for name in fields(schema) if name not in ("family", "name") and (path, name) not in NEVER}
    for seed in range(SEEDS):
        plain = values_of(odd_instance(path, None, seed))
        for setting in SETTINGS:
            odd = values_of(odd_instance(path, setting, seed))
            left -= {name for name in left if set(odd[name]) - set(plain[name])}
            left -= {name for name in left if len(odd[name]) == len(plain[name]) and odd[name] != plain[name]}
            if not left:
                return left
    return left


@for_each("path", [path if path in QUICK else slow(path) for path in problems()])
def test_every_field_of_the_schema_is_changed(path):
    assert not_met(path) == set()


def test_what_is_never_changed_is_a_field():
    for path, name in NEVER:
        schema = problem(path).instance.model_json_schema(mode="validation")
        assert name in set(fields(schema)), (path, name)
