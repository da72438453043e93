"""What may be added to an instance, or split in two, without changing what it asks."""

import copy
from collections.abc import Callable
from typing import Any

from ddlopt.instances.symmetries.unsaid import UnfitError

Data = dict[str, Any]
Extra = Callable[[Data], Data | None]
"""Changes an instance's data. Gives what answers have besides, at the end of which list: {} for nothing, None where
answers are other ones."""


def _some(items: Any, fits: Callable[[Any], bool] = lambda _: True) -> int:
    """The place of the first that fits."""
    for place, each in enumerate(items or ()):
        if fits(each):
            return place
    raise UnfitError


def _need(holds: bool) -> None:
    if not holds:
        raise UnfitError


def _halved(items: list[Any], field: str | int) -> None:
    """Two entries in place of one, with half of a figure each."""
    place = _some(items, lambda each: each[field] is not None and each[field] > 0)
    items[place][field] /= 2
    items.insert(place + 1, copy.deepcopy(items[place]))


def _counted(items: list[Any]) -> None:
    place = _some(items, lambda each: each["count"] > 1)
    items[place]["count"] -= 1
    items.insert(place, items[place] | {"count": 1})


def _topology_group(data: Data) -> None:
    _halved(data["allreduce_groups"], "gradient_bytes")


def _collective_switch(data: Data) -> Data:
    new = data["accelerators"] + data["switches"]
    data["switches"] += 1
    data["links"].append({"source": 0, "target": new, "bytes_per_s": 1.0})
    return {}


def _link_in_two(data: Data) -> None:
    _need(data["step_s"] == 0)
    new, link = data["accelerators"] + data["switches"], data["links"].pop(0)
    data["switches"] += 2
    for via in (new, new + 1):
        half = link["bytes_per_s"] / 2
        data["links"] += [{"source": link["source"], "target": via, "bytes_per_s": half}]
        data["links"] += [{"source": via, "target": link["target"], "bytes_per_s": half}]


def _servers_by_count(data: Data) -> Data:
    _counted(data["servers"])
    return {}


def _servers_without_anything(data: Data) -> Data:
    _need(data["network"] is None and data["objective"] != "finish_time_fairness")
    # A job that may run without any of the resources could be there.
    _need(all(any(job["demand"].values()) for job in data["jobs"]))
    data["servers"].append(data["servers"][0] | {"capacity": dict.fromkeys(data["servers"][0]["capacity"], 0)})
    return {}


def _resource_for_nobody(data: Data) -> Data:
    for group in data["servers"]:
        group["capacity"]["nobody's"] = 3
    return {}


def _job_that_cannot_run(data: Data) -> Data:
    _need(data["objective"] == "utility")
    data["servers"][0]["capacity"]["nobody's"] = 1
    last = data["jobs"][-1]
    data["jobs"].append(last | {"name": "cannot run", "demand": last["demand"] | {"nobody's": 2}})
    return {}


def _operator_apart(data: Data) -> Data:
    data["operators"].append({"name": "apart", "time_s": 1.0, "replicas": 2, "bandwidth_bytes_per_s": 1.0})
    return {}


def _twin_option(data: Data) -> Data:
    menu = (data.get("timeline") or data)["menus"][0]
    menu.append(menu[0] | {"label": "twin"})
    return {}


def _twin_strategy(data: Data) -> Data:
    strategies = data["layers"][0]["strategies"]
    strategies.append(strategies[0] | {"name": "twin"})
    return {}


def _layer_of_nothing(data: Data) -> Data:
    data["layers"].append({"name": "nothing", "strategies": [{"name": "nothing", "writes": 0}]})
    return {"strategies": "nothing"}


def _reduction_in_two(data: Data) -> None:
    for layer in data["layers"]:
        for strategy in layer["strategies"]:
            if strategy["reductions"]:
                _halved(strategy["reductions"], "bytes")
                return
    raise UnfitError


def _node_of_nothing(data: Data) -> Data:
    data["nodes"].append({"name": "nothing", "accelerator_s": 0.0, "processor_s": 0.0})
    return {"devices": 0} if data["subgraphs"] == 1 else {"devices": 0, "subgraphs": 0}


def _node_without_choice(data: Data) -> Data:
    data["costs"].append([0.0])
    data["usages"].append([0.0])
    data["intervals"].append([0, 0])
    return {"strategies": 0}


def _edge_in_two(data: Data) -> Data:
    _need(bool(data["edges"]))
    data["tables"].append([None if each is None else each / 2 for each in data["tables"][data["table_of"][0]]])
    data["edges"].append(data["edges"][0])
    data["table_of"][0] = len(data["tables"]) - 1
    data["table_of"].append(len(data["tables"]) - 1)
    return {}


def _strategies_backwards(data: Data) -> None:
    for field in ("costs", "usages", "tables"):  # a table backwards is one whose rows and columns are
        data[field] = [each[::-1] for each in data[field]]
    data["pins"] = [[node, len(data["costs"][node]) - 1 - choice] for node, choice in data["pins"]]


def _twin_layer_option(data: Data) -> Data:
    options = data["layers"][0]["menus"][0]["options"]
    options.append(options[0] | {"name": "twin"})
    return {}


def _blocks_by_count(data: Data) -> Data:
    _need(not data["places"])
    _counted(data["blocks"])
    return {}


def _blocks_by_places(data: Data) -> Data:
    _need(not data["places"] and len(data["blocks"]) > 1)
    order = list(range(len(data["blocks"])))[::-1]
    data["places"] = [order[place] for place, each in enumerate(data["blocks"]) for _ in range(each["count"])]
    data["blocks"].reverse()
    return {}


def _parameter_of_nobody(data: Data) -> Data:
    job = data["jobs"][0]
    for field, entry in {"frequencies": 0.0, "registers": 1, "saved_messages": 0.0, "labels": "nobody's"}.items():
        if isinstance(job[field], list) and (job[field] or field != "labels"):
            job[field].append(entry)
    return {}


def _switch_without_memory(data: Data) -> Data:
    data["switches"].append({"name": "no memory", "registers": 0})
    return {"placed": [[] for _ in data["jobs"]]}


def _batch_in_two(data: Data) -> Data:
    _need(bool(data["batches"]))
    weights = data["weights"] or [1.0] * len(data["batches"])
    data["weights"] = [weights[0] / 2, *weights[1:], weights[0] / 2]
    data["batches"].append(data["batches"][0])
    return {}


def _switch_without_load(data: Data) -> Data:
    data["parents"].append(_some(data["parents"], lambda each: each is None))
    data["seconds_per_message"].append(1.0)
    for job in data["jobs"]:
        job["loads"].append(0)
    for field, entry in {"memory": 1, "names": "no load"}.items():
        if data[field]:
            data[field].append(entry)
    return {}


def _host_of_nobody(data: Data) -> Data:
    new = len(data["nodes"])
    data["nodes"].append({"name": "nobody's", "forwards": False})
    data["links"].append({"ends": [0, new], "bandwidth_bytes_per_s": 1.0})
    return {}


def _link_of_nobody(data: Data) -> Data:
    data["links"].append({"name": "nobody's", "bandwidth_bytes_per_s": 1e-3})
    data["switches"].append({"name": "nobody's", "slots": 1, "payload_bytes": 1.0})
    return {}


def _bucket_in_two(data: Data) -> Data:
    job = data["jobs"][_some(data["jobs"], lambda each: bool(each["buckets"]))]
    _halved(job["buckets"], "size_bytes")
    return {}


def _column_of_no_change(data: Data) -> Data:
    for point in data["points"]:
        point.append(7.0)
    if data["blocks"]:
        data["blocks"].append(1)
    return {}


def _job_of_no_weight(data: Data) -> None:
    _need(data["objective"] != "makespan")
    # So long that it runs after the others, and would be in the way of them if it did not.
    last = data["jobs"][-1]
    data["jobs"].append(last | {"name": "no weight", "weight": 0.0})


def _more_servers_than_help(data: Data) -> Data:
    job = data["jobs"][0]
    _need(len(job["step_s"]) < data["servers"])
    job["step_s"].append(None)
    if job["least_s"]:
        job["least_s"].append(None)
    return {}


def _leaf_without_hosts(data: Data) -> Data:
    data["leaves"].append(data["leaves"][-1] | {"name": "empty", "hosts": 0, "host_names": []})
    return {}


EXTRAS: dict[str, dict[str, Callable[[Data], Data | None]]] = {
    "topology": {"group in two": _topology_group},
    "topology/collective": {"switch to nowhere": _collective_switch, "link in two": _link_in_two},
    "scheduling": {
        "servers by count": _servers_by_count,
        "servers without anything": _servers_without_anything,
        "resource for nobody": _resource_for_nobody,
        "job that cannot run": _job_that_cannot_run,
    },
    "compression/sfb": {"operator apart": _operator_apart},
    "compression/timeline": {"twin option": _twin_option},
    "compression/forward": {"twin option": _twin_option},
    "codesign": {
        "twin strategy": _twin_strategy,
        "layer of nothing": _layer_of_nothing,
        "reduction in two": _reduction_in_two,
    },
    "deployment/partition": {"node of nothing": _node_of_nothing},
    "deployment/strategies": {
        "node without choice": _node_without_choice,
        "edge in two": _edge_in_two,
        "strategies backwards": _strategies_backwards,
    },
    "deployment/pipeline": {"twin option": _twin_layer_option},
    "deployment/step": {"blocks by count": _blocks_by_count, "blocks by places": _blocks_by_places},
    "aggregation/hot": {
        "parameter of nobody": _parameter_of_nobody,
        "switch without memory": _switch_without_memory,
    },
    "aggregation/registers": {"batch in two": _batch_in_two},
    "aggregation/tree": {"switch without load": _switch_without_load},
    "aggregation/graph": {"host of nobody": _host_of_nobody},
    "aggregation/slots": {"link of nobody": _link_of_nobody, "bucket in two": _bucket_in_two},
    "gossip/exchange": {"column of no change": _column_of_no_change},
    "cluster/placement": {"leaf without hosts": _leaf_without_hosts},
    "cluster/jobs": {"job of no weight": _job_of_no_weight, "more servers than help": _more_servers_than_help},
    "cluster/joint": {"job of no weight": _job_of_no_weight},
}
"""By problem and name."""
