"""What other solvers write is read back; what is wrong with a file is said in one line and nothing else happens."""

import random

import pytest
from export_cases import PROGRAMS, load, optimum
from refusals import one_line
from volume import some

import ddlopt
from ddlopt.models.errors import DdloptError, SolutionError
from ddlopt.solvers.backends.files import read_solution, write_model
from ddlopt.solvers.backends.solution_files import read_values
from ddlopt.solvers.catalogue import formulation_named

FILES = {
    "HiGHS": "Model status|Optimal||# Primal solution values|Feasible|Objective 3|# Columns 2|a 1|b 2.5|# Rows 1|c 3.5|"
    "|# Dual solution values|None||# Basis|HiGHS_basis_file v2|None|",
    "HiGHS table": "Columns|    Index Status        Lower        Upper       Primal         Dual  Name|"
    "        0     BS            0            2            1            0  a|"
    "        1     BS            0          inf          2.5            0  b|Rows|"
    "    Index Status        Lower        Upper       Primal         Dual  Name|"
    "        0     BS            0          inf          3.5            0  c||Model status: Optimal||"
    "Objective value: 3|",
    "SCIP": "solution status: optimal solution found|objective value:                 3|"
    "a                      1 \t(obj:1)|b                    2.5 \t(obj:0.8)|",
    "Gurobi": "# Solution for model x|# Objective value = 3|a 1|b 2.5|",
    "CBC": "Optimal - objective value 3.00000000|      0 a   1   0|**    1 b   2.5   -0.5|",
    "GLPK": "c Problem:    x|c Rows:       1|c Columns:    2|c Objective:  o = 3 (MINimum)|s mip 1 2 o 3|i 1 3.5|"
    "j 1 1|j 2 2.5|e o f|",
    "GLPK linear": "c Problem:    x|c Rows:       1|c Objective:  o = 3 (MINimum)|s bas 1 2 f f 3|i 1 b 1 0|"
    "j 1 b 1 0|j 2 l 2.5 2|e o f|",
    "GLPK table": "Problem:    x|Rows:       1|Columns:    2 (1 integer, 0 binary)|Non-zeros:  2|"
    "Status:     INTEGER OPTIMAL|Objective:  o = 3 (MINimum)||"
    "   No.   Row name        Activity     Lower bound   Upper bound|------ ------------|     1 c        3.5        3.5"
    "||   No. Column name       Activity     Lower bound   Upper bound|------ ------------|"
    "     1 a    *     1     0     2 |     2 b|                 2.5      0||"
    "Karush-Kuhn-Tucker optimality conditions:||End of output|",
}
FILES = {dialect: text.replace("|", "\n") for dialect, text in FILES.items()}
"""The same solution by everybody."""
GOOD = FILES["Gurobi"]


def read(tmp_path, text):
    file = tmp_path / "answer.sol"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_values(file, lambda _: ["a", "b"])


def attempt(work):
    """What it gives, or the error of ours in its place."""
    try:
        return work()
    except DdloptError as problem:
        return problem


def refused(found):
    if not isinstance(found, DdloptError):
        return False
    assert "\n" not in str(found)
    return True


@pytest.mark.parametrize("dialect", FILES)
def test_dialects(tmp_path, dialect):
    found = read(tmp_path, FILES[dialect])
    assert found.solver == dialect.split()[0]
    assert found.values == {"a": 1.0, "b": 2.5}
    assert found.objective == 3


@pytest.mark.parametrize(("head", "kind"), [("c Problem:    x", "mps"), ("c Problem:", "lp")])
def test_glpk_numbers_columns_as_the_file_did_that_it_read(tmp_path, head, kind):
    """One in MPS has a name; the two formats may have the columns in another order."""
    (tmp_path / "answer.sol").write_text(FILES["GLPK"].replace("c Problem:    x", head))
    found = read_values(tmp_path / "answer.sol", lambda asked: ["a", "b"] if asked == kind else ["b", "a"])
    assert found.values == {"a": 1.0, "b": 2.5}


@pytest.mark.parametrize("dialect", FILES)
def test_cut_off_anywhere(tmp_path, dialect):
    """Either one clear line or a part of the values, of which at most the last number may be shortened."""
    whole = FILES[dialect].encode()
    for end in range(len(whole)):
        found = attempt(lambda end=end: read(tmp_path, whole[:end]))
        if refused(found):
            continue
        assert found.values.items() <= {"a": 1.0, "b": 2.5}.items() or list(found.values.values())[-1] == 2.0
        if dialect.startswith(("HiGHS", "GLPK")):  # those tell how much there is
            assert len(found.values) == 2


@pytest.mark.parametrize("dialect", FILES)
def test_spoilt_anywhere(tmp_path, dialect):
    """No other exception than the one that says it in a line."""
    chance, whole = random.Random(1), FILES[dialect].encode()
    count = 0
    for _ in range(400):
        lines = whole.split(b"\n")
        place = chance.randrange(len(lines))
        match chance.randrange(4):
            case 0:
                other = chance.randrange(len(lines))
                lines[place], lines[other] = lines[other], lines[place]
            case 1:
                del lines[place]
            case 2:
                words = lines[place].split(b" ")
                strange = [b"nan", b"inf", b"-1", b"1e999", b"", b"j", b"\x0c", b"9" * 5000, b"\xff"]
                words[chance.randrange(len(words))] = chance.choice(strange)
                lines[place] = b" ".join(words)
            case 3:
                lines.insert(place, lines[chance.randrange(len(lines))])
        count += refused(attempt(lambda lines=lines: read(tmp_path, b"\n".join(lines))))
    assert count > 50


@pytest.mark.parametrize("program", some(PROGRAMS, ["highs", "scip", "glpk"]))
def test_cut_off_or_spoilt_file_of_a_model(tmp_path, program):
    """What is read from it has the optimum, or else a line says why not: no other answer, no other exception."""
    name, formulation = "topology/all-to-all-n5-d2", "circulant"
    instance, form = load(name), formulation_named(formulation, load(name))
    kind = "lp" if program in ("glpk", "gurobi") else "mps"
    PROGRAMS[program](write_model(form, instance, tmp_path / f"model.{kind}")[0], tmp_path / "answer.sol")
    whole, chance = (tmp_path / "answer.sol").read_bytes(), random.Random(2)
    lines = whole.split(b"\n")
    cut = [whole[: chance.randrange(len(whole))] for _ in range(20)]
    for spoilt in cut + [
        b"\n".join(lines[:k] + lines[k + 1 :]) for k in chance.sample(range(len(lines)), min(10, len(lines)))
    ]:
        (tmp_path / "answer.sol").write_bytes(spoilt)
        solution = attempt(lambda: read_solution(form, instance, tmp_path / "answer.sol"))
        if refused(solution):
            continue
        evaluation = ddlopt.check(instance, solution)
        assert evaluation.feasible
        assert float(evaluation.objective) == pytest.approx(optimum(name, formulation), rel=1e-4)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "is no solution that HiGHS, SCIP, Gurobi, CBC, GLPK writes"),
        ("a 1\nb 2\n", "is no solution that"),
        ("# Solution for model x\n", "holds no values: Gurobi found no solution"),
        ("Infeasible - objective value 0\n      0 a   1   0\n", "holds no values: CBC found no solution"),
        ("no solution available\n", "holds no values: SCIP found no solution"),
        ("c Problem:\ns mip 1 2 n 0\nj 1 0\nj 2 0\ne o f\n", "holds no values: GLPK found no solution"),
        (FILES["GLPK table"].replace("INTEGER OPTIMAL", "INTEGER EMPTY"), "holds no values: GLPK found no solution"),
        ("Model status\nInfeasible\n\n# Primal solution values\nNone\n", "holds no values: HiGHS found no solution"),
        (GOOD + "c one\n", r"line 5: not what Gurobi writes$"),
        (GOOD + "a 1\n", r"line 5: not what Gurobi writes: a second value of a$"),
        (GOOD + "c nan\n", r"line 5: not what Gurobi writes: the value of c is not finite$"),
        ("Model status\nOptimal\n\n# Columns 2\na 1\nb two\n", "line 6: not what HiGHS writes$"),
        ("Model status\nOptimal\n\n# Columns 2\na 1\n", "line 5: .*: the file ends before column 2 of 2$"),
        ("c Problem: x\nj 3 1\n", "line 2: not what GLPK writes$"),
        ("c Problem: x\nj 0 1\n", "line 2: not what GLPK writes: columns are numbered from 1$"),
        ("c Problem: x\nc Columns:  7\n", "line 2: not what GLPK writes: 7 columns, but the model has 2$"),
    ],
)
def test_broken_files(tmp_path, text, line):
    with one_line(SolutionError, match=line):
        read(tmp_path, text)


@pytest.mark.parametrize(
    ("changed", "line"),
    [
        (["topology_link(0_1) 0.5"], r"sol: topology.link\[0,1\] = 0.5 must be whole; it was not solved to that"),
        (["elsewhere 1"], "names 'elsewhere', which RingsAndRoutes for 'tiny-n4-d2' does not have; export the model"),
        (["topology_link(0_1) 7"], r"topology.link\[0,1\] = 7, but must be from 0 to 2; the file is cut off, or of an"),
        (["topology_link(0_1) 2", "x"], r"line \d+: not what HiGHS writes"),
    ],
)
def test_values_that_do_not_fit_the_model(tmp_path, changed, line):
    instance, form = load("topology/tiny-n4-d2"), formulation_named("rings-and-routes", load("topology/tiny-n4-d2"))
    PROGRAMS["highs"](write_model(form, instance, tmp_path / "model.mps")[0], tmp_path / "answer.sol")
    lines = (tmp_path / "answer.sol").read_text().splitlines()
    place = next(place for place, each in enumerate(lines) if each.startswith("topology_link(0_1)"))
    (tmp_path / "answer.sol").write_text("\n".join([*lines[:place], *changed, *lines[place + len(changed) :]]))
    with pytest.raises(SolutionError, match=line):
        read_solution(form, instance, tmp_path / "answer.sol")


SCIP = "objective value: {}\n" + "".join(f"cover_take({k}) {k in (0, 1, 3):d}\n" for k in range(5))


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (SCIP.format(18), None),
        (
            SCIP.format(18).replace("cover_take(3) 1\n", ""),
            r"cover.enough is 8, but must be at least 17; the file is cut",
        ),
        (SCIP.format(18).replace("cover_take(4) 0", "cover_take(4) 1"), "its objective is 18, but its values have 31;"),
        (SCIP.format(-18), "its objective is -18, but its values have 18;"),
        ("objective value: 0\ncover.take[9] 1\n", r"names 'cover.take\[9\]'"),
    ],
)
def test_what_betrays_a_file(cover, tmp_path, text, line):
    (tmp_path / "answer.sol").write_text(text)
    if line is None:
        assert read_solution(cover.minimise(), cover.instance, tmp_path / "answer.sol").chosen == (0, 1, 3)
        return
    with pytest.raises(SolutionError, match=line):
        read_solution(cover.minimise(), cover.instance, tmp_path / "answer.sol")


def test_a_file_of_mps_has_the_sign_of_a_maximum_changed(cover, tmp_path):
    for claim in (21, -21):
        (tmp_path / "answer.sol").write_text(SCIP.format(claim))
        assert read_solution(cover.maximise(), cover.instance, tmp_path / "answer.sol").chosen == (0, 1, 3)


def test_names_of_the_model_itself(cover, tmp_path):
    (tmp_path / "answer.sol").write_text(SCIP.format(18).replace("cover_take(", "cover.take[").replace(")", "]"))
    assert read_solution(cover.minimise(), cover.instance, tmp_path / "answer.sol").chosen == (0, 1, 3)


def test_of_another_instance(tmp_path):
    form = formulation_named("rings-and-routes:rings=all", load("topology/tiny-n5-d2"))
    model = write_model(form, load("topology/tiny-n5-d2"), tmp_path / "model.mps")[0]
    PROGRAMS["highs"](model, tmp_path / "answer.sol")
    with pytest.raises(
        SolutionError, match=r"names 'topology_.*, which RingsAndRoutes for 'tiny-n4-d2' does not have \(and "
    ):
        read_solution(form, load("topology/tiny-n4-d2"), tmp_path / "answer.sol")


def test_one_that_is_not_there(tmp_path):
    with pytest.raises(SolutionError, match="cannot be read: No such file"):
        read_values(tmp_path / "none.sol", lambda _: [])
