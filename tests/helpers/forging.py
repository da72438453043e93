"""Forged proofs of bundled instances: whatever is accepted claims no more than a known solution has."""

import json
import random
from collections import Counter
from fractions import Fraction
from gzip import decompress

import ddlopt
from ddlopt import instances
from ddlopt.instances.library import certificates
from ddlopt.models.errors import RefutedError, SolutionError


def forge(name, count, kind, forged, errors=SolutionError, rightly=None, data=None):
    """How many of ``count`` forgeries of a proof were accepted, refuted and odd, and how many lines were too many.

    ``forged(rng, data)`` makes one of a proof's data, ``errors`` are those of refusals; ``rightly(changed, data,
    known)`` says whether what is refused has to be, if anybody knows. ``data``: of a proof that is not bundled.
    """
    rng, instance, told = random.Random(name), instances.load(name), Counter()
    if data is None:
        path = certificates.file_of(name)
        assert path is not None
        data = json.loads(decompress(path.read_bytes()))
    known = Fraction(ddlopt.check(instance, instances.best(name), exact=True).objective)
    sign = 1 if instance.sense == "minimize" else -1
    for _ in range(count):
        changed = forged(rng, data)
        try:
            claimed = ddlopt.check_certificate(instance, kind.from_data(changed)).bound
        except errors as refused:
            told["refuted" if isinstance(refused, RefutedError) else "odd"] += 1
            told["long"] += "\n" in str(refused)
            assert rightly is None or rightly(changed, data, known)
        else:
            assert sign * claimed <= sign * known
            told["accepted"] += 1
    return told
