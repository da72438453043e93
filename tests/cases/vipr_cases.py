"""Files in VIPR's format: one by hand, trees over random programs, and changes after which they prove nothing."""

from fractions import Fraction

from ddlopt.certificates.linear import check_tree, program_of
from ddlopt.certificates.linear.cuts import with_cuts
from ddlopt.certificates.linear.vipr import vipr_text
from ddlopt.frontier.linear_proof.tree import prove

HAND = """% at least one of x and y, and no more than half of it each: no whole point
VER 1.0 VAR 2 x y INT 2 0 1
OBJ min 2 0 1 1 1
CON 3 2  ux L 1/2 1 0 1  uy L 1/2 1 1 1  sum G 1 2 0 1 1 1
RTP range 3 inf SOL 0 DER 3
x G 1 1 0 1 { rnd 2 2 1 1 -1 } -1
no G 1/2 0 { lin 2 3 1 0 -1 } -1
all G 3 OBJ { lin 1 4 1 } -1
"""


def written(model, claim, nodes, cuts=(), cutoff=None):
    """The file of a tree that holds, and what it has to prove."""
    program = with_cuts(program_of(model, claim, bool(cuts), cutoff if cuts else None), cuts)
    for _ in check_tree(program, nodes):
        pass
    return vipr_text(program, nodes, ["a test"], cuts), claim - model.offset


def proofs_of(model, rng, cuts=False):
    """Claims near the optimum, with a tree for each."""
    for _ in range(3):
        claim = Fraction(rng.randrange(-25, 20), rng.choice((1, 2, 1000)))
        tree = prove(model, claim, 2.0, cuts)
        if tree.claim is not None and tree.nodes:
            yield tree, claim


def changes(text, rng, count):
    """The text with a multiplier changed, or an assumption of a disjunction taken for another one."""
    lines = text.splitlines()
    marked = [place for place, line in enumerate(lines) if "{ lin " in line or "{ rnd " in line or "{ uns " in line]
    for place in rng.sample(marked, min(count, len(marked))):
        head, _, reason = lines[place].partition("{ ")
        words = reason.split()
        if words[0] == "uns":
            words[2], words[4] = words[4], words[2]
        elif words[1] == "0":
            continue
        else:
            where = 3 + 2 * rng.randrange(int(words[1]))
            words[where] = str(Fraction(words[where]) + Fraction(1, 7))
        yield "\n".join([*lines[:place], f"{head}{{ {' '.join(words)}", *lines[place + 1 :]])
