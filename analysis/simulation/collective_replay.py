"""A collective as tasks on its network: each tree's bytes go in pieces, and a hop sends on what has come.

A piece that is gathered waits at each accelerator for those from below; one that is spread for the one from above, and
at the root of an all-reduce for the sum. Pieces follow each other on a path, so that many of them fill the pipeline.
"""

from fractions import Fraction

from ddlopt.analysis.simulation.replay import Built, Replay, Task
from ddlopt.models.topology.collective.instance import CollectiveInstance, CollectivePlan, Path, Tree


def replay_of_collective(
    instance: CollectiveInstance, plan: CollectivePlan, *, pieces: int, steps: bool = True, iterations: int = 1
) -> Built:
    """Iterations of a plan that the check found feasible, each after the one before.

    Parameters
    ----------
    pieces : int
        Into which each tree's bytes are cut.
    steps : bool
        Whether a hop waits for what it sends; if not, each sends all that it ever sends at once.
    """
    trees = [tree for tree in plan.trees if Fraction(tree.share)]
    paths = [path for tree in trees for path in (*_up(tree), *_down(tree))]
    tasks: list[Task] = []
    ends: list[tuple[int, ...]] = []
    before: tuple[int, ...] = ()
    for _ in range(iterations):
        first = len(tasks)
        for _piece in range(pieces if steps else 1):
            channel = 0
            for tree in trees:
                share = instance.collective_bytes * float(Fraction(tree.share)) / (pieces if steps else 1)
                channel = _send(tree, share, channel, before, tasks, steps)
        followed = {place for task in tasks[first:] for place in task.after}
        before = tuple(place for place in range(first, len(tasks)) if place not in followed)
        ends.append(before)
    both_ways = all((j, i) in instance.bandwidth for i, j in instance.bandwidth)
    return Built(Replay(instance.nodes, dict(instance.bandwidth), tuple(paths), tuple(tasks), both_ways), tuple(ends))


def _send(tree: Tree, amount: float, channel: int, before: tuple[int, ...], tasks: list[Task], steps: bool) -> int:
    """A piece of a tree; the first channel after those of the tree."""
    arrived: dict[int, list[int]] = {}
    for path in _up(tree):
        after = (*before, *arrived.get(path[0], ())) if steps else before
        arrived.setdefault(path[-1], []).append(len(tasks))
        tasks.append(Task(after, channel, amount))
        channel += 1
    have = {tree.root: arrived.get(tree.root, [])}
    for path in _down(tree):
        after = (*before, *have[path[0]]) if steps else before
        have[path[-1]] = [len(tasks)]
        tasks.append(Task(after, channel, amount))
        channel += 1
    return channel


def _up(tree: Tree) -> list[Path]:
    """Paths that gather, those from below first."""
    return [path[::-1] for path in _outwards(tuple(path[::-1] for path in tree.gather), tree.root)][::-1]


def _down(tree: Tree) -> list[Path]:
    """Paths that spread, from the root on."""
    return _outwards(tree.spread, tree.root)


def _outwards(paths: tuple[Path, ...], root: int) -> list[Path]:
    """Paths of a tree, each after the one that its first node is reached by."""
    below: dict[int, list[Path]] = {}
    for path in paths:
        below.setdefault(path[0], []).append(path)
    found, waiting = list[Path](), [root]
    for node in waiting:
        for path in below.get(node, ()):
            found.append(path)
            waiting.append(path[-1])
    return found
