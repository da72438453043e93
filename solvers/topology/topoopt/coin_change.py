"""Routes on rings of generators: TopoOpt's CoinChangeMod.

On a circulant network, where every server v has a link to v + c (mod n) for each *coin* c, a route from i to j is a way
to pay the amount j - i (mod n) in coins, and a shortest route one with fewest coins. One table answers for all pairs.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ddlopt.models.topology.solution import Path


@dataclass(frozen=True, eq=False)
class CoinTable:
    """Fewest coins for every amount modulo ``servers``.

    Parameters
    ----------
    servers : int
    hops : (n,) array
        Coins that pay each amount; -1 where no number of coins does.
    last : (n,) array
        A coin of such a payment; 0 where there is none.
    """

    servers: int
    hops: npt.NDArray[np.int64]
    last: npt.NDArray[np.int64]

    @property
    def complete(self) -> bool:
        """Whether every amount can be paid, that is whether the coins generate Z_n."""
        return bool((self.hops >= 0).all())

    def coins(self, amount: int) -> tuple[int, ...]:
        """The coins of one payment, in the order in which the route takes them.

        Raises
        ------
        ValueError
            If the amount cannot be paid.
        """
        amount %= self.servers
        if self.hops[amount] < 0:
            raise ValueError(f"no coins pay {amount} modulo {self.servers}; the coins do not generate Z_{self.servers}")
        paid = []
        while amount:
            coin = int(self.last[amount])
            paid.append(coin)
            amount = (amount - coin) % self.servers
        return tuple(paid)

    def path(self, source: int, target: int) -> Path:
        """A shortest route between two servers."""
        visited = [source]
        for coin in self.coins(target - source):
            visited.append((visited[-1] + coin) % self.servers)
        return tuple(visited)


def coin_change_mod(servers: int, coins: Iterable[int], seed: int | None = None) -> CoinTable:
    """Fewest coins for every amount modulo ``servers``, by breadth-first search from 0.

    Parameters
    ----------
    coins : iterable of int
        Offsets of links, taken modulo ``servers``.
    seed : int or None
        Of the choice among equally short payments (random in the released code); None takes the smallest coin.

    References
    ----------
    W. Wang et al., "TopoOpt", NSDI 2023, CoinChangeMod; ``SpMulMat::all_coin_change`` of the released FlexNet code.
    """
    offsets = np.array(sorted({coin % servers for coin in coins} - {0}), dtype=np.int64)
    rng = None if seed is None else np.random.default_rng(seed)
    hops = np.full(servers, -1, dtype=np.int64)
    last = np.zeros(servers, dtype=np.int64)
    hops[0] = 0
    frontier = np.zeros(1, dtype=np.int64)
    while len(frontier) and len(offsets):
        amounts = ((frontier[None, :] + offsets[:, None]) % servers).ravel()
        paid_with = np.repeat(offsets, len(frontier))
        fresh = np.flatnonzero(hops[amounts] < 0)
        if rng is not None:
            fresh = rng.permutation(fresh)
        reached, which = np.unique(amounts[fresh], return_index=True)
        hops[reached] = hops[frontier[0]] + 1
        last[reached] = paid_with[fresh][which]
        frontier = reached
    return CoinTable(servers, hops, last)
