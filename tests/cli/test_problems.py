"""The command line on every problem: generated, solved, drawn, checked, compared, and refused where it is wrong."""

import csv
import io
import json

import pytest
from volume import for_each, slow

import ddlopt
from ddlopt.solvers.names import listed

CODESIGN = "codesign/tiny-tables-n4-d2"
PLAN = "deployment/tiny-g2-m2-s1"
SCHEDULE = "scheduling/tiny-capped"
TREE = "aggregation/tree-soar-n7-k2"
WEIGHTS = "gossip/cvx-n8-averaging"


def solved_drawn_and_checked(call, folder, instance, *words):
    """What solve says of an instance whose solution holds in exact arithmetic, and has a picture."""
    answer, picture = folder / "answer.json", folder / "picture.png"
    code, out, _ = call("solve", instance, "--out", answer, "--plot", picture, "--json", "--gap", "1e-3", *words)
    assert code == 0
    result = json.loads(out)
    assert result["checked"]
    worse, better = (1, -1) if result["sense"] == "minimize" else (-1, 1)
    assert worse * result["objective"] >= -better * result["bound"]
    code, out, _ = call("check", instance, answer, "--exact", "--json")
    assert code == 0
    assert json.loads(out)["objective"] == pytest.approx(result["objective"], rel=1e-9)
    assert picture.stat().st_size > 5000
    return result


@pytest.mark.parametrize(
    "name",
    [
        *("aggregation/hot-tiny-p9-s2", "aggregation/registers-tiny-n8-r3", "aggregation/tree-tiny-n6-k2"),
        *("aggregation/graph-tiny-congestion", "aggregation/slots-tiny-n3", "aggregation/table-tiny-n8"),
        *(WEIGHTS, "gossip/path-n8-process", slow("gossip/ring-n8-half"), "gossip/period-m8-step"),
        *("gossip/circulant-n9-d4-gap", "gossip/exchange-tiny-return-t12"),
    ],
)
def test_every_problem_is_solved_drawn_and_checked(call, tmp_path, name):
    result = solved_drawn_and_checked(call, tmp_path, name, "--time-limit", "20")
    assert result["status"] == "optimal" or name.startswith("gossip/")


GENERATED = {
    "codesign job": ("job=vgg16 servers=4 degree=2", "--method alternating"),
    "compression sfb-network": ("model=vgg16 batch=4", ""),
    "compression network": ("model=vgg16 nodes=2", ""),
    "compression levels-random": ("gradients=6", ""),
    "compression forward-random": ("gradients=4 parts=[1]", ""),
    "deployment network": ("model=vgg19 groups=4 devices_of=two-machines batch=16", "--method data-parallel"),
    "scheduling elastic": ("jobs=4 slots=5 gpus=4", "--method gadget"),
}


@pytest.mark.parametrize("kind", GENERATED)
def test_from_a_generator_to_a_checked_answer(call, tmp_path, kind):
    instance, (options, words) = tmp_path / "own.json", GENERATED[kind]
    family, name = kind.split()
    sets = [word for option in options.split() for word in ("--set", option)]
    assert call("generate", family, "--kind", name, *sets, "--seed", "3", "-o", instance) == (0, "", "")
    result = solved_drawn_and_checked(call, tmp_path, instance, *words.split())
    assert result["status"] == "optimal" or words


def compared(call, instance, methods):
    code, out, _ = call("compare", instance, "--methods", methods, "--csv", "--time-limit", "30")
    assert code == 0
    rows = {row["method"]: row for row in csv.DictReader(io.StringIO(out))}
    assert list(rows) == listed(methods)
    return rows


@for_each(
    ("name", "methods"),
    [
        ("aggregation/graph-tiny-congestion", "exact,graph-search,none,level,top,max,first-switch"),
        slow(CODESIGN, "joint,alternating,alternating:strategies=exact,topology=exact,data-parallel"),
        slow("compression/hipress-vgg19-n16-budget", "exact,espresso,secopa,lgreco,none"),
        ("compression/sfb-vgg16-b4-w16-25g", "min-cut,milp,poseidon,tag"),
        slow(PLAN, "exact,tag,plan-search,mcmc,data-parallel,heft,m-etf"),
        (SCHEDULE, "time-indexed,gadget,sjf-bco,optimus,fifo"),
    ],
)
def test_nobody_is_better_than_the_exact_method_nor_its_bound_worse(call, name, methods):
    rows = list(compared(call, name, methods).values())
    sign = -1 if ddlopt.load(name).sense == "maximize" else 1
    best = sign * float(rows[0]["objective"])
    assert rows[0]["status"] == "optimal"
    assert all(sign * float(row["objective"]) >= best - 1e-9 * abs(best) for row in rows)
    assert all(sign * float(row["bound"]) <= best + 1e-9 * abs(best) for row in rows)


@for_each(
    ("name", "values"),
    [
        (TREE, {"soar": 20, "milp": 20, "level": 21, "top": 27, "max": 24}),
        (WEIGHTS, {"fastest-weights": 0.6433, "fastest-weights:goal=chain": 0.681, "metropolis": 0.7743}),
        (WEIGHTS, {"max-degree": 0.7793, "best-constant": 0.7119}),
    ],
)
def test_values_that_were_published(call, name, values):
    rows = compared(call, name, ",".join(values))
    assert {method: round(float(row["objective"]), 4) for method, row in rows.items()} == values


@for_each(
    ("name", "words"),
    [
        (CODESIGN, ["layers"]),
        (PLAN, ["plan"]),
        (SCHEDULE, ["by default", "exact"]),
        (
            "compression/measured-digits-w8-1g",
            [
                " 8: 9 (none, fp16, top_k 10 %, top_k 1 %, …); 11 (none, fp16",
                "cluster.intra_bandwidth_bytes_per_s  125 MB/s (1 Gb/s)",
            ],
        ),
    ],
)
def test_show_tells_what_it_is(call, name, words):
    code, out, _ = call("show", name)
    assert code == 0
    assert all(word in out for word in words)
    assert "None" not in out


@pytest.mark.parametrize("solution", [False, True])
def test_the_schema_tells_the_problems_apart(call, solution):
    code, out, _ = call("schema", "compression", *(["--solution"] if solution else []))
    assert code == 0
    assert set(json.loads(out)["discriminator"]["mapping"]) == {"sfb", "timeline", "levels", "forward"}


def spoilt(folder, name, change):
    """A file with a bundled instance in which something was changed."""
    data = json.loads(ddlopt.load(name).to_json())
    change(data)
    file = folder / "bad.json"
    file.write_text(json.dumps(data))
    return file


def _cycle_of_layers(data):
    """An edge back along one between layers that both read something."""
    reads = [all(strategy["reads"] is not None for strategy in layer["strategies"]) for layer in data["layers"]]
    source, target = next(edge for edge in data["edges"] if reads[edge[0]] and reads[edge[1]])
    data["edges"].append([target, source])


def _tensor_back(data):
    """A tensor from a consumer to its producer."""
    tensor = next(each for each in data["tensors"] if each["consumers"])
    data["tensors"].append({"producer": tensor["consumers"][0], "consumers": [tensor["producer"]], "size_bytes": 1.0})


REGISTERS, GRAPH = "aggregation/registers-tiny-n8-r3", "aggregation/graph-tiny-congestion"
MENUS, LEVELS = "compression/measured-digits-w8-1g", "compression/levels-random-i20"
LINK = {"ends": [0, 99], "bandwidth_bytes_per_s": 1}
APART = {"nodes": 4, "edges": [[0, 1], [2, 3]]}


@for_each(
    ("name", "change", "line"),
    [
        (TREE, lambda d: d.update(problem="where"), "use one of: graph, hot, registers, slots, table, tree"),
        (TREE, lambda d: d.update(parents=[1, 2, 0, 1, 1, 2, 2]), "cycle"),
        (REGISTERS, lambda d: d.update(capacity=2), "8"),
        (GRAPH, lambda d: d["links"].append(LINK), "99"),
        ("aggregation/hot-tiny-p9-s2", lambda d: d["jobs"][0]["frequencies"].__setitem__(2, 1.5), "1.5"),
        (CODESIGN, _cycle_of_layers, "the graph of layers is cyclic: '"),
        (MENUS, lambda d: d["menus"][0][1].update(compressor="zip"), "compressor"),
        (MENUS, lambda d: d["menus"][1][-1].update(rank=11), "its rank is at most 10"),
        (MENUS, lambda d: d["gradients"][3].update(ready_s=0), "in the order in which"),
        ("compression/sfb-random-n60", _tensor_back, "tensors form a cycle"),
        (LEVELS, lambda d: d.update(error_budget=1e-9), "but no choice of levels has less than"),
        (LEVELS, lambda d: d["gradients"][0].update(shape=[64, 0]), "shape [64, 0]; every dimension is at least 1"),
        (LEVELS, lambda d: d.update(problem="ranks"), "problem is 'ranks'; use one of"),
        (
            PLAN,
            lambda d: d.update(problem="where"),
            "problem is 'where'; use one of: microbatches, partition, pipeline, plan, step, strategies",
        ),
        (PLAN, _tensor_back, "the operators form a cycle: "),
        (PLAN, lambda d: d["operators"][0]["times_s"].clear(), "times_s"),
        (PLAN, lambda d: d.update(shares=[1, 2, 0.25, 0.125]), "shares has 2 after 1"),
        (PLAN, lambda d: d["tensors"][0].update(consumers=[99]), "names operator 99, but there are 4 operators"),
        (WEIGHTS, lambda d: d.update(problem="where"), "use one of: circulant, exchange, matchings, period"),
        (WEIGHTS, lambda d: d.update(network=APART), "the graph is disconnected"),
        ("gossip/ring-n8-half", lambda d: d.update(budget=-0.5), "budget"),
        (SCHEDULE, lambda d: d["jobs"][1].update(max_workers=99), "jobs[1]"),
        ("scheduling/tiny-star", lambda d: d["network"]["links"].pop(), "network does not connect server"),
    ],
)
def test_a_bad_instance_is_one_line(refused, tmp_path, name, change, line):
    err = refused("solve", spoilt(tmp_path, name, change))
    assert line in err


def test_a_broken_line_of_a_click_log_is_named(refused, tmp_path):
    log = tmp_path / "clicks.ffm"
    log.write_text("1 0:1:1 1:7:1\n0 0:2:1 1\n")
    err = refused("convert", log, "--from", "libffm", "--set", "problem=registers")
    assert "line 2" in err


def test_a_matrix_that_is_not_symmetric_is_one_line(refused, tmp_path):
    answer, matrix = tmp_path / "matrix.json", [[0.0] * 8 for _ in range(8)]
    matrix[0][3] = 0.2
    instance = WEIGHTS.partition("/")[2]
    answer.write_text(json.dumps({"family": "gossip", "problem": "weights", "instance": instance, "matrix": matrix}))
    err = refused("check", WEIGHTS, answer)
    assert "matrix[0][3] is 0.2, but matrix[3][0] is 0" in err


def _late():
    first, *others = ddlopt.solve(SCHEDULE, "fifo").solution.model_dump(mode="json")["runs"]
    return {"runs": [first | {"slots": 99}, *others]}


GROUPS = [{"device_groups": [5], "mode": "all_reduce"}, {"device_groups": [0], "mode": "all_reduce"}]


@for_each(
    ("name", "change", "answer", "says"),
    [
        (
            TREE,
            {"memory": [1, 1, 0, 1, 1, 1, 1]},
            lambda: {"problem": "tree", "switches": [[2]]},
            "at switch 2 ('right')",
        ),
        (PLAN, {}, lambda: {"problem": "plan", "groups": GROUPS}, "device_group_exists at groups[0].device_groups: 5"),
        (SCHEDULE, {}, _late, "deadline_is_kept at runs[0]"),
    ],
)
def test_what_an_answer_violates_is_named(call, tmp_path, name, change, answer, says):
    instance, file = spoilt(tmp_path, name, lambda data: data.update(change)), tmp_path / "answer.json"
    family, stem = name.split("/")
    file.write_text(json.dumps({"family": family, "instance": stem} | answer()))
    code, out, err = call("check", instance, file)
    assert (code, err) == (1, "")
    assert says in out


@pytest.mark.parametrize("method", ["joint", "alternating", "joint-milp", "ideal-switch"])
def test_too_little_memory_is_infeasible_with_the_layer_and_the_bytes(call, tmp_path, method):
    def shrink(data):
        data["device"]["memory_bytes"] = 1.0
        for strategy in data["layers"][0]["strategies"]:
            strategy["memory_bytes"] = 3.0

    code, out, err = call("solve", spoilt(tmp_path, CODESIGN, shrink), "--method", method, "--json")
    assert "Traceback" not in err
    assert (code, json.loads(out)["status"]) == (1, "infeasible")
    layer = ddlopt.load(CODESIGN).layers[0].name
    assert f"layer '{layer}'" in json.loads(out)["message"]
    assert "2 bytes are missing" in json.loads(out)["message"]


def test_a_time_budget_that_nothing_keeps_is_infeasible(call, tmp_path):
    file = spoilt(tmp_path, "compression/levels-gpt2-qsgd-error", lambda data: data.update(time_budget_s=1e-3))
    code, out, err = call("solve", file, "--json")
    assert "Traceback" not in err
    assert (code, json.loads(out)["status"]) == (1, "infeasible")
    assert "0.001" in json.loads(out)["message"]
