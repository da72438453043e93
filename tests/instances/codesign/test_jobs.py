"""Training jobs with open strategies: costs counted by hand, sums that hold for all, and the jobs known already."""

import json
from collections import defaultdict

import numpy as np
import pytest
from refusals import one_line
from shared_data import shared_data
from volume import for_each, slow

from ddlopt.instances import generate
from ddlopt.instances.generators.codesign.jobs import network_job, usual_groups, usual_subsets
from ddlopt.instances.workloads import JOBS, PASSES, topoopt_job
from ddlopt.instances.workloads.accelerators import A100
from ddlopt.instances.workloads.codesign.graphs import graph_of
from ddlopt.instances.workloads.networks import published as networks
from ddlopt.instances.workloads.topoopt import SETTINGS, setting_of
from ddlopt.models.codesign import job_of
from ddlopt.models.codesign.tables import tables_of
from ddlopt.models.errors import DdloptError


def small(workload, **options):
    usual = {"servers": 4, "degree": 2, "gigabit_per_s": 8, "groups": (2, 4), "subsets": (2,), "gpus_per_server": 3}
    return network_job(workload, "a test", **usual | options)


def strategies_of(instance, layer):
    found = next(each for each in instance.layers if each.name == layer)
    return {each.name: each for each in found.strategies}


def reductions_of(instance, strategy):
    total = defaultdict(float)
    for each in strategy.reductions:
        total[instance.group_sets[each.groups]] += each.bytes
    return dict(total)


def layout_of(instance, index):
    layout = instance.layouts[index]
    return layout.batch_parts, layout.channel_parts, layout.servers


def choose(instance, *wanted):
    """Of each layer the first strategy that is among those wanted."""
    choices = []
    for layer in instance.layers:
        names = [each.name for each in layer.strategies]
        choices.append(next(names.index(name) for name in wanted if name in names))
    return tuple(choices)


ALL, PAIRS, COSETS, HALF = ((0, 1, 2, 3),), ((0, 1), (2, 3)), ((0, 2), (1, 3)), ((0, 2),)
DENSE = networks.dlrm(1, 1000, 20, 5, [40, 80], [60, 1], 10)
"""One table of 1000 rows of 20, 40 features to 80; 100 concatenated to 60, to 1. 10 samples a GPU."""


def test_a_dense_layer_counted_by_hand():
    """``top.0``: 100 to 60; 4 servers of 3 GPUs, so 30 samples a server, 120 in all, 60 in a block of two."""
    instance = small(DENSE)
    weights, flops = 100 * 60 + 60, 2 * 100 * 60
    top = strategies_of(instance, "top.0")
    assert list(top) == ["data", "data-2", "column-2", "column-4", "row-2", "row-4"]

    def counted(strategy):
        return strategy.flops, strategy.moved_bytes, strategy.memory_bytes

    assert counted(top["data"]) == (
        3 * 30 * flops,
        3 * 4 * (3 * weights + 30 * (100 + 60)),
        3 * weights * 8 + 4 * 30 * 60,
    )
    assert counted(top["data-2"]) == (
        3 * 60 * flops,
        3 * 4 * (3 * weights + 60 * (100 + 60)),
        3 * weights * 8 + 4 * 60 * 60,
    )
    assert counted(top["column-2"]) == (
        3 * 60 * flops / 2,
        3 * 4 * (3 * weights / 2 + 60 * (100 + 30)),
        3 * weights / 2 * 8 + 4 * 60 * (100 + 30),
    )
    assert counted(top["row-4"]) == (
        3 * 120 * flops / 4,
        3 * 4 * (3 * weights / 4 + 120 * (25 + 60)),
        3 * weights / 4 * 8 + 4 * 30 * 60,
    )
    assert reductions_of(instance, top["data"]) == {ALL: 4 * weights}
    assert reductions_of(instance, top["data-2"]) == {HALF: 4 * weights}
    assert reductions_of(instance, top["column-2"]) == {PAIRS: 4 * 60 * 100, COSETS: 2 * weights}
    assert reductions_of(instance, top["row-2"]) == {PAIRS: 4 * 60 * 60, COSETS: 2 * weights}
    assert reductions_of(instance, top["column-4"]) == {ALL: 4 * 120 * 100}
    cuts = {name: (layout_of(instance, each.reads), layout_of(instance, each.writes)) for name, each in top.items()}
    whole, servers = (4, 1, (0, 1, 2, 3)), (0, 1, 2, 3)
    assert cuts["data"] == (whole, whole)
    assert cuts["data-2"] == ((2, 1, (0, 2)), (2, 1, (0, 2)))
    assert cuts["column-2"] == (whole, (2, 2, servers))
    assert cuts["row-2"] == ((2, 2, servers), whole)
    assert cuts["row-4"] == ((1, 4, servers), whole)


def test_what_reads_the_data_set_gathers_nothing():
    instance = small(DENSE)
    bottom = strategies_of(instance, "bottom.0")
    assert all(each.reads is None for each in bottom.values())
    assert reductions_of(instance, bottom["column-2"]) == {COSETS: 4 * (40 * 80 + 80) / 2}
    assert reductions_of(instance, bottom["row-2"]) == {PAIRS: 4 * 60 * 80, COSETS: 4 * (40 * 80 + 80) / 2}


def test_a_table_counted_by_hand():
    """Five rows of 20 numbers for each of 120 samples, 600 lookups in 1000 rows."""
    instance = small(DENSE)
    table = strategies_of(instance, "table.0")
    assert list(table) == ["owner", "columns-2", "columns-4", "rows", "replicated"]
    own, lookups = 4 * 20 * 120, 4 * 20 * 120 * 6
    assert table["owner"].moved_bytes == 3 * lookups
    assert table["owner"].memory_bytes == 20 * 1000 * 4 + 4 * 20 * 600 + own
    assert table["columns-2"].moved_bytes == 3 * lookups / 2
    assert table["columns-2"].memory_bytes == table["owner"].memory_bytes / 2
    assert table["rows"].moved_bytes == 3 * 4 * 20 * 120 * (5 / 4 + 1)
    assert table["rows"].memory_bytes == table["owner"].memory_bytes / 4
    assert table["replicated"].memory_bytes == 3 * 20 * 1000 * 8 + own / 4
    assert table["replicated"].moved_bytes == 3 * lookups / 4 + 4 * 3 * 20 * 1000
    assert reductions_of(instance, table["rows"]) == {ALL: own}
    assert reductions_of(instance, table["replicated"]) == {ALL: 4 * 20 * 1000}
    assert not table["owner"].reductions
    assert not table["columns-2"].reductions
    assert layout_of(instance, table["columns-2"].writes) == (1, 2, (0, 1))
    assert layout_of(instance, table["rows"].writes) == (4, 1, (0, 1, 2, 3))


def test_few_lookups_have_small_gradients_and_many_touch_every_row():
    few, many = (small(networks.dlrm(1, 1000, 20, bag, [40, 80], [60, 1], 10)) for bag in (1, 500))
    rest = 20 * 1000 * 4 + 4 * 20 * 120
    assert strategies_of(few, "table.0")["owner"].memory_bytes == rest + 4 * 20 * 120
    assert strategies_of(many, "table.0")["owner"].memory_bytes == rest + 4 * 20 * 1000


def test_tables_go_round_and_columns_stay_in_the_block():
    instance = small(networks.dlrm(6, 1000, 20, 5, [40, 80], [60, 1], 10))
    homes = [layout_of(instance, strategies_of(instance, f"table.{k}")["owner"].writes) for k in range(6)]
    assert [servers for _, _, servers in homes] == [(0,), (1,), (2,), (3,), (0,), (1,)]
    pairs = [layout_of(instance, strategies_of(instance, f"table.{k}")["columns-2"].writes) for k in range(4)]
    assert [servers for _, _, servers in pairs] == [(0, 1), (0, 1), (2, 3), (2, 3)]


def test_identical_tables_may_be_on_any_server():
    instance = small(networks.dlrm(6, 1000, 20, 5, [40, 80], [60, 1], 10), owners="all")
    tables = [layer for layer in instance.layers if layer.name.startswith("table")]
    assert len(tables) == 6
    assert {layer.model_copy(update={"name": ""}) for layer in tables} == {tables[0].model_copy(update={"name": ""})}
    assert list(strategies_of(instance, "table.5")) == [
        *(f"whole-{server}" for server in range(4)),
        *("columns-4", "rows", "replicated"),
    ]
    assert layout_of(instance, strategies_of(instance, "table.5")["whole-3"].writes) == (1, 1, (3,))


@pytest.mark.parametrize("job", [job for job in JOBS if job != "dlrm-stress"])
@pytest.mark.parametrize("servers", [12, slow(16)])
def test_what_is_data_parallel_is_the_job_known_already(job, servers):
    instance = generate("codesign", "job", job=job, servers=servers)
    known = topoopt_job(job, servers)
    made = job_of(instance, choose(instance, "data", "owner"))
    assert [group.members for group in made.allreduce_groups] == [tuple(range(servers))]
    assert made.allreduce_groups[0].gradient_bytes == known.allreduce_groups[0].gradient_bytes
    np.testing.assert_allclose(made.traffic_bytes, known.traffic_bytes, rtol=1e-12)
    assert made.link_bandwidth_bytes_per_s == known.link_bandwidth_bytes_per_s
    # Not more: a piece is bound by the sum of what its layers are bound by, and a table's lookups by all GPUs.
    assert known.compute_s * 0.9 * (0.7 if job == "dlrm" else 1) < made.compute_s < known.compute_s * 1.001
    if job in ("bert", "candle") or (job, servers) == ("dlrm", 12):
        assert made.compute_s == pytest.approx(known.compute_s, rel=2e-3)


def test_tables_anywhere_include_the_round_robin_of_the_job_known_already():
    instance = generate("codesign", "job", job="dlrm", servers=12, owners="all")
    choices = [
        names.index(f"whole-{place % 12}" if "table" in layer.name else "data")
        for place, layer in enumerate(instance.layers)
        for names in [[each.name for each in layer.strategies]]
    ]
    np.testing.assert_allclose(job_of(instance, choices).traffic_bytes, topoopt_job("dlrm", 12).traffic_bytes)


@for_each("job", [job for job in JOBS if job != "dlrm-stress"])
def test_every_strategy_does_all_the_work_and_reduces_every_gradient(job):
    """Operations of all servers together, and a group's gradient bytes times groups, are those of the layer."""
    instance = generate("codesign", "job", job=job, servers=16)
    workload, samples = setting_of(16).jobs[job](), 16 * 4 * setting_of(16).jobs[job]().batch_per_gpu
    layers = {layer.name: layer for layer in workload.layers}
    for piece in graph_of(workload).pieces:
        own = [layers[each.name] for each in (*piece.split, *piece.after)]
        flops = PASSES * samples * sum(each.flops for each in own)
        gradient, widest = 4 * sum(each.parameters for each in own), strategies_of(instance, piece.name)
        for strategy in widest.values():
            servers = instance.layouts[strategy.writes].servers
            assert len(servers) * strategy.flops == pytest.approx(flops, rel=1e-12), (piece.name, strategy.name)
            kind, _, g = strategy.name.partition("-")
            sums = reductions_of(instance, strategy)
            if kind == "data":
                assert sum(sums.values()) == gradient
            elif kind == "row":
                after = 4 * sum(each.parameters for each in piece.after)
                cosets = tuple(tuple(range(rest, 16, int(g))) for rest in range(int(g)))
                assert sums.get(((*range(16),),), 0) - (4 * samples * piece.partials if g == "16" else 0) == after
                assert sums.get(cosets, 0) * int(g) == pytest.approx(gradient - after if g != "16" else 0)
    for layer in instance.layers:
        output = layers[layer.name].outputs if layer.name in layers else None
        if output is not None and job in ("dlrm", "candle"):
            assert layer.output_bytes == 4 * samples * output


def test_cutting_saves_parameters_and_keeps_operations():
    instance = generate("codesign", "job", job="candle", servers=128)
    assert not tables_of(instance).fits(choose(instance, "data"))
    assert tables_of(instance).fits(choose(instance, "column-8", "row-8", "data"))


def test_graphs_hold_every_layer_once_and_have_the_sizes_stated():
    sizes = {
        name: (len(graph.pieces), len(graph.tables))
        for name, made in SETTINGS[128].jobs.items()
        for graph in [graph_of(made())]
    }
    assert sizes == {
        "dlrm": (23, 64),
        "bert": (74, 0),
        "candle": (57, 0),
        "ncf": (9, 128),
        "resnet50": (70, 0),
        "vgg16": (16, 0),
        "dlrm-stress": (23, 128),
    }
    for name, made in SETTINGS[128].jobs.items():
        workload = made()
        graph = graph_of(workload)
        seen = {table.name for table in graph.tables}
        for piece in graph.pieces:
            assert set(piece.reads) <= seen, (name, piece.name)
            seen.add(piece.name)
        used = [layer for piece in graph.pieces for layer in (*piece.split, *piece.after)]
        assert sorted(layer.name for layer in used) == sorted(layer.name for layer in workload.layers)


def test_pieces_read_what_those_before_hand_on():
    """What a piece reads is as much as the others hand on, or what each of two does where it adds them up."""
    for name, made in SETTINGS[128].jobs.items():
        graph = graph_of(made())
        given = {table.name: table.dimension for table in graph.tables}
        for piece in graph.pieces:
            numbers = [given[read] for read in piece.reads]
            doses = 2 if (name, piece.name) == ("candle", "dense.0") else 0
            added = name in ("bert", "resnet50") and len(numbers) == 2
            if numbers:
                assert piece.inputs == (numbers[0] if added else sum(numbers) + doses), (name, piece.name)
                assert not added or numbers[0] == numbers[1]
            given[piece.name] = piece.outputs


def test_residual_connections_skip_what_they_should():
    wiring = {job: {piece.name: piece.reads for piece in graph_of(setting_of(12).jobs[job]()).pieces} for job in JOBS}
    bert, resnet = wiring["bert"], wiring["resnet50"]
    assert bert["block.0.norm.0"] == ("block.0.attention.output", "embedding")
    assert bert["block.1.norm.0"] == ("block.1.attention.output", "block.0.norm.1")
    assert bert["block.1.norm.1"] == ("block.1.feed.1", "block.1.norm.0")
    assert bert["block.1.attention.heads"] == bert["block.1.norm.0"][1:]
    assert resnet["stage.0.0.add"] == ("stage.0.0.2", "stage.0.0.shortcut")
    assert resnet["stage.0.0.shortcut"] == resnet["stage.0.0.0"] == ("stem",)
    assert resnet["stage.0.1.add"] == ("stage.0.1.2", "stage.0.0.add")
    assert wiring["vgg16"]["dense.0"] == ("conv.4.2",)
    assert wiring["candle"]["dense.0"] == ("cell.rnaseq.11", "drug.descriptors.11", "drug.fingerprints.11")
    assert wiring["ncf"]["predict"] == ("product", "mlp.6")
    assert wiring["dlrm"]["top.0"][:2] == ("bottom.6", "table.0")


def test_attention_is_cut_by_heads_and_norms_not_at_all():
    instance = generate("codesign", "job", job="bert", servers=16)
    heads = strategies_of(instance, "block.0.attention.heads")
    assert [name for name in heads if name.startswith("column")] == ["column-2", "column-4"]
    assert list(strategies_of(instance, "block.0.norm.0")) == ["data", "data-8", "data-4"]
    assert [name for name in strategies_of(instance, "embedding") if "column" in name] == []
    norm = 4 * 2 * 768
    assert reductions_of(instance, strategies_of(instance, "embedding")["row-4"])[((*range(16),),)] == norm


def test_a_residual_addition_costs_memory_alone():
    instance = generate("codesign", "job", job="resnet50", servers=12)
    added = strategies_of(instance, "stage.0.0.add")
    assert list(added) == ["data", "data-6", "data-3", "sliced-2", "sliced-4", "sliced-12"]
    assert {each.flops for each in added.values()} == {each.moved_bytes for each in added.values()} == {0}
    assert added["sliced-4"].memory_bytes == added["data"].memory_bytes == 4 * 128 * 256 * 56 * 56
    assert added["sliced-4"].reads == added["sliced-4"].writes


def test_what_large_clusters_are_cut_into():
    assert usual_groups(12) == (2, 4, 12)
    assert usual_groups(16) == (2, 4, 8, 16)
    assert usual_groups(432) == usual_groups(1024) == (2, 4, 8, 16)
    assert usual_groups(7) == (7,)
    assert usual_subsets(432) == (216, 108)
    assert usual_subsets(6) == (3,)
    assert usual_subsets(7) == ()


def test_a_thousand_servers_take_few_layouts():
    instance = generate("codesign", "job", job="ncf", servers=1024)
    assert len(instance.layouts) < 300
    assert len(instance.group_sets) < 20


def test_options_reach_the_device_and_the_fabric():
    instance = generate(
        "codesign", "job", job="vgg16", servers=4, degree=3, gigabit_per_s=40.0, gpus_per_server=2, batch_per_gpu=16,
        optics="duplex", overlap="full", parallel_links=False, host_forwarding=False, memory_gigabytes=8.0,
    )  # fmt: skip
    assert (instance.degree, instance.link_bandwidth_bytes_per_s) == (3, 5e9)
    assert (instance.optics, instance.overlap) == ("duplex", "full")
    assert not instance.parallel_links
    assert not instance.host_forwarding
    assert instance.device.memory_bytes == 16e9
    assert instance.device.flops_per_s == 2 * A100.flops_per_s
    assert strategies_of(instance, "dense.2")["data"].flops == 3 * 32 * 2 * 4096 * 1000
    assert generate("codesign", "job", job="vgg16", memory_gigabytes=None).device.memory_bytes is None
    adam = generate("codesign", "job", job="vgg16", state_bytes_per_parameter=16.0)
    plain = generate("codesign", "job", job="vgg16")
    more = [strategies_of(each, "dense.2")["data"].memory_bytes for each in (adam, plain)]
    assert more[0] - more[1] == 8 * (4096 * 1000 + 1000)
    assert plain == generate("codesign", "job", job="vgg16")
    assert plain.name == "vgg16-n12-d4"


# Measured times -------------------------------------------------------------------------------------------------------


def measurement(name, parts, forward=1.0, **changes):
    entry = {"name": name, "pc_str": f"2-1-{parts}", "fw_time": forward, "bw_time": 2 * forward, "mem_req": 1}
    return {key: value for key, value in (entry | changes).items() if value is not ...}


@pytest.fixture
def measured(tmp_path):
    """A file of measurements of ``top.0`` of DENSE and its table, for 4 servers of 3 GPUs; see GPUS_PER_PART."""

    def write(*entries, batch=160):
        path = tmp_path / "measures.json"
        path.write_text(json.dumps({"batch_size": batch, "ngpus": 4, "measurements": list(entries)}))
        return path

    return write


def from_measures(path, **options):
    from ddlopt.instances.readers.graphs.flexnet_measures import read_measures

    return small(DENSE, measures=read_measures(path), **options)


def test_measured_times_replace_the_roofline(measured):
    """Batch of 160: 10 samples a GPU are 4 parts of 4 GPUs, 20 are 2; a cut follows the whole layer's ratio."""
    path = measured(measurement("Dense_100_60", 4, 7.0), measurement("Dense_100_60", 2, 8.0))
    timed, plain = from_measures(path), small(DENSE)
    top, roofline = strategies_of(timed, "top.0"), strategies_of(plain, "top.0")
    assert top["data"].measured_s == pytest.approx(21e-3)
    assert top["data-2"].measured_s == pytest.approx(24e-3)
    place = [layer.name for layer in plain.layers].index("top.0")
    times = dict(zip(roofline, tables_of(plain).compute_s[place], strict=True))
    assert top["row-2"].measured_s == pytest.approx(21e-3 * times["row-2"] / times["data"], rel=1e-5)
    assert strategies_of(timed, "top.1") == strategies_of(plain, "top.1")
    assert "but for 1 layers measured in measures.json" in timed.source


def test_a_table_is_measured_for_all_samples_on_one_gpu(measured):
    timed = from_measures(measured(measurement("Embed_1000x20", 1, 6.0), batch=120))
    table = strategies_of(timed, "table.0")
    assert table["owner"].measured_s == pytest.approx(18e-3 / 3)
    assert table["columns-2"].measured_s == pytest.approx(9e-3 / 3)


def test_measurements_of_cut_channels_are_left_aside(measured):
    path = measured(
        *(measurement("Dense_100_60", 4, time, pc_str=cut) for cut, time in (("2-1-4", 7.0), ("2-2-4", 1.0)))
    )
    assert strategies_of(from_measures(path, subsets=()), "top.0")["data"].measured_s == pytest.approx(21e-3)


def test_a_layer_applied_twice_takes_twice_as_long(measured):
    """The tower of drug descriptors serves both drugs."""
    from ddlopt.instances.readers.graphs.flexnet_measures import read_measures

    path = measured(*(measurement(name, 4, 5.0) for name in ("Dense_5270_64", "Dense_942_64")))
    made = small(networks.candle([64], [64, 1], 10), subsets=(), measures=read_measures(path))
    assert strategies_of(made, "drug.descriptors.0")["data"].measured_s == pytest.approx(30e-3)
    assert strategies_of(made, "cell.rnaseq.0")["data"].measured_s == pytest.approx(15e-3)


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        (
            [measurement("Dense_100_60", 4)],
            "measures.json: 'Dense_100_60' is not measured with its batch in 2 parts, as 'data-2' of layer 'top.0' "
            "needs it; it is in: 4",
        ),
        ([measurement("Dense_9_9", 4)], "measures.json: no dense layer and no table of this job was measured"),
        ([measurement("Dense_100_60", 4, -1.0)], r"measurements\[0\], 'Dense_100_60': fw_time is -1.0; expected milli"),
        ([measurement("Dense_100_60", 4, bw_time="x")], "bw_time is 'x'; expected milliseconds, at least 0"),
        ([measurement("Dense_100_60", 4, bw_time=...)], r"measurements\[0\]: bw_time is missing"),
        ([measurement("Warp_1", 4)], "unknown operator 'Warp_1'; known types: Dense, Embed"),
        ([measurement("Dense_100_60", 4, pc_str="3-1-4")], "pc_str is '3-1-4'; expected a number of dimensions"),
        ([measurement("Dense_100_60", 4, pc_str="2-1-x")], "pc_str is '2-1-x'; expected a number of dimensions"),
        ([measurement("Dense_100_60", 0)], "pc_str is '2-1-0'; every dimension has at least 1 part"),
        ([measurement("Dense_100_60", 4)] * 2, r"measurements\[1\], 'Dense_100_60': 2-1-4 is there twice"),
        (["Dense"], r"measurements\[0\] is 'Dense'; expected an object of name"),
        ([], "measurements must be a list of at least one measurement"),
    ],
)
def test_bad_measurements_are_one_line(measured, entries, message):
    with one_line(DdloptError, match=message):
        from_measures(measured(*entries))


@pytest.mark.parametrize(
    ("text", "message"),
    [("{", "not valid JSON"), ("[]", "expected an object"), ('{"batch_size": 0}', "batch_size is 0; expected a whole")],
)
def test_other_files_are_refused_in_one_line(tmp_path, text, message):
    path = tmp_path / "other.json"
    path.write_text(text)
    with pytest.raises(DdloptError, match=message):
        from_measures(path)


@pytest.mark.parametrize(("job", "layers"), [("dlrm", 39), ("candle", 45)])
def test_released_measurements_are_near_the_roofline(job, layers):
    """Every layer of the 16-server jobs was measured; together they take what the roofline says, within a quarter."""
    path = shared_data(f"topoopt/measures/{job}16.json")
    timed = generate("codesign", "job", job=job, servers=16, measures=str(path))
    assert f"but for {layers} layers measured" in timed.source
    choices = choose(timed, "data", "owner")
    plain = generate("codesign", "job", job=job, servers=16)
    assert 0.9 < tables_of(timed).compute_of(choices) / tables_of(plain).compute_of(choices) < 1.35


@for_each("name", ["dlrm16", "dlrm32", "candle16", "vgg16", "transformer16"])
def test_a_part_of_the_released_measurements_is_four_gpus(name):
    """Memory of dense layers is that of weights, inputs and outputs, each twice, for a quarter of a part's samples."""
    data = json.loads(shared_data(f"topoopt/measures/{name}.json").read_text())
    sequence = 256 if name.startswith("transformer") else 1
    checked = 0
    for entry in data["measurements"]:
        kind, *sizes = entry["name"].split("_")
        if kind == "Dense" and int(sizes[0]) > 1:
            inputs, outputs = map(int, sizes)
            samples = data["batch_size"] / int(entry["pc_str"].split("-")[-1]) / 4
            bytes_kept = 8 * (inputs * outputs + outputs + samples * sequence * (inputs + outputs))
            assert entry["mem_req"] == bytes_kept, entry
            checked += 1
    assert checked >= 10
