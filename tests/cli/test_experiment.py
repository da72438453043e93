"""`ddlopt experiment gossip`: tables, files, bad options."""

import csv
import sys

import pytest

from ddlopt.analysis.gossip_training import study as gossip_study

SHORT = ("--data", "wine", "--workers", 4, "--epochs", 2, "--batch", 8, "--seeds", "0-1", "--hidden", "5")


def test_from_end_to_end_with_tables_and_pictures(call, tmp_path):
    folder = tmp_path / "run"
    code, out, err = call(
        "experiment", "gossip", *SHORT, "--graph", "cycle", "--shards", "sorted", "--policies",
        "period:1; adaptive:0.1; matcha; choco:top,keep=0.2", "-o", folder,
    )  # fmt: skip
    assert (code, err) == (0, "")
    assert "wine, sorted shards, 4 workers, 4 edges, 13-5-3, 8 steps" in out
    assert "choco:top,keep=0.2" in out
    assert "against a fixed period with no more traffic" in out
    assert "against gossip in every step" in out
    assert {path.name for path in folder.iterdir()} == {
        "policies.csv", "comparisons.csv", "moments.csv", "traffic.png", "time.png",
    }  # fmt: skip
    rows = list(csv.DictReader((folder / "policies.csv").open()))
    assert rows[0]["policy"] == "period:1"
    assert float(rows[0]["traffic"]) == 1
    for picture in folder.glob("*.png"):
        assert picture.read_bytes().startswith(b"\x89PNG")


def test_the_graph_of_an_instance(call):
    code, out, _ = call(
        "experiment", "gossip", "--graph", "gossip/cvx-n8-averaging", "--epochs", 1, "--seeds", 3, "--policies",
        "dpsgd:fdla", "--no-control",
    )  # fmt: skip
    assert code == 0
    assert "8 workers, 13 edges" in out
    assert "3.250" in out  # models to each of 26 / 8 neighbours
    assert "±" not in out  # one seed has no interval
    assert "against" not in out


def test_the_same_command_prints_the_same(call):
    command = ("experiment", "gossip", *SHORT, "--policies", "gosgd;adaptive:0.05")
    assert call(*command) == call(*command)


def test_what_is_done_is_printed_on_an_interrupt(call, monkeypatch):
    trained = gossip_study.train

    def interrupted(training, policy, seed):
        if policy.name == "none":
            raise KeyboardInterrupt
        return trained(training, policy, seed)

    monkeypatch.setattr(gossip_study, "train", interrupted)
    code, out, err = call("experiment", "gossip", *SHORT, "--policies", "period:2;none")
    assert code == 130
    assert "period:2" in out
    assert err == "ddlopt: interrupted\n"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--workers", 1), "workers is 1; gossip needs at least 2"),
        (("--workers", 200), "200 workers have 7 samples of 'digits' each, fewer than the batch, 16"),
        (("--graph", "moebius"), "there is no graph 'moebius'; expected one of path, cycle"),
        (("--graph", "topology/tiny-n4-d2"), "'topology/tiny-n4-d2' has no graph of workers"),
        (("--graph", "torus", "--workers", 7), "nodes is 7"),
        (("--shards", "halves"), "shards is 'halves'; expected iid or sorted"),
        (("--policies", "period:0"), "period: every is 0; expected at least 1"),
        (("--policies", " ; "), "names nothing"),
        (("--seeds", "x"), "--seeds x: write whole numbers or ranges"),
        (("--seeds", "1,1"), "a seed is given twice"),
        (("--epochs", 0), "epochs is 0"),
        (("--batch", -1), "batch is -1"),
        (("--rate", "nan"), "rate is nan"),
        (("--hidden", "8,x"), "'x' is no width"),
        (("--hidden", "0"), "hidden is (0,)"),
        (("--ratio", -2), "ratio is -2"),
        (("--data", "cats"), "there is no data set 'cats'; expected one of digits"),
        (("-o", "/no/such/folder"), "does not exist"),
    ],
)
def test_bad_options_are_one_line(call, options, said):
    code, out, err = call("experiment", "gossip", *options)
    assert (code, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1


def test_a_file_is_no_folder(call, tmp_path):
    (tmp_path / "file").write_text("")
    code, _, err = call("experiment", "gossip", *SHORT, "-o", tmp_path / "file")
    assert code == 2
    assert "is a file; name a folder" in err


def test_without_scikit_learn_there_is_one_line(call, monkeypatch):
    from ddlopt.analysis.gossip_training.data import data_of

    data_of.cache_clear()
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    code, out, err = call("experiment", "gossip", "--data", "wine")
    assert (code, out) == (2, "")
    assert err.endswith("pip install 'ddlopt[train]'\n")
    assert err.count("\n") == 1
