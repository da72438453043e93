"""How far each step of the decomposition goes."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Effort:
    """Limits of the steps of :class:`~ddlopt.frontier.codesign.joint.search.Search`, each with what would change it.

    Programs are limited in nodes rather than seconds, so that a busy machine looks at the same choices.

    Parameters
    ----------
    near : float
        Candidates within this factor of the best plan get a better design: a design seldom gains more by it.
    accurate : int
        Part of the gap asked for, inverted, that each program and each design may leave: the parts add up, along one
        choice, to less than the whole.
    finer, finer_nodes : float, int
        A program that proposes choices is solved to the open gap over ``finer``. When it repeats a choice, it is asked
        again with ``finer`` times the accuracy and ``finer_nodes`` times the nodes: its limits, not its optimum, gave
        that answer.
    nodes : int
        Of a program that proposes choices, at first.
    detours : tuple of float or None
        Programs in turn: without whole ports, and with them, by the hops that bytes without a link of their own take.
        Two hops are the least, so that the program is a relaxation; with three it proves nothing, and its choices suit
        links that exist.
    whole_nodes, whole_gap : int, float
        For programs with whole ports. With cuts their nodes take long, and all that is wanted is another choice.
    opening_detour, opening_nodes, opening_gap : float, int, float
        For the first of them, which has no cuts and is fast enough to be solved well.
    proven : int
        Choices whose proven loads cut the program without designs. Each costs a solve of it, and often hundreds have
        the same bound.
    solved_nodes : int
        For programs solved to optimality, whose bounds take nothing for granted; a limit for those that would not end.
    routes_nodes, routes_gap : int, float
        For strategies on given routes. The routes are changed right after, so that the optimum is not worth more.
    descent_servers : int
        Servers beyond which a path for every pair that some strategy may use takes minutes.
    symmetric_trials : int
        Sets of generators that are judged with strategies in parts, before whole ones are found for the best sets.
    looked_at : int
        Choices that a local search under the estimate looks at; the estimate is too coarse for more.
    per_search : int
        Choices that get a cheap design for each that gets a search over links, which takes longer.
    unserved : float
        A choice that nothing serves is taken for slower than any plan by this factor, so that it is not proposed again.
    """

    near: float = 1.02
    accurate: int = 8
    finer: float = 20.0
    finer_nodes: int = 8
    nodes: int = 1000
    detours: tuple[float | None, ...] = (None, 3.0, None, 2.0)
    whole_nodes: int = 200
    whole_gap: float = 3e-3
    opening_detour: float = 3.0
    opening_nodes: int = 2000
    opening_gap: float = 1e-3
    proven: int = 30
    solved_nodes: int = 20_000
    routes_nodes: int = 200
    routes_gap: float = 1e-3
    descent_servers: int = 512
    symmetric_trials: int = 60
    looked_at: int = 2000
    per_search: int = 3
    unserved: float = 2.0


EFFORT = Effort()
