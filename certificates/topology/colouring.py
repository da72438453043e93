"""Whether the links of a design can be spread over planes, by exhaustive search with limits."""

from collections.abc import Sequence

# The search is exponential in the links; larger designs have planes in nearly all cases.
MOST_LINKS = 64
# So that a hostile file does not hold the checker up.
MOST_STEPS = 200_000


class TooLongError(Exception):
    """The search was given up."""


def colourable(links: Sequence[tuple[int, int]], planes: int) -> bool:
    """Whether each link can get one of the planes such that links with a common server have different ones.

    Parameters
    ----------
    links : sequence of (int, int)
        Ends of each link; parallel links are listed as often as there are.

    Raises
    ------
    TooLongError
        If there are more than ``MOST_LINKS`` links, or the search takes more than ``MOST_STEPS`` steps.
    """
    if len(links) > MOST_LINKS:
        raise TooLongError(f"it has {len(links)} links, and {MOST_LINKS} is the most that is searched")
    if _overfull(links, planes):
        return False
    left: dict[int, int] = {}
    for link in links:
        for end in link:
            left.setdefault(end, (1 << planes) - 1)
    waiting, steps = list(links), 0

    def extend(used: int) -> bool:
        nonlocal steps
        steps += 1
        if steps > MOST_STEPS:
            raise TooLongError(f"{MOST_STEPS} steps of the search do not decide it")
        if not waiting:
            return True
        # Planes that no link has yet are interchangeable: one of them is enough to try.
        within = (1 << min(used + 1, planes)) - 1
        place = min(range(len(waiting)), key=lambda i: (left[waiting[i][0]] & left[waiting[i][1]] & within).bit_count())
        s, v = waiting.pop(place)
        for plane in range(min(used + 1, planes)):
            bit = 1 << plane
            if left[s] & left[v] & bit:
                left[s] ^= bit
                left[v] ^= bit
                if extend(max(used, plane + 1)):
                    return True
                left[s] ^= bit
                left[v] ^= bit
        waiting.insert(place, (s, v))
        return False

    return extend(0)


def _overfull(links: Sequence[tuple[int, int]], planes: int) -> bool:
    """Whether a server, or an odd set of joined servers, has more links than the planes can hold."""
    parts: dict[int, set[int]] = {}
    for s, v in links:
        both = parts.get(s, {s}) | parts.get(v, {v})
        for each in both:
            parts[each] = both
    for part in parts.values():
        if sum(s in part for s, _ in links) > planes * (len(part) // 2):
            return True
    return any(sum(end in link for link in links) > planes for end in parts)
