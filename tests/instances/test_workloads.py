"""Layers against published totals, traffic against a count message by message, times against measured operators."""

import json

import numpy as np
import pytest
from shared_data import shared_data
from volume import for_each

from ddlopt.instances.readers import convert
from ddlopt.instances.workloads import (
    A100,
    JOBS,
    SETTINGS,
    Accelerator,
    EmbeddingTable,
    Layer,
    Workload,
    topoopt_job,
    training_job,
)
from ddlopt.instances.workloads.networks import published as networks
from ddlopt.instances.workloads.networks.layers import convolution, dense
from ddlopt.models.errors import InstanceError, UnknownNameError

DLRM_16 = SETTINGS[16].jobs["dlrm"]


@for_each(
    ("workload", "parameters"),
    [
        (networks.resnet50(1), 25_557_032),  # torchvision, ResNet50_Weights
        (networks.vgg16(1), 138_357_544),  # torchvision, VGG16_Weights
        (networks.bert(12, 768, 128, 1), 109_482_240),  # bert-base-uncased without heads
        (networks.bert(24, 1024, 128, 1), 335_141_888),  # bert-large-uncased without heads
    ],
)
def test_parameter_totals_are_the_published_ones(workload, parameters):
    assert workload.parameters == workload.dense_parameters == parameters
    assert workload.gradient_bytes == 4 * parameters


@pytest.mark.parametrize(("workload", "gigamacs"), [(networks.resnet50(1), 4.09), (networks.vgg16(1), 15.47)])
def test_operations_are_the_published_ones(workload, gigamacs):
    multiplied = [
        layer for layer in workload.layers if layer.convolution or layer.name.startswith(("dense", "classes"))
    ]
    assert sum(layer.flops for layer in multiplied) / 2e9 == pytest.approx(gigamacs, abs=0.005)


@pytest.mark.parametrize("hidden", [64, 768, 1024])
def test_encoder_block_has_12h2_13h_parameters(hidden):
    assert sum(layer.parameters for layer in networks.encoder_block("b", hidden, 7)) == 12 * hidden**2 + 13 * hidden


def test_encoder_block_operations():
    # 12 h² products a position, and the positions among themselves twice (scores and values): 4 s² h operations.
    h, s = 96, 40
    products = [layer for layer in networks.encoder_block("b", h, s) if "norm" not in layer.name]
    assert sum(layer.flops for layer in products) == 24 * h * h * s + 4 * s * s * h


def test_convolution_counts_from_its_shape():
    layer = convolution("c", 8, (3, 5), 3, stride=2, padding=1)
    assert (layer.parameters, layer.outputs, layer.inputs) == (3 * 3 * 3 * 5 + 5, 5 * 4 * 4, 3 * 8 * 8)
    assert layer.flops == 2 * 9 * 3 * 5 * 16
    assert layer.activation_bytes == 4 * 80
    assert layer.moved_bytes(10) == 4 * (140 + 10 * (192 + 80))


def test_candle_towers_serve_both_drugs():
    shared = networks.candle([8, 8], [4, 1], 1)
    own = networks.candle([8, 8], [4, 1], 1, shared=False)
    towers = {942: 1, 5270: 2, 2048: 2}
    one = sum(width * 8 + 8 + 8 * 8 + 8 for width in towers)
    five = sum(uses * (width * 8 + 8 + 8 * 8 + 8) for width, uses in towers.items())
    joint = (5 * 8 + 2) * 4 + 4 + 4 + 1
    assert shared.parameters == one + joint
    assert own.parameters == five + joint
    assert shared.flops == own.flops


def test_ncf_tables_and_predictor():
    workload = networks.ncf(2, 100, 4, 8, 3, [16, 6], 1)
    assert sorted({table.dimension for table in workload.tables}) == [4, 8]
    assert sum(table.parameters for table in workload.tables) == 100 * 2 * (4 + 4 + 8 + 8)
    # MLP on 2 x 2 vectors of 8, predictor on 2 products of 4 and the MLP's 6.
    assert workload.dense_parameters == (32 * 16 + 16) + (16 * 6 + 6) + (8 + 6 + 1)


# FlexNet's released task graphs, down to the byte ---------------------------------------------------------------------


def gradient_bytes_of_graph(name):
    graph = convert(shared_data(f"topoopt/{name}.fbuf"), "flexnet")
    return sum(group.gradient_bytes for group in graph.allreduce_groups)


def test_dlrm_has_the_gradient_bytes_of_the_released_graphs():
    assert DLRM_16().dense_parameters == 76_585_985
    assert DLRM_16().gradient_bytes == gradient_bytes_of_graph("100dlrm_16")
    larger = networks.dlrm(32, 10**7, 256, 100, [1024] * 8, [2048] * 15 + [1], 256)
    assert larger.gradient_bytes == gradient_bytes_of_graph("100dlrm_32")


def test_released_vgg_is_a_larger_network():
    # 229 pixels and padding 2, as in examples/cpp/vgg16sim of hipersys-team/FlexFlow.
    larger = networks.vgg16(64, image=229, padding=2, pool=3)
    assert larger.gradient_bytes == 1_157_409_952 == gradient_bytes_of_graph("100vgg_16")
    assert networks.vgg16(64).gradient_bytes < larger.gradient_bytes / 2


def test_released_transformer_is_an_encoder_and_decoder_without_embeddings():
    # Per layer three attentions of 4h² and four dense layers of h²+h (examples/cpp/Transformersim); one output unit.
    h, layers = 768, 6
    parameters = layers * (3 * 4 * h * h + 4 * (h * h + h)) + h + 1
    assert 4 * parameters == gradient_bytes_of_graph("100transformer_16")


def test_released_candle_has_five_towers():
    # --dense-layers ends in 1 and the program appends one more dense layer of one unit: 2 parameters.
    own = networks.candle([4096] * 12, [4096] * 8 + [1, 1], 256, shared=False)
    assert own.gradient_bytes == gradient_bytes_of_graph("100candle_16")


# Jobs -----------------------------------------------------------------------------------------------------------------


def test_table_traffic_is_what_the_messages_add_up_to():
    tables = tuple(EmbeddingTable(f"t{k}", 10, dimension) for k, dimension in enumerate([3, 5, 7, 2]))
    job = training_job(Workload("w", (dense("d", 2, 2),), 4, tables), 3, 2, 1e9, gpus_per_server=2)
    expected = np.zeros((3, 3))
    for k, table in enumerate(tables):
        owner = k % 3
        for other in {0, 1, 2} - {owner}:
            samples = 4 * 2
            expected[owner, other] += samples * table.dimension * 4  # pooled vectors, forward
            expected[other, owner] += samples * table.dimension * 4  # their gradients, backward
    assert np.array_equal(job.traffic_bytes, expected)


def test_data_parallel_job_is_one_all_reduce_of_all():
    job = topoopt_job("resnet50", 16)
    (group,) = job.allreduce_groups
    assert group.members == tuple(range(16))
    assert group.gradient_bytes == 4 * 25_557_032
    assert not job.traffic_bytes.any()
    assert job.overlap == "none"


@pytest.mark.parametrize(("servers", "gigabits"), [(12, 25), (16, 100), (128, 100)])
def test_settings_of_the_paper(servers, gigabits):
    job = topoopt_job("dlrm", servers)
    assert (job.servers, job.degree) == (servers, 4)
    assert job.link_bandwidth_bytes_per_s == gigabits * 1e9 / 8
    assert job.name == f"dlrm-n{servers}-d4"


def test_uniform_tables_make_a_uniform_all_to_all():
    traffic = topoopt_job("dlrm", 16).traffic_bytes
    off_diagonal = traffic[~np.eye(16, dtype=bool)]
    # One table a server: 1024 samples x 256 numbers x 4 bytes, to the owner and from it.
    assert set(off_diagonal) == {2.0 * 1024 * 256 * 4}


def test_roofline_takes_the_slower_of_computing_and_moving():
    machine = Accelerator("m", flops_per_s=100.0, convolution_flops_per_s=10.0, memory_bytes_per_s=1000.0)
    busy = Layer("busy", parameters=0, flops=50, inputs=1, outputs=1)
    wide = Layer("wide", parameters=100, flops=1, inputs=100, outputs=50)
    assert machine.forward_s(busy, 4) == pytest.approx(2.0)
    assert machine.forward_s(Layer("conv", 0, 50, 1, 1, convolution=True), 4) == pytest.approx(20.0)
    assert machine.forward_s(wide, 4) == pytest.approx(4 * (100 + 4 * 150) / 1000)


def test_compute_time_is_three_passes_and_the_busiest_gpus_lookups():
    machine = Accelerator("m", 100.0, 100.0, 1000.0)
    layers = (Layer("busy", 1, 50, 0, 0),)
    tables = tuple(EmbeddingTable(f"t{k}", 10, 5, bag=4) for k in range(5))
    # 2 servers with 2 GPUs: server 0 holds tables 0, 2, 4, of which its first GPU holds 0 and 4.
    job = training_job(Workload("w", layers, 6, tables), 2, 1, 1e9, 2, accelerator=machine)
    one_table = 4 * (2 * 2 * 6) * (4 + 1) * 5 / 1000
    assert job.compute_s == pytest.approx(3 * (6 * 50 / 100 + 2 * one_table))


@for_each(
    ("file", "operator", "layer"),
    [
        ("candle16", "Dense_4096_4096", dense("d", 4096, 4096)),
        ("candle16", "Dense_5270_4096", dense("d", 5270, 4096)),
        ("candle16", "Dense_20482_4096", dense("d", 20482, 4096)),
        ("dlrm16", "Dense_5120_2048", dense("d", 5120, 2048)),
        ("dlrm16", "Dense_2048_2048", dense("d", 2048, 2048)),
        ("vgg16", "Dense_61952_4096", dense("d", 61952, 4096)),
        ("transformer16", "Dense_768_768", dense("d", 768, 768, rows=256)),
    ],
)
def test_assumed_a100_is_close_to_measured_products(file, operator, layer):
    data = json.loads(shared_data(f"topoopt/measures/{file}.json").read_text())
    parts = 16  # servers with four GPUs each, which share the batch
    (measured,) = (
        entry for entry in data["measurements"] if entry["name"] == operator and entry["pc_str"].endswith(f"-{parts}")
    )
    assumed = A100.forward_s(layer, data["batch_size"] // (4 * parts))
    assert assumed == pytest.approx(measured["fw_time"] / 1e3, rel=0.2)
    assert 2 * assumed == pytest.approx(measured["bw_time"] / 1e3, rel=0.2)


def test_assumed_a100_is_close_to_a_measured_lookup():
    data = json.loads(shared_data("topoopt/measures/dlrm16.json").read_text())
    (measured,) = (entry for entry in data["measurements"] if entry["name"] == "Embed_10000000x256")
    table = EmbeddingTable("t", 10**7, 256, bag=100)
    assert A100.lookup_s(table, data["batch_size"]) == pytest.approx(measured["fw_time"] / 1e3, rel=0.05)


@for_each("job", JOBS)
def test_more_servers_than_a_setting_keep_its_job(job):
    assert (
        topoopt_job(job, 20).allreduce_groups[0].gradient_bytes
        == topoopt_job(job, 16).allreduce_groups[0].gradient_bytes
    )
    assert topoopt_job(job, 4, degree=2).link_bandwidth_bytes_per_s == 25e9 / 8


def test_wrong_jobs():
    with pytest.raises(UnknownNameError, match="there is no job 'alexnet'; there are: dlrm, bert, candle"):
        topoopt_job("alexnet", 16)
    with pytest.raises(InstanceError, match="degree is 4, but 4 servers have at most 3 neighbours"):
        topoopt_job("dlrm", 4)
    with pytest.raises(InstanceError, match="servers is 0; a training job needs at least 2"):
        topoopt_job("dlrm", 0)
