"""Pages of kept runs are what these say: predicted and simulated times, and gossip at equal traffic."""

import pytest
from doc_blocks import ROOT

from benchmarks.aggregation import packets as aggregation_packets
from benchmarks.gossip import equal_traffic
from benchmarks.topology import packets


def tables(text):
    return [line for line in text.splitlines() if line.startswith("|")]


@pytest.mark.parametrize(
    ("benchmark", "name", "least"),
    [
        (packets.BENCH, "topology/packets", 110),
        (aggregation_packets.BENCH, "aggregation/packets", 25),
        (equal_traffic.BENCH, "gossip/equal_traffic", 28),
    ],
)
def test_the_page_is_what_the_runs_say(tmp_path, capsys, benchmark, name, least):
    benchmark.run(["--only-kept", "--write", str(tmp_path)], name, "")
    capsys.readouterr()
    page = (ROOT / f"docs/results/{benchmark.page}.md").read_text(encoding="utf-8")
    assert tables((tmp_path / f"{benchmark.page}.md").read_text(encoding="utf-8")) == tables(page)
    assert len(tables(page)) >= least
