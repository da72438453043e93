"""What is left to a default, said: limits that are never met, weights of 1, an entry for each in place of one."""

from collections.abc import Callable
from typing import Any

Data = dict[str, Any]
_PLENTY = 1e30
"""Of a limit that nothing meets."""


class UnfitError(Exception):
    """The instance has nothing to say, to split, or nowhere to add something."""


def _where(items: list[Data], field: str, missing: Any, say: Callable[[Data], Any]) -> None:
    """Say a field of all entries that leave it out."""
    places = [each for each in items if each[field] == missing]
    if not places:
        raise UnfitError
    for each in places:
        each[field] = say(each)


def _say(data: Data, field: str, missing: Any, value: Any) -> Data:
    _where([data], field, missing, lambda _: value)
    return {}


def _curves(data: Data) -> Data:
    curves = [each for each in data["gradients"] if each["curve"]["kind"] == "exponential"]
    if not curves:
        raise UnfitError
    for each in curves:
        levels = list(range(each["curve"]["lowest"], each["curve"]["highest"] + 1))
        errors = [each["curve"]["scale"] * 4.0**-level for level in levels]
        each["curve"] = {"kind": "points", "levels": levels, "errors": errors}
    return {}


def _speeds(data: Data) -> Data:
    types = sorted({each["type"] for each in data["servers"]})
    _where(data["jobs"], "speeds", {}, lambda _: dict.fromkeys(types, 1.0))
    return {}


def _deadlines(data: Data) -> Data:
    _where(data["jobs"], "deadline", None, lambda _: data["slots"])
    return {}


def _usage(data: Data) -> Data:
    return _say(data, "usage_limit", None, sum(max(each, default=0) for each in data["usages"]))


def _pins(data: Data) -> Data:
    pinned = {place for place, _ in data["pins"]}
    more = [[place, 0] for place, each in enumerate(data["costs"]) if len(each) == 1 and place not in pinned]
    if not more:
        raise UnfitError
    data["pins"] += more
    return {}


def _registers(data: Data) -> Data:
    for job in data["jobs"]:
        if isinstance(job["registers"], int):
            job["registers"] = [job["registers"]] * len(job["frequencies"])
    return {}


def _passing(data: Data) -> Data:
    _where(data["switches"], "workers", [], lambda _: [job["workers"] for job in data["jobs"]])
    return {}


def _capacity(data: Data) -> Data:
    if not isinstance(data["capacity"], int):
        raise UnfitError
    data["capacity"] = [data["capacity"]] * data["arrays"]
    return {}


def _aggregation_rates(data: Data) -> Data:
    _where(data.get("nodes") or data["switches"], "aggregation_bytes_per_s", None, lambda _: _PLENTY)
    return {}


def _stays(data: Data) -> Data:
    if any(each["stay"] for each in data["jobs"]):
        raise UnfitError
    for each in data["jobs"]:
        each["stay"] = {"begins_s": 5.0, "ends_s": 6.0}
    return {}


def _deliveries(data: Data) -> Data:
    _where(
        data["jobs"], "delivery", None, lambda job: {"workers": [2] * len(job["switches"]), "delays_s": [], "loss": 0.0}
    )
    return {}


def _buckets(data: Data) -> Data:
    _where(
        data["jobs"], "buckets", [], lambda job: [{"size_bytes": job["gradient_bytes"], "ready_s": job["compute_s"]}]
    )
    return {}


def _stragglers(data: Data) -> Data:
    return _say(data, "stragglers", None, {"factors": [1.0] * data["workers"]})


def _colours(data: Data) -> Data:
    if any(each["colour"] is not None for each in data["nodes"]):
        raise UnfitError
    for place, each in enumerate(data["nodes"]):
        each["colour"] = 100 + place
    return {}


def _least(data: Data) -> Data:
    _where(data["jobs"], "least_s", [], lambda job: job["step_s"])
    return {}


def _one_rack(data: Data) -> None:
    _say(data, "fabric", None, {"groups": [{"name": "all", "uplink_bytes_per_s": 1.0, "hosts": data["servers"]}]})


def _costs(data: Data) -> Data:
    if data["goal"] != "process":
        raise UnfitError
    return _say(data, "costs", [], [1.0] * len(data["network"]["edges"]))


def _edges(data: Data) -> int:
    return len(data["network"]["edges"])


UNSAID: dict[str, dict[str, Callable[[Data], Data | None]]] = {
    "scheduling": {"deadlines said": _deadlines, "speeds said": _speeds},
    "compression/sfb": {
        "memory said": lambda data: _say(data, "memory_budget_bytes", None, _PLENTY),
        "computation said": lambda data: _say(data, "compute_budget_s", None, _PLENTY),
    },
    "compression/timeline": {
        "error said": lambda data: _say(data, "error_budget", None, _PLENTY),
        "bucket said": lambda data: _say(data, "largest_bucket_bytes", None, _PLENTY),
    },
    "compression/levels": {"curves as points": _curves},
    "codesign": {
        "error said": lambda data: _say(data, "error_budget", None, _PLENTY),
        "memory said": lambda data: _say(data["device"], "memory_bytes", None, _PLENTY),
    },
    "deployment/partition": {"colours said": _colours},
    "deployment/strategies": {"usage said": _usage, "pins said": _pins},
    "deployment/microbatches": {
        "optimizer said": lambda data: _say(data, "optimizer_s", [], [0.0] * len(data["memory_bytes"]))
    },
    "aggregation/hot": {"registers said": _registers, "workers said": _passing},
    "aggregation/registers": {
        "capacity said": _capacity,
        "weights said": lambda data: _say(data, "weights", [], [1.0] * len(data["batches"])),
    },
    "aggregation/tree": {
        "memory said": lambda data: _say(data, "memory", None, [10**6] * len(data["parents"])),
        "budget said": lambda data: _say(data, "budget", None, len(data["parents"]) * len(data["jobs"])),
    },
    "aggregation/graph": {
        "aggregators said": lambda data: _say(data, "aggregators", None, len(data["nodes"]) * len(data["jobs"])),
        "connections said": lambda data: _say(data, "connections", None, 2 * len(data["nodes"])),
        "rates said": _aggregation_rates,
    },
    "aggregation/slots": {
        "rates said": _aggregation_rates,
        "stays said": _stays,
        "delivery said": _deliveries,
        "buckets said": _buckets,
    },
    "gossip/weights": {"costs said": _costs},
    "gossip/matchings": {
        "times said": lambda data: _say(data, "times", [], [1.0] * _edges(data)),
        "budgets said": lambda data: _say(data, "edge_budgets", [], [1.0] * _edges(data)),
    },
    "gossip/period": {"stragglers said": _stragglers},
    "gossip/exchange": {"blocks said": lambda data: _say(data, "blocks", [], [len(data["points"][0])])},
    "cluster/placement": {"prices said": lambda data: _say(data, "prices", [], [0] * (len(data["levels"]) - 1) + [1])},
    "cluster/jobs": {"least said": _least},
    "cluster/joint": {"one rack": _one_rack},
}
"""By problem and name."""
