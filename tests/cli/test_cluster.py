"""Clusters on the command line."""

import json

from ddlopt.cli import run


def test_generate_takes_a_cluster(capsys):
    assert run(["generate", "topology", "--kind", "vgg16", "--cluster", "topoopt-prototype"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert (made["servers"], made["degree"]) == (12, 4)
    assert "cluster 'topoopt-prototype' (testbed/README.md" in made["source"]


def test_schema_of_clusters(capsys):
    assert run(["schema", "cluster-file"]) == 0
    assert "servers" in json.loads(capsys.readouterr().out)["properties"]


def test_a_cluster_that_is_none_is_a_line(capsys):
    assert run(["generate", "gossip", "--kind", "circulant", "--cluster", "aws-p4d"]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert (
        told.err == "ddlopt: 'circulant' has no network and no devices that a cluster could give; leave out cluster\n"
    )
