"""Odd instances have what schemas allow: zeros, what is missing, empty and unequal lists, equal figures, words."""

import itertools
from collections import Counter, defaultdict

import pytest
from volume import for_each, slow, some

from ddlopt.instances.odd import SETTINGS, changed, odd_instance
from ddlopt.instances.schema_walk import field_name, walk
from ddlopt.models.catalogue import problem, problems

SEEDS = 200
"""At most as many are drawn of each setting until all has been met that the schema allows."""
QUICK = ("gossip/exchange",)
TURNS = {(path, SETTINGS[place % len(SETTINGS)]) for place, path in enumerate(problems())}
NOT_DRAWN = {
    "topology": {
        "allreduce_groups.*.members": "empty",
        "traffic_bytes": "empty",
        "traffic_bytes.*": "empty, unequal lists",
        "traffic_bytes.entries": "empty",
    },
    "topology/collective": {
        "step_s": "zero",
    },
    "scheduling": {
        "jobs.*.change_s": "zero",
        "jobs.*.deadline": "zero",
        "jobs.*.fair_s": "missing",
        "jobs.*.least_run_slots": "unequal figures",
        "jobs.*.timing.compute_s": "zero",
        "jobs.*.timing.forward_s_per_sample": "zero",
        "jobs.*.utility.curvature": "unequal figures",
        "network.links": "empty",
    },
    "compression/timeline": {
        "gradients.*.shape.*": "zero",
        "lanes": "empty",
        "menus.*": "empty",
        "menus.*.*.stages": "empty",
    },
    "compression/levels": {
        "gradients.*.curve.errors": "empty",
        "gradients.*.shape.*": "zero",
    },
    "compression/forward": {
        "forward_s": "empty",
        "parts": "empty",
        "parts.*": "twins, zero",
        "timeline.gradients.*.shape.*": "zero",
        "timeline.lanes": "empty",
        "timeline.menus.*": "empty",
        "timeline.menus.*.*.stages": "empty, unequal lists",
        "timeline.menus.*.*.stages.*.busy_s": "twins, unequal figures, zero",
        "timeline.menus.*.*.stages.*.launch_s": "twins, unequal figures, zero",
    },
    "codesign": {
        "error_budget": "missing",
        "group_sets.*.*": "empty",
        "layers": "empty",
        "layers.*.strategies": "empty",
        "layers.*.strategies.*.encoding_s": "zero",
        "layers.*.strategies.*.error": "zero",
        "layouts": "empty",
        "layouts.*.servers": "empty",
        "remedies": "empty",
    },
    "deployment/plan": {
        "bandwidth_bytes_per_s": "empty",
        "bandwidth_bytes_per_s.*": "empty, unequal lists",
        "bandwidth_bytes_per_s.entries": "empty",
        "shares": "empty",
        "shares.*": "twins, zero",
    },
    "deployment/microbatches": {
        "edges.*.maker": "twins",
        "edges.*.user": "twins",
    },
    "deployment/step": {
        "blocks.*.count": "twins, unequal figures",
        "blocks.*.ways": "unequal lists",
        "orders.*": "empty, unequal lists",
        "places.*": "twins, unequal figures",
        "sharding.*": "twins",
        "tiers.*.size": "twins",
    },
    "cluster/placement": {
        "leaves.*.inside": "empty, unequal lists",
    },
    "cluster/joint": {
        "fabric": "missing",
        "fabric.groups.*.inside": "twins, unequal figures",
        "workloads.*.choices.*.crossing_bytes": "zero",
    },
    "deployment/strategies": {
        "aliases.*.*": "twins",
        "costs": "empty",
        "costs.*": "empty",
        "edges": "empty",
        "edges.*": "unequal lists",
        "intervals": "empty",
        "intervals.*": "unequal lists",
        "table_of": "empty",
        "tables": "empty",
        "tables.*": "empty",
        "usages": "empty",
        "usages.*": "empty",
    },
    "aggregation/hot": {
        "jobs.*.frequencies": "empty",
        "jobs.*.registers": "empty, zero",
        "jobs.*.registers.*": "zero",
        "jobs.*.saved_messages": "empty",
    },
    "aggregation/registers": {
        "capacity": "empty, zero",
        "weights.*": "zero",
    },
    "aggregation/tree": {
        "jobs.*.loads": "empty, unequal lists",
        "memory": "empty",
        "seconds_per_message": "empty",
        "seconds_per_message.*": "zero",
    },
    "aggregation/slots": {
        "jobs.*.buckets": "empty",
        "jobs.*.delivery": "missing",
        "jobs.*.delivery.chances": "unequal lists",
        "jobs.*.delivery.chances.*": "zero",
        "jobs.*.delivery.delays_s": "unequal lists",
        "jobs.*.delivery.delays_s.*": "zero",
        "jobs.*.delivery.workers": "empty",
        "jobs.*.delivery.workers.*": "zero",
        "jobs.*.stay": "missing",
    },
    "aggregation/table": {
        "tables.*.samples": "unequal lists",
    },
    "gossip/weights": {
        "costs.*": "zero",
    },
    "gossip/matchings": {
        "edge_budgets.*": "zero",
        "matchings.*": "empty, unequal lists",
        "matchings.*.*": "twins",
        "times.*": "zero",
    },
    "gossip/period": {
        "rounds.matchings.*": "empty",
        "rounds.times_s": "empty",
        "rounds.times_s.*": "zero",
        "stragglers": "missing",
        "stragglers.factors.*": "zero",
    },
    "gossip/exchange": {
        "blocks.*": "unequal figures, zero",
        "points": "empty",
        "points.*": "empty, unequal lists",
        "rates.*": "zero",
    },
}
"""What a schema by itself allows and no odd instance has, by problem and field. Nearly all of it the validators refuse,
as matrices without rows; the rest (times of schedules, stages of lanes) is drawn too rarely."""


def allowed(whole):
    """What a schema allows by itself: (field, oddity)."""
    for path, schema in walk(whole, ("items",)):
        name, kind = field_name(path), schema.get("type")
        if kind == "null":
            yield name, "missing"
        if kind in ("number", "integer") and "const" not in schema:
            low = schema.get("minimum", schema.get("exclusiveMinimum", 0))
            if low <= 0 and schema.get("exclusiveMinimum", -1) < 0:
                yield name, "zero"
            if "*" in path:
                yield name, "twins"
                yield name, "unequal figures"
        if kind == "array" and "items" in schema:
            if not schema.get("minItems"):
                yield name, "empty"
            if "*" in path:
                yield name, "unequal lists"


def met(data, found, path=""):
    """Note what an instance has, by field: values in ``found``."""
    found[path].append(data)
    if isinstance(data, dict):
        for name, value in data.items():
            met(value, found, f"{path}.{name}".lstrip("."))
    elif isinstance(data, list):
        for value in data:
            met(value, found, f"{path}.*")


def oddities(instance):
    """(field, oddity) of one instance."""
    found = defaultdict(list)
    met(instance.model_dump(mode="json"), found)
    for path, values in found.items():
        figures = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
        lists = [value for value in values if isinstance(value, list)]
        tests = {
            "zero": 0 in figures,
            "missing": None in values,
            "empty": [] in lists,
            "twins": any(count > 1 for count in Counter(figures).values()),
            "unequal figures": len(set(figures)) > 1,
            "unequal lists": len({len(each) for each in lists}) > 1,
        }
        yield from ((path, name) for name, has in tests.items() if has)


def left_out(path):
    """What a schema allows, no odd instance of ``SEEDS`` has, and is not known to be left out."""
    schema = problem(path).instance.model_json_schema(mode="validation")
    known = {(name, oddity) for name, each in NOT_DRAWN.get(path, {}).items() for oddity in each.split(", ")}
    left = set(allowed(schema)) - known
    for seed, setting in itertools.product(range(SEEDS), (None, *SETTINGS)):
        if not left:
            break
        left.difference_update(oddities(odd_instance(path, setting, seed)))
    return left


@for_each("path", [path if path in QUICK else slow(path) for path in problems()])
def test_what_the_schema_allows_is_drawn(path):
    assert left_out(path) == set()


@for_each("path, setting", some(itertools.product(problems(), SETTINGS), TURNS))
def test_a_seed_makes_the_same_odd_instance(path, setting):
    plain = odd_instance(path, None, 1)
    assert isinstance(plain, problem(path).instance)
    first, again = changed(plain, setting, 1), odd_instance(path, setting, 1)
    assert first == again
    assert first.name.endswith(f"-{setting}-1")
    assert type(first) is type(plain)
    assert len({first.digest, *(odd_instance(path, setting, seed).digest for seed in (2, 3))}) == 3


def test_groups_are_unequal_and_servers_are_in_none():
    sizes, apart = set(), False
    for seed in range(20):
        instance = odd_instance("codesign", "unequal", seed)
        for groups in instance.group_sets:
            sizes.add(tuple(sorted({len(group) for group in groups})))
            apart |= sum(map(len, groups)) < instance.servers
    assert any(len(each) > 1 for each in sizes)
    assert apart


def test_words_are_exchanged_where_the_schema_has_others():
    plain = odd_instance("gossip/exchange", None, 0)
    assert {changed(plain, "ties", seed).norm for seed in range(8)} == {"squared", "plain"}


def test_what_no_instance_is_made_of_is_said():
    with pytest.raises(KeyError):
        changed(odd_instance("codesign", None, 0), "colours", 0)
