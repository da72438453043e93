r"""Proofs on lanes: every plan that is better than the claim dies on its way, in whole numbers.

**Figures.** Times are measured in a power of two of seconds, errors in a power of two of theirs, such that what they
are compared with has 32 bits, and rounded down; what they are compared with is rounded up. That is a relaxation: no
plan gets slower or worse by it.

**Labels.** What the messages up to gradient i mean for the others is in a few figures: the encoding D so far, the
times :math:`F_s` from which lane s takes what comes later, and the error X. A message over gradients i+1 .. j, of
encoding e and error x, that is ready at R and keeps lane s for :math:`d_s`, leads on to

.. math:: D' = D + e,\quad X' = X + x,\quad F'_s = \max(F_s, P_s) + d_s,\quad P_s = \max(R + D', F'_r)

where r is the lane that it has passed last before s. Of a lane that it does not pass, :math:`F'_s = \max(F_s, R +
D')`: nothing later is encoded before, and the plan ends no sooner either way. So a plan's time is the largest F at the
end; one wire is one lane that all pass. All this grows with each figure, so that of two labels of the same i one that
is nowhere smaller is left out.

**Prices.** The time of a plan is at least :math:`R_j + D + d_s + \dots` from any message on, to the end, on each lane.
With whole weights :math:`\lambda_{is} \ge 0` of gradients and lanes, :math:`B_{is} = \lambda_{1s} + \dots +
\lambda_{is}`, :math:`B_i = \sum_s B_{is}`, :math:`\Lambda = B_n`, and a price :math:`\mu \ge 0` of the error,

.. math:: \Lambda\, T + \mu\, X_n \;\ge\; \sum_s B_{is} F_s + (\Lambda - B_i) D + \mu X + V_i ,

where :math:`V_i` is the cheapest way from i to the end, on which a message costs
:math:`(B_j - B_i) R + (\Lambda - B_i) e + \sum_s B_{js} d_s + \mu x`: every gradient of a message waits for the last.
(Lane s takes no later one before F; whoever is weighted later waits for the encoding D and for everything that is sent
from then on; whoever was weighted before has all that follows on its lane behind it.) A plan better than the claim has
:math:`\Lambda T + \mu X_n < \Lambda t + \mu x`, where t and x are the claim and the budget. So a label with a bound
that is not below dies; and if all of them do, no plan is better. Any prices prove what they prove.

**Cases.** A gradient's options may be parted, and each part is proven with prices of its own.
"""
