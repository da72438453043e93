"""Readers of other formats against figures taken independently from the same files, and against files gone wrong."""

import inspect
import json

import numpy as np
import pytest
from refusals import one_line
from shared_data import shared_data
from volume import for_each

from ddlopt.instances import convert, load, readers
from ddlopt.instances.readers import FORMATS, options_of
from ddlopt.models.errors import InstanceError, OptionError, UnknownNameError

# MIPLIB ---------------------------------------------------------------------------------------------------------------

MPS = """NAME          SMALL
ROWS
 N  z
 E  OUTa
 E  OUTb
 E  OUTc
 E  INa
 E  INb
 E  INc
 E  BALab
 E  BALca
COLUMNS
    x         z                    1   OUTa                 1
    x         OUTb                 1   OUTc                 1
    x         INa                  1   INb                  1
    x         INc                  1   BALab                1
    x         BALca                1
RHS
    rhs       OUTa                 2   OUTb                 2
    rhs       OUTc                 2   INa                  2
    rhs       INb                  2   INc                  2
    rhs       BALab                5   BALca              2.5
ENDATA
"""


@pytest.mark.parametrize(
    ("file", "matrix", "servers"), [("danoint.mps", "danoint_tm.json", 8), ("dano3mip.mps.gz", "dano3mip_tm.json", 24)]
)
def test_miplib_files_give_their_traffic(file, matrix, servers):
    instance = convert(shared_data(f"miplib/{file}"), "miplib")
    expected = np.array(json.loads(shared_data(f"miplib/{matrix}").read_text()))
    assert np.array_equal(instance.traffic_bytes, expected)
    assert (instance.servers, instance.degree, instance.parallel_links) == (servers, 2, False)
    assert instance.name == file.split(".")[0]


def test_bundled_danoint_is_the_miplib_file():
    read = convert(shared_data("miplib/danoint.mps"), "miplib")
    assert read.model_copy(update={"source": ""}) == load("danoint").model_copy(update={"source": ""})


def test_small_mps(tmp_path):
    path = tmp_path / "small.mps"
    path.write_text(MPS)
    instance = convert(path, "miplib")
    assert instance.traffic_bytes.tolist() == [[0, 5, 0], [0, 0, 0], [2.5, 0, 0]]
    assert (instance.name, instance.degree) == ("small", 2)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.mps", "", "is truncated, or no MPS file"),
        ("a.mps", "hello\nworld\n", "line 1 begins with 'hello', which is no section of MPS"),
        ("a.mps", MPS[:400], "is truncated, or no MPS file"),
        ("a.mps", MPS.replace("RHS\n", "RHS\n E  OUTa\n"), "line 19 gives no row a number"),  # HiGHS never returns
        ("a.mps", MPS.replace("2.5", "nan"), "line 22 gives no row a number"),
        ("a.mps", MPS.replace(" E  OUTb", " E  OUTa"), "line 5 is no row with a kind and a name of its own"),
        ("a.mps.gz", "this is not gzip", "it is no gzip file"),
        ("a.txt", MPS, r"an MPS file has a name that ends in \.mps or \.mps\.gz"),
        ("a.mps", MPS.replace("OUT", "FOO"), "is no logical topology design: it needs rows OUTa, INa"),
        ("a.mps", MPS.replace("INc", "INd"), "is no logical topology design"),
        ("a.mps", MPS.replace("INb                  2", "INb                  3"), r"degrees \[2.0, 3.0\]"),
        ("a.mps", MPS.replace("BALca", "BALcz"), "row BALcz names a node without rows OUT and IN; there are abc"),
        ("a.mps", MPS.replace("BALca", "BALcc"), r"traffic_bytes\[2\]\[2\] = 2.5 is on the diagonal"),
        ("a.mps", MPS.replace("2.5", " -5"), r"traffic_bytes\[2\]\[0\] = -5 is negative"),
        ("a.mps", MPS.replace(" 2   ", " 3   ").replace(" 2\n", " 3\n"), "degree is 3, but 3 servers"),
    ],
)
def test_mps_gone_wrong(tmp_path, name, text, message):
    path = tmp_path / name
    path.write_text(text)
    with one_line(InstanceError, match=message):
        convert(path, "miplib")


# FlexNet --------------------------------------------------------------------------------------------------------------

# Pairs, bytes, largest pair, largest row, {group size: bytes}, compute seconds; decoded by another program.
GRAPHS = {
    "100dlrm_16": (230, 1_073_741_824, 10_485_760, 96_468_992, {16: [285_351_940], 8: [20_992_000]}, 0.0175676),
    "100dlrm_32": (940, 4_395_630_592, 10_485_760, 197_132_288, {32: [335_699_972], 4: [4_198_400]}, 0.0261335),
    "100candle_16": (
        48,
        18_522_046_464,
        570_425_344,
        1_358_954_496,
        {16: [872_611_852], 8: [388_431_872, 638_812_160], 4: [537_001_984, 671_252_480, 738_377_728, 906_199_040]},
        0.113806,
    ),
    "100transformer_16": (0, 0, 0, 0, {16: [226_569_220]}, 0.0622018),
    "100vgg_16": (0, 0, 0, 0, {16: [1_157_409_952]}, 0.100477),
}


@for_each("name", GRAPHS)
def test_flexnet_graphs(name):
    graph = convert(shared_data(f"topoopt/{name}.fbuf"), "flexnet")
    pairs, total, largest, row, groups, compute_s = GRAPHS[name]
    traffic = graph.traffic_bytes
    assert np.count_nonzero(traffic) == pairs
    assert (traffic.sum(), traffic.max()) == (total, largest)
    assert traffic.sum(axis=1).max() == traffic.sum(axis=0).max() == row
    by_size = {}
    for group in graph.allreduce_groups:
        by_size.setdefault(len(group.members), []).append(group.gradient_bytes)
    assert {size: sorted(amounts) for size, amounts in by_size.items()} == groups
    assert graph.compute_s == pytest.approx(compute_s, rel=1e-5)
    assert graph.link_bandwidth_bytes_per_s == 12.5e9
    assert graph.servers == int(name.split("_")[1])


def test_flexnet_groups_are_cosets():
    graph = convert(shared_data("topoopt/100candle_16.fbuf"), "flexnet")
    for group in graph.allreduce_groups:
        step = 16 // len(group.members)
        assert all(b - a == step for a, b in zip(group.members, group.members[1:], strict=False))


def test_flexnet_degree_is_asked_for():
    path = shared_data("topoopt/100vgg_16.fbuf")
    assert convert(path, "flexnet").degree == 4
    assert convert(path, "flexnet", degree=8).degree == 8
    with pytest.raises(InstanceError, match="degree is 16, but 16 servers have at most 15 neighbours"):
        convert(path, "flexnet", degree=16)


def test_flexnet_truncated_anywhere(tmp_path):
    whole = shared_data("topoopt/100dlrm_16.fbuf").read_bytes()
    path = tmp_path / "cut.fbuf"
    for size in [0, 1, 3, 4, 7, 20, 100, 5_000, len(whole) // 2, len(whole) - 4_096, len(whole) - 64, len(whole) - 1]:
        path.write_bytes(whole[:size])
        with one_line(InstanceError, match=r"cut\.fbuf"):
            convert(path, "flexnet")


def test_flexnet_random_damage_is_refused_or_makes_a_valid_instance(tmp_path):
    whole = bytearray(shared_data("topoopt/100vgg_16.fbuf").read_bytes())
    rng = np.random.default_rng(0)
    path = tmp_path / "hit.fbuf"
    refused = 0
    for _ in range(40):
        damaged = bytearray(whole)
        for place in rng.integers(0, len(whole), 8):
            damaged[place] = rng.integers(256)
        path.write_bytes(damaged)
        try:
            convert(path, "flexnet")
        except InstanceError:
            refused += 1
    assert 0 < refused < 40


@pytest.mark.parametrize(
    "content",
    [b"", b"{}", b"hello, this is a text file and no task graph at all\n" * 20, bytes(400), b"\xff" * 400],
    ids=["empty", "json", "text", "zeros", "ones"],
)
def test_flexnet_foreign_files(tmp_path, content):
    path = tmp_path / "foreign.fbuf"
    path.write_bytes(content)
    with one_line(InstanceError, match=r"foreign\.fbuf: is no FlexNet task graph, or a truncated one: "):
        convert(path, "flexnet")


# Both -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("source_format", "suffix"), [("flexnet", ".fbuf"), ("miplib", ".mps")])
def test_missing_files_and_folders(tmp_path, source_format, suffix):
    with pytest.raises(InstanceError, match=r"none.*: cannot be read: .*no such file|No such file"):
        convert(tmp_path / f"none{suffix}", source_format)
    folder = tmp_path / f"folder{suffix}"
    folder.mkdir()
    with pytest.raises(InstanceError, match=r"folder.*: cannot be read: .*(directory|folder)"):
        convert(folder, source_format)


def test_unknown_format():
    with pytest.raises(UnknownNameError, match="there is no format 'xml'; there are: flexnet, microbatches, miplib"):
        convert("a.xml", "xml")
    with pytest.raises(UnknownNameError, match="there is no format 'xml'"):
        options_of("xml")


@pytest.mark.parametrize("source_format", FORMATS)
def test_every_format_has_a_reader_that_names_its_file(source_format, tmp_path):
    needed = [name for name, default in options_of(source_format).items() if default is inspect.Parameter.empty]
    with pytest.raises(InstanceError, match="missing"):
        convert(tmp_path / "missing", source_format, **dict.fromkeys(needed, "x"))


def test_options_of_a_format(monkeypatch):
    options = {"optics": "one_way", "parallel_links": True, "host_forwarding": True, "overlap": "none", "name": None}
    assert options_of("flexnet") == {"degree": 4} | options
    takes = ", ".join(["degree", *options])
    with pytest.raises(OptionError, match=rf"format 'flexnet' takes no option 'hours'; it takes: {takes}$"):
        convert("a.fbuf", "flexnet", hours=3)
    with pytest.raises(OptionError, match=r"format 'miplib' takes no option 'seed'; it takes none$"):
        convert("a.mps", "miplib", seed=3)

    def reader(path, virtual_cluster, start, hours=1.0):
        return path, virtual_cluster, start, hours

    monkeypatch.setattr(readers, "reader_of", lambda source_format: reader)
    with pytest.raises(OptionError, match=r"format 'trace' needs start$"):
        convert("a.csv", "trace", virtual_cluster="v")
    assert convert("a.csv", "trace", virtual_cluster="v", start="monday") == ("a.csv", "v", "monday", 1.0)
