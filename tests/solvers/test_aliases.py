"""Names of earlier versions: each resolves, to the same settings, wherever a method is named; records keep them."""

import datetime
from types import SimpleNamespace

import pandas as pd
import pytest

import ddlopt
from ddlopt.analysis.bench.report.data import read
from ddlopt.analysis.bench.store import Store
from ddlopt.analysis.bench.tasks import plan
from ddlopt.analysis.warm_up import kernel_modules
from ddlopt.cli.shared.completion import methods as completed
from ddlopt.frontier.aggregation.registers.enumeration import RegisterTree
from ddlopt.instances.library import records
from ddlopt.models.aggregation.graph.formulations.rate_levels import RateLevels
from ddlopt.models.aggregation.graph.formulations.rate_messages import RateMessages
from ddlopt.models.catalogue import FAMILY_NAMES
from ddlopt.models.errors import OptionError, UnknownNameError
from ddlopt.models.topology.formulations.rings_and_routes import RingsAndRoutes
from ddlopt.solvers import catalogue
from ddlopt.solvers.aggregation.registers.dealing import HeatRoundRobin
from ddlopt.solvers.aggregation.slots.priced import PricedSlots
from ddlopt.solvers.aggregation.slots.rules import SlotRule
from ddlopt.solvers.aliases import ALIASES, REPLACED, present
from ddlopt.solvers.codesign.topoopt.alternating import Alternating
from ddlopt.solvers.compression.timeline.espresso import Espresso
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.deployment.plan.data_parallel import DataParallel
from ddlopt.solvers.deployment.plan.sufficient_factors import WithFactors
from ddlopt.solvers.deployment.plan.tag import Tag
from ddlopt.solvers.gossip.exchange.rules import ExchangeRule
from ddlopt.solvers.gossip.matchings.exact import Matcha
from ddlopt.solvers.gossip.weights.exact import FastestWeights
from ddlopt.solvers.options import described
from ddlopt.solvers.scheduling.gadget import Gadget
from ddlopt.solvers.scheduling.online.gavel import Gavel
from ddlopt.solvers.topology.topoopt.topology_finder import TopologyFinder

TINY = "topology/tiny-n4-d2"

BEFORE = {
    "topology": {
        "all-rings": RingsAndRoutes(rings="all"),
        "topology-finder-released": TopologyFinder(variant="released"),
    },
    "scheduling": {
        "gadget-milp": Gadget(oracle="embedding"),
        "gadget-packing": Gadget(oracle="packing"),
        "gadget-rounding": Gadget(oracle="rounding"),
        "gavel-makespan": Gavel(goal="makespan"),
        "gavel-max-min": Gavel(goal="max_min"),
    },
    "compression": {"espresso-all-sizes": Espresso(thresholds=False)},
    "codesign": {
        "alternating-exact": Alternating(strategies="exact", topology="exact"),
        "alternating-exact-strategies": Alternating(strategies="exact"),
        "alternating-exact-topology": Alternating(topology="exact"),
    },
    "deployment": {
        "data-parallel-sfb": WithFactors(search="data-parallel"),
        "data-parallel-speed": DataParallel(split="speed"),
        "plan-search-sfb": WithFactors(search="plan-search", how="joint"),
        "tag-bound": Tag(prior="bound"),
        "tag-learned": Tag(prior="learned"),
        "tag-sfb": WithFactors(search="tag"),
    },
    "aggregation": {
        "colouring": RegisterTree(only_floor=True),
        "rate-levels-plain": RateLevels(flows=False),
        "rate-messages-plain": RateMessages(flows=False),
        "slot-shares": PricedSlots(solver="clarabel"),
        "snake": HeatRoundRobin(snake=True),
        **{
            f"{rule}-slots": SlotRule(rule=rule)
            for rule in ("equal", "gradient", "demand", "square-root", "max-min", "first-come")
        },
        "hot-parameters": catalogue.method("milp", "aggregation"),
        "shortest-paths": catalogue.method("none", "aggregation"),
        "table-milp": catalogue.method("milp", "aggregation"),
    },
    "gossip": {
        "fdla": FastestWeights("averaging"),
        "fmmc": FastestWeights("chain"),
        "fmmp": FastestWeights("process"),
        "fastest-pairwise": FastestWeights("pairwise"),
        "matcha-edges": Matcha(per_edge=True),
        **{
            rule: ExchangeRule(rule=rule)
            for rule in (
                *("threshold", "relative-threshold", "rate-threshold", "norm-threshold", "speed-rule", "sum-rule"),
                *("fixed-period", "random-times"),
            )
        },
    },
}
"""What the names stood for."""


@pytest.mark.parametrize("family", FAMILY_NAMES)
def test_an_alias_has_the_settings_it_had(family):
    assert BEFORE.get(family, {}).keys() == ALIASES.get(family, {}).keys()
    for old, before in BEFORE.get(family, {}).items():
        with pytest.warns(FutureWarning, match=f"'{old}' of {family} is written '{ALIASES[family][old]}' now"):
            method = catalogue.method(old, family)
        assert described(method) == before, old
        assert method.name == ALIASES[family][old]


def test_no_alias_is_listed():
    for family, names in [*ALIASES.items(), *REPLACED.items()]:
        assert not names.keys() & set(catalogue.method_names(family))
        for now in names.values():
            assert present(now, family) == now
            assert catalogue.method(now, family).name == now


def test_an_alias_takes_options():
    with pytest.warns(FutureWarning, match="'gadget:oracle=packing,slot_limit_s=3'"):
        method = catalogue.method("gadget-packing:slot_limit_s=3", "scheduling")
    assert described(method) == Gadget(oracle="packing", slot_limit_s=3.0)
    with pytest.warns(FutureWarning, match="'none:x=1'"), pytest.raises(OptionError, match="no option 'x=1'"):
        catalogue.method("shortest-paths:x=1", "aggregation")


@pytest.mark.filterwarnings("default::FutureWarning")
def test_commands_take_an_alias_and_say_so_in_one_line(call, tmp_path):
    told = (
        "ddlopt: the method 'topology-finder-released' of topology is written 'topology-finder:variant=released' now; "
        "the old name goes with the next version\n"
    )
    code, out, err = call("solve", TINY, "--method", "topology-finder-released", "--json")
    assert (code, err) == (0, told)
    assert '"method": "topology-finder:variant=released"' in out
    code, out, err = call("compare", TINY, "--methods", "topology-finder-released,expander", "--csv")
    assert (code, err) == (0, told)
    assert "topology-finder:variant=released" in out
    code, _, err = call("bench", TINY, "--methods", "topology-finder-released", "--store", tmp_path / "s", "--dry-run")
    assert (code, err) == (0, told)
    files = []
    for name in ("all-rings", "rings-and-routes:rings=all"):
        files.append(tmp_path / f"{len(files)}.lp")
        code, _, err = call("export", TINY, "--formulation", name, "--out", files[-1])
        assert code == 0
        assert err.count("\n") == (name == "all-rings")
    assert files[0].read_bytes() == files[1].read_bytes()


def test_sweeps_and_warm_up_take_an_alias(monkeypatch):
    monkeypatch.setitem(ALIASES["topology"], "thorough", "link-exchange:effort=2")
    with pytest.warns(FutureWarning, match="written 'link-exchange:effort=2' now"):
        (task,) = plan([TINY], ["thorough"], [0], Limits())
    assert task.method == "link-exchange:effort=2"
    with pytest.warns(FutureWarning, match="written 'link-exchange:effort=2' now"):
        modules = kernel_modules(["topology/thorough"])
    assert modules == kernel_modules(["link-exchange"])
    with pytest.raises(UnknownNameError, match="there is no method 'no-such'"):
        plan([TINY], ["no-such"], [0], Limits())


def test_completion_offers_no_alias():
    offered = set(completed(SimpleNamespace(params={}), ""))
    assert {"gadget", "exchange-rule"} <= offered
    assert not offered & {old for names in ALIASES.values() for old in names}


def test_a_record_keeps_the_name_under_which_it_was_made(tmp_path):
    run = records.Run(method="gadget-rounding", seed=1, date=datetime.date(2026, 1, 1))
    assert records.Run.model_validate_json(run.model_dump_json()) == run
    with pytest.warns(FutureWarning):
        assert catalogue.method(run.method, "scheduling").name == "gadget:oracle=rounding"


def test_a_report_names_runs_of_an_old_store_as_they_are_called_now(tmp_path):
    path = tmp_path / "store.sqlite"
    ddlopt.bench(TINY, path, "topology-finder:variant=released", time_limit=60, jobs=1)
    with Store(path) as store:
        store._connection.execute("UPDATE runs SET method = 'topology-finder-released'")
    with Store(path, write=False) as store:
        assert next(store.runs())["method"] == "topology-finder-released"
        assert set(read(store, 0.01).runs["label"].astype(str)) == {"topology-finder:variant=released"}
    assert isinstance(ddlopt.frame(path), pd.DataFrame)


def test_python_takes_an_alias():
    with pytest.warns(FutureWarning, match="'topology-finder:variant=released'"):
        result = ddlopt.solve(TINY, "topology-finder-released")
    assert result.method == "topology-finder:variant=released"
