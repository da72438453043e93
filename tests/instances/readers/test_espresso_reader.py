"""The reader of Espresso's tensor lists: its planner's costs by hand, published figures, and files gone wrong."""

import itertools
import json

import numpy as np
import pytest
from refusals import one_line
from shared_data import shared_data

from ddlopt.instances import convert
from ddlopt.models.compression import CompressionPlan, evaluate
from ddlopt.models.compression.timeline.choices import choices_of
from ddlopt.models.errors import InstanceError, OptionError
from ddlopt.solvers.compression.timeline.espresso import COMPRESSED, Espresso
from ddlopt.solvers.contracts import Limits

TENSORS = [
    {"name": "b", "elements": 1000, "backward_gap_us": 0},
    {"name": "w", "elements": 2**24, "backward_gap_us": 2500},
]


def written(tmp_path, **changes):
    path = tmp_path / "net.json"
    path.write_text(json.dumps({"model": "Net", "tensors": TENSORS} | changes))
    return path


def microseconds(option):
    return pytest.approx([1e6 * x for x in (option.encode_s, option.launch_s + option.wire_s, option.decode_s)])


def test_costs_by_hand(tmp_path):
    instance = convert(written(tmp_path), "espresso", intra="pcie", two_level=True, cpu=True)
    assert [gradient.ready_s for gradient in instance.gradients] == [0.0, 0.0025]
    small, large = instance.menus
    assert [option.label for option in small] == ["none", "fp16", "dgc 1 % inter", "dgc 1 % all", "dgc 1 % inter cpu"]
    # 4000 bytes: 7000 travel within and between nodes, 3500 in fp16, 140 compressed; whole kilobytes are charged.
    assert microseconds(small[0]) == [0, 300 + 7 * 0.4 + 7 * 0.8, 0]
    assert microseconds(small[1]) == [4, 300 + 3 * 0.4 + 3 * 0.8, 0]
    assert microseconds(small[2]) == [356, 300 + 3 * 0.4, 390]
    assert microseconds(small[3]) == [1300, 600, 1400]
    assert microseconds(small[4]) == [0, 300 + 3 * 0.4, 1000 * 32 / 20000]
    # An eighth of 2^24 is twice 2^20; 2^26 bytes.
    assert microseconds(large[1]) == [8, 300 + 58720 * 1.2, 0]
    assert microseconds(large[2]) == [712, 300 + 58720 * 0.4 + 2348 * 0.8, 780]
    assert microseconds(large[3]) == [2600, 600 + 2348 * 1.2, 2800]


def test_quantisers_send_a_bit_and_nvlink_is_faster(tmp_path):
    instance = convert(written(tmp_path), "espresso", compressor="onebit", nodes=2, gpus_per_node=4)
    option = instance.menus[1][2]
    # A quarter of 2^24 is four times 2^20. Half of the bytes within, a 32nd between nodes.
    assert microseconds(option) == [4 * 450, 300 + 50331 * 0.02 + 2097 * 0.8, 4 * 620]
    assert (option.compressor, option.scope, option.ratio) == ("onebit", "inter", None)
    assert (instance.cluster.intra, instance.cluster.workers) == ("nvlink", 8)
    assert len(instance.menus[1]) == 3


def test_errors_are_parts_of_the_energy_of_all(tmp_path):
    instance = convert(written(tmp_path), "espresso", compressor="randomk", two_level=True, error_budget_part=0.25)
    once, twice = (instance.menus[1][k].error for k in (2, 3))
    assert once == twice == pytest.approx(0.99 * 2**24 / (2**24 + 1000), rel=1e-6)
    assert instance.error_budget == 0.25
    signs = convert(written(tmp_path), "espresso", compressor="efsignsgd", two_level=True).menus[1]
    whole = 2**24 / (2**24 + 1000)
    assert [signs[k].error for k in (2, 3)] == pytest.approx(
        [whole * (1 - 2 / np.pi), whole * (1 - 4 / np.pi**2)], rel=1e-12
    )


def test_the_planner_drops_whole_milliseconds(tmp_path):
    instance = convert(written(tmp_path), "espresso", wrapped_gaps=True)
    assert instance.gradients[1].ready_s == 0.0005


FIGURES = {
    ("vgg16", "randomk", "nvlink"): (86.48, 86.46, 86.46),
    ("vgg16", "randomk", "pcie"): (98.69, 98.69, 97.23),
    ("resnet101", "dgc", "nvlink"): (157.42, 154.34, 143.65),
    ("resnet101", "dgc", "pcie"): (257.54, 252.97, 189.01),
    ("ugatit", "dgc", "nvlink"): (555.79, 553.69, 552.48),
    ("ugatit", "dgc", "pcie"): (699.48, 693.19, 663.14),
    ("LSTM", "efsignsgd", "nvlink"): (89.50, 89.46, 89.46),
    ("LSTM", "efsignsgd", "pcie"): (96.96, 96.91, 96.35),
}
"""Milliseconds for 8 nodes of 8 GPUs and true gaps: what the authors' greedy gives in their own simulator; the optimum
over no compression, fp16 and the one compression that their sizes allow; the optimum over all options. NVLink without,
PCIe with compression on two levels."""


def least_time(instance, allowed, known):
    """The optimum by labels (encoding, end) that none dominates and that may still beat a known time."""
    options = choices_of(instance)
    occupied = np.where(allowed, options.occupation_s, np.inf)
    still = np.append(np.cumsum(occupied.min(axis=1)[::-1])[::-1], 0.0)
    alone = options.ready_s + still[:-1]
    later = np.append(np.maximum.accumulate(alone[::-1])[::-1], 0.0)
    encode, end = np.zeros(1), np.zeros(1)
    for i, row in enumerate(allowed):
        steps = [
            (encode + options.encode_s[i, k], options.ready_s[i], options.occupation_s[i, k])
            for k in np.flatnonzero(row)
        ]
        parts = [(e, np.maximum(end, ready + e) + busy) for e, ready, busy in steps]
        encode, end = (np.concatenate(each) for each in zip(*parts, strict=True))
        hopeful = np.maximum(end + still[i + 1], encode + later[i + 1]) <= known * (1 + 1e-9)
        order = np.lexsort((end[hopeful], encode[hopeful]))
        encode, end = encode[hopeful][order], end[hopeful][order]
        best = np.minimum.accumulate(np.concatenate(([np.inf], end[:-1])))
        encode, end = encode[end < best], end[end < best]
    return end.min()


@pytest.mark.parametrize("case", FIGURES, ids="-".join)
def test_figures_of_the_authors_planner(case):
    model, compressor, intra = case
    path = shared_data(f"espresso/{model}.json")
    instance = convert(path, "espresso", compressor=compressor, intra=intra, two_level=intra == "pcie")
    greedy = Espresso().solve(instance, Limits()).objective
    free = Espresso(thresholds=False).solve(instance, Limits()).objective
    everything = np.isfinite(choices_of(instance).wire_s)
    within = everything.copy()
    one, both = COMPRESSED[intra]
    for place, gradient in enumerate(instance.gradients):
        two = intra == "pcie" and gradient.elements > both
        within[place, 2] = gradient.elements > one and not two
        within[place, 3:] = two
    times = greedy, least_time(instance, within, greedy), least_time(instance, everything, min(greedy, free))
    assert [1e3 * time for time in times] == pytest.approx(FIGURES[case], abs=0.0051)


def test_published_sizes_lose_a_third_on_pcie():
    path = shared_data("espresso/resnet101.json")
    instance = convert(path, "espresso", intra="pcie", two_level=True)
    lost, free = (Espresso(thresholds).solve(instance, Limits()).objective for thresholds in (True, False))
    plain = evaluate(instance, CompressionPlan(instance=instance.name, choices=(0,) * instance.size)).objective
    assert lost > 1.3 * free
    assert plain > lost


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"compressor": "top_k"}, "compressor is 'top_k'; use one of: randomk, dgc, efsignsgd, onebit"),
        ({"ratio": 0}, "ratio is 0; it must be above 0 and at most 1"),
        ({"ratio": 1.5}, "ratio is 1.5; it must be above 0 and at most 1"),
        ({"ratio": "1 %"}, "ratio is '1 %'; it must be a finite number"),
        ({"intra": "pci"}, "intra is 'pci'; use one of: nvlink, pcie"),
        ({"nodes": 0}, "nodes is 0; it must be at least 1"),
        ({"error_budget_part": -1}, "error_budget_part is -1; it must be at least 0"),
    ],
)
def test_odd_options(tmp_path, options, line):
    with pytest.raises(OptionError, match=line):
        convert(written(tmp_path), "espresso", **options)


@pytest.mark.parametrize(
    ("tensors", "line"),
    [
        ("b", r"net.json: expected an object with a list of tensors"),
        ([], "net.json: tensors is empty"),
        ([3], r"tensors\[0\] is 3; expected an object"),
        ([{"name": "b", "elements": 4}], r"tensors\[0\].backward_gap_us is missing"),
        ([TENSORS[0], TENSORS[1] | {"elements": 0}], r"tensors\[1\].elements is 0; expected a whole number"),
        ([TENSORS[0] | {"elements": 1.5}], r"tensors\[0\].elements is 1.5; expected a whole number"),
        ([TENSORS[0], TENSORS[1] | {"backward_gap_us": -4}], r"tensors\[1\].backward_gap_us is -4; expected"),
        ([TENSORS[0] | {"backward_gap_us": "1"}], r"tensors\[0\].backward_gap_us is '1'; expected"),
        ([TENSORS[0] | {"name": None}], r"tensors\[0\].name is None; expected a text"),
    ],
)
def test_odd_files_are_one_clear_line(tmp_path, tensors, line):
    with one_line(InstanceError, match=line):
        convert(written(tmp_path, tensors=tensors), "espresso")


def test_no_json(tmp_path):
    path = tmp_path / "net.json"
    path.write_text("{")
    with pytest.raises(InstanceError, match=r"net\.json: cannot be read: Expecting"):
        convert(path, "espresso")
    with pytest.raises(InstanceError, match=r"missing\.json: cannot be read: No such file"):
        convert(tmp_path / "missing.json", "espresso")


# The file as its authors publish it -----------------------------------------------------------------------------------

PUBLISHED = """
# overheads, and a call that must never run
dgc_comp_overhead = [[0, 26, 390, 1400], [0, 22, 34, 100], [10]]
raise SystemExit("run")

Net_tensor_sizes = [('b', 1000),
    ('w', 16777216)]
Net_time_gap = [0,
    2500]
Net_embedding_tensors = [-1]

other_tensor_sizes = [("only", 7)]
other_time_gap = [0]
"""


def published(tmp_path, text=PUBLISHED):
    path = tmp_path / "model_tensor.py"
    path.write_text(text)
    return path


def test_the_published_file_is_read_and_not_run(tmp_path):
    theirs = convert(published(tmp_path), "espresso", model="Net", intra="pcie")
    ours = convert(written(tmp_path), "espresso", intra="pcie")
    assert theirs.model_copy(update={"source": ours.source}) == ours
    assert theirs.source.startswith("model_tensor.py: ")
    assert convert(published(tmp_path), "espresso", model="other").name == "other-dgc-n8x8-nvlink"
    alone = PUBLISHED[: PUBLISHED.index("other_tensor_sizes")]
    assert convert(published(tmp_path, alone), "espresso").name == "net-dgc-n8x8-nvlink"


@pytest.mark.parametrize(
    ("text", "model", "line"),
    [
        (PUBLISHED, None, "model_tensor.py has several models; choose one with model=…: Net, other"),
        (PUBLISHED, "vgg16", "model_tensor.py has no model 'vgg16'; it has: Net, other"),
        ("x = 1", None, "nothing in it is called …_tensor_sizes"),
        ("a_tensor_sizes = [('b', 1)", None, "cannot be read: it is no Python file at line 1"),
        ("a_tensor_sizes = 'b\0'", None, "cannot be read: it is no Python file"),
        ("a_tensor_sizes = " + "[" * 500, None, "cannot be read: it is no Python file"),
        (
            "a_tensor_sizes = [('b', 1)] * 3",
            None,
            "a_tensor_sizes in line 1 is calculated; expected a list of literals",
        ),
        ("a_tensor_sizes = [('b', 1)]", None, r"must be lists with an entry for each tensor \(got 1 and no list\)"),
        ("a_tensor_sizes = []\na_time_gap = []", None, "a_tensor_sizes is empty"),
        ("a_tensor_sizes = ['b']\na_time_gap = [0]", None, r"a_tensor_sizes\[0\] is 'b'; expected a pair"),
        ("a_tensor_sizes = [('b', 0)]\na_time_gap = [0]", None, r"tensors\[0\].elements is 0; expected a whole number"),
        ("a_tensor_sizes = [('b', 1)]\na_time_gap = [-1]", None, r"tensors\[0\].backward_gap_us is -1; expected"),
    ],
)
def test_odd_published_files_are_one_clear_line(tmp_path, text, model, line):
    with one_line((InstanceError, OptionError), match=line):
        convert(published(tmp_path, text), "espresso", **({"model": model} if model else {}))


def test_a_list_in_json_has_one_model(tmp_path):
    with pytest.raises(OptionError, match=r"net\.json has one, leave the option out"):
        convert(written(tmp_path), "espresso", model="Net")


def test_lanes_are_those_of_the_planner_s_simulator(tmp_path):
    """On a CPU a tensor begins when the wire is done with those before it, and the wire goes on without it."""
    file = tmp_path / "net.json"
    tensors = [{"name": f"t{k}", "elements": 4**k * 1000, "backward_gap_us": 700 * (k > 0)} for k in range(7)]
    file.write_text(json.dumps({"tensors": tensors}))
    wire = convert(file, "espresso", intra="pcie", cpu=True)
    lanes = convert(file, "espresso", intra="pcie", cpu=True, lanes=True)
    assert (wire.lanes, lanes.lanes) == ((), ("wire", "cpu"))
    for chosen in itertools.product(range(4), repeat=4):
        plan = CompressionPlan(instance=lanes.name, choices=(*chosen, 3, 2, 3))
        encoded = sent = on_cpu = 0.0
        for gradient, choice in zip(wire.gradients, plan.choices, strict=True):
            option = wire.menus[gradient.menu][choice]
            encoded += option.encode_s
            ready = gradient.ready_s + encoded
            if option.device == "cpu":
                on_cpu = max(sent, ready, on_cpu) + option.occupation_s
            else:
                sent = max(sent, ready) + option.occupation_s
        assert evaluate(lanes, plan).objective == pytest.approx(max(sent, on_cpu), rel=1e-12)


def test_lanes_without_cpus_are_refused(tmp_path):
    with one_line(OptionError, "lanes is true, but cpu is not"):
        convert(written(tmp_path), "espresso", lanes=True)
