r"""Proofs for one wire: every plan that is better than the claim dies on its way, in whole numbers.

**Figures.** Times are measured in a power of two of seconds, errors in a power of two of theirs, such that what they
are compared with has 32 bits, and rounded down; what they are compared with is rounded up. That is a relaxation: no
plan gets slower or worse by it.

**Labels.** What the messages up to gradient i mean for the others is in three figures: the encoding D so far, the time
F at which the wire is free, and the error X. A message over gradients i+1 .. j, of encoding e, occupation c and error
x, that is ready at R, leads on to

.. math:: (D, F, X) \to \bigl(D + e,\; \max(F, R + D + e) + c,\; X + x\bigr),

which grows with each of the three, so that of two labels of the same i one that is nowhere smaller is left out.

**Prices.** The time of a plan is at least :math:`R_j + D + c + \dots` from any message on, to the end. With
whole weights :math:`\lambda_i \ge 0` of the gradients, :math:`B_i = \lambda_1 + \dots + \lambda_i`,
:math:`\Lambda = B_n`, and a price :math:`\mu \ge 0` of the error,

.. math:: \Lambda\, T + \mu\, X_n \;\ge\; B_i F + (\Lambda - B_i) D + \mu X + V_i ,

where :math:`V_i` is the cheapest way from i to the end, on which a message costs
:math:`(B_j - B_i) R + (\Lambda - B_i) e + B_j c + \mu x`: every gradient of a message waits for the last. (The wire is
free at F; whoever is weighted later waits for the encoding D and for everything that is sent from then on; whoever was
weighted before has all that follows behind it.) A plan better than the claim has
:math:`\Lambda T + \mu X_n < \Lambda t + \mu x`, where t and x are the claim and the budget. So a label with a bound
that is not below dies; and if all of them do, no plan is better. Any prices prove what they prove.

**Cases.** A gradient's options may be parted, and each part is proven with prices of its own.
"""
