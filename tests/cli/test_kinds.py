"""`generate … --help` tells what the options of a kind mean."""

import pytest

from ddlopt.instances.generators import kinds, options_of
from ddlopt.instances.generators.told import told
from ddlopt.models.catalogue import FAMILY_NAMES

EVERY = [(family, kind) for family in FAMILY_NAMES for kind in kinds(family)]


@pytest.mark.parametrize(("family", "kind"), EVERY)
def test_every_option_has_a_meaning(family, kind):
    options = told(family, kind)
    assert {option.name: option.default for option in options} == options_of(family, kind)
    assert [option.name for option in options if not option.meaning] == []


def test_help_of_a_kind(call):
    code, out, _ = call("generate", "deployment", "--kind", "random", "--help")
    assert code == 0
    assert "device_groups=2: Equal devices that are near each other" in out
    assert "node" not in out.partition("What --set takes")[2]


@pytest.mark.parametrize("words", [("--kind=tiny",), ("--kind", "tiny", "--seed", "3")])
def test_a_kind_however_it_is_written(call, words):
    assert "feature=capped: What it is about" in call("generate", "scheduling", *words, "--help")[1]


@pytest.mark.parametrize("words", [(), ("--kind", "no-such")])
def test_help_of_a_family_names_its_kinds(call, words):
    code, out, _ = call("generate", "gossip", *words, "--help")
    assert code == 0
    assert f"Kinds: {', '.join(kinds('gossip'))}." in " ".join(out.split())
