"""What is read on screens of 80, 100 and 160 columns: nothing is wider, and no word is broken."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios

import pytest
from rich.console import Console

import ddlopt
from ddlopt.analysis import fitted, tables
from ddlopt.analysis.fitted import FittedTable
from ddlopt.cli.shared import display
from ddlopt.instances import index
from ddlopt.solvers.contracts import Result, Status, TracePoint

WIDTHS = (80, 100, 160)
NAMES = ("topology/all-to-all-n6-d2", "compression/resnet101-pcie-topk-budget", "scheduling/tiny-general")


def seen(drawn, width):
    """The lines that a table takes on a screen."""
    console = Console(width=width, color_system=None, highlight=False)
    with console.capture() as capture:
        console.print(drawn)
    return capture.get().splitlines()


def words(lines):
    return {word for line in lines for word in line.split()}


@pytest.fixture
def screen(monkeypatch, capsys):
    """The lines of a command on a screen of a width."""

    def read(width, *arguments):
        monkeypatch.setattr(fitted, "out_console", lambda: Console(width=width, color_system=None, highlight=False))
        monkeypatch.setattr(display, "out_console", fitted.out_console)
        from ddlopt.cli import run

        assert run(list(arguments)) == 0
        return capsys.readouterr().out.splitlines()

    return read


def results():
    """One of every kind of row, with long names, on instances of several families."""
    statuses = (
        (Status.OPTIMAL, None, 4.2),
        (Status.FEASIBLE, "circulant", 4.2),
        (Status.FEASIBLE, "rings from generators", 3.0),
        (Status.NO_SOLUTION, None, None),
    )
    methods = ("oversubscribed-fat-tree", "topology-finder:variant=released", "exact", "fifo")
    instances = [ddlopt.load(name) for name in index.read().instances if name in NAMES] or [ddlopt.load(NAMES[0])]
    made = [
        Result(
            each.name, each.digest, each.family, method, status, objective=4.2 if bound else None, bound=4.19958,
            scope=scope, scope_bound=bound, runtime_s=123.45, checked=True,
        )
        for each in instances
        for method, (status, scope, bound) in zip(methods, statuses, strict=True)
    ]  # fmt: skip
    return made, instances


@pytest.mark.parametrize("width", WIDTHS)
def test_results(width):
    made, instances = results()
    lines = seen(tables.table(made, instances), width)
    assert max(map(len, lines)) <= width
    for result in made:
        assert {result.instance, result.method} <= words(lines)
        assert set(tables.status_text(result).split()) <= words(lines)
    assert "…" not in "".join(lines)
    headers = {"method", "status", "objective", "gap"}
    assert headers <= words(lines)


def test_what_goes_first_on_a_narrow_screen():
    made, instances = results()
    wide, narrow = (seen(tables.table(made, instances), width) for width in (160, 80))
    assert {"checked", "time", "bound"} <= words(wide)
    assert not {"checked", "time"} & words(narrow)
    assert sum(made[0].instance in line for line in wide) == len(made) / len(instances)
    assert sum(made[0].instance in line for line in narrow) == 1, "once, above its rows"


def test_words_go_on_the_next_line_before_a_column_goes():
    table = FittedTable([{"what": "a line of several words", "n": "1"}], fold=("what",), drop=("n",), narrow=8)
    assert [line.split() for line in seen(table, 24)[3:-1]] == [["a", "line", "of", "1"], ["several", "words"]]
    assert "n" not in words(seen(table, 14))


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(
    "arguments", [["list"], ["list", "--open"], ["list", "topology", "--methods"], ["list", "aggregation"]]
)
def test_lists(screen, arguments, width):
    lines = screen(width, *arguments)
    assert max(map(len, lines)) <= width
    assert "…" not in "".join(lines)
    if arguments == ["list"]:
        shown = set(index.read().problems)
    elif "--methods" in arguments:
        shown = set(ddlopt.methods("topology"))
    else:
        known = index.read().instances.values()
        shown = {
            each.name
            for each in known
            if (
                each.family == "aggregation"
                if len(arguments) > 1 and arguments[1] == "aggregation"
                else not each.proven
            )
        }
    assert shown <= words(lines)


@pytest.mark.parametrize("width", WIDTHS)
def test_an_instance(screen, width):
    lines = screen(width, "show", "topology/danoint")
    assert max(map(len, lines)) <= width
    listed = index.read().instances["topology/danoint"]
    assert set(listed.methods) <= {word.rstrip(",") for word in words(lines)}
    assert set(listed.source.split()) <= words(lines)


def test_the_line_of_a_solve_fits():
    line = display.LiveLine(console=Console(width=80))
    line("fat-tree-k8-utilization", "graph-negotiation", TracePoint(1.0, 0.123456, 0.0123456))
    assert [len(line.lines(width)[-1]) <= width for width in (160, 80, 60)] == [True] * 3
    assert "bound" in line.lines(160)[-1]
    assert "bound" not in line.lines(70)[-1]
    assert line.lines(60)[-1].startswith("graph-negotiation  claims: best ")


def test_each_method_keeps_its_line_while_the_next_one_runs():
    line = display.LiveLine(console=Console(width=80))
    for method in range(20):
        line("square", f"method-{method}", TracePoint(0.0, None, None))
        line("square", f"method-{method}", TracePoint(0.1, 2.0, 1.0))
    lines = line.lines(80)
    assert [text.split()[1] for text in lines] == [f"method-{number}" for number in range(12, 20)]
    assert all("gap 50.00 %" in text for text in lines)


@pytest.mark.slow
def test_a_real_terminal_of_80_columns():
    """Through a pseudo-terminal: what Rich takes the width to be, and the live lines."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    methods = "topology-finder,hop-enumeration"
    command = [sys.executable, "-m", "ddlopt", "compare", NAMES[0], "--methods", methods, "--time-limit", "30"]
    environment = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "LINES")}
    with subprocess.Popen(command, stdout=theirs, stderr=theirs, env=environment | {"TERM": "xterm"}) as child:
        os.close(theirs)
        written = b""
        while True:
            try:
                piece = os.read(ours, 65536)
            except OSError:  # the other end is closed
                break
            if not piece:
                break
            written += piece
    os.close(ours)
    assert child.returncode == 0
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", written.decode())
    lines = [line.split("\r")[-1] for line in text.replace("\r\n", "\n").split("\n")]
    assert max(map(len, lines)) <= 80
    assert {"all-to-all-n6-d2", "topology-finder", "hop-enumeration", "optimal", "4.2"} <= words(lines)
    assert "topology-finder  best 12 s" in text
