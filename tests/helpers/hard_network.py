"""A problem with a solution within a second and no proof within a minute."""

import random

import pyomo.environ as pyo


def network(n=10, degree=2):
    """Ten servers with two links each way carry random traffic; the busiest link is to carry as little as possible."""
    rng = random.Random(1)
    m = pyo.ConcreteModel()
    m.N = pyo.RangeSet(0, n - 1)
    m.A = pyo.Set(initialize=[(i, j) for i in range(n) for j in range(n) if i != j])
    traffic = {a: rng.randint(1, 10) for a in m.A}
    sent = {s: sum(traffic[s, t] for t in m.N if t != s) for s in m.N}
    m.x = pyo.Var(m.A, domain=pyo.Binary)
    m.f = pyo.Var(m.N, m.A, bounds=(0, None))
    m.z = pyo.Var(bounds=(0, None))

    def kept(m, s, v):
        return sum(m.f[s, u, v] - m.f[s, v, u] for u in m.N if u != v) == traffic[s, v]

    m.kept = pyo.Constraint(m.A, rule=kept)
    m.out = pyo.Constraint(m.N, rule=lambda m, i: sum(m.x[i, j] for j in m.N if j != i) <= degree)
    m.into = pyo.Constraint(m.N, rule=lambda m, j: sum(m.x[i, j] for i in m.N if i != j) <= degree)
    m.linked = pyo.Constraint(m.N, m.A, rule=lambda m, s, i, j: m.f[s, i, j] <= sent[s] * m.x[i, j])
    m.loads = pyo.Constraint(m.A, rule=lambda m, i, j: sum(m.f[s, i, j] for s in m.N) <= m.z)
    m.o = pyo.Objective(expr=m.z)
    return m


def lay_circulant(model, sizes=(1, 3)):
    """Give every link variable a value."""
    for i, j in model.A:
        model.x[i, j].set_value(int((j - i) % len(model.N) in sizes))
