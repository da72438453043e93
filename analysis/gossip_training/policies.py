"""Policies of exchange by name, with options: ``adaptive:threshold=0.03,norm=max`` or ``period:12``.

The option that matters most needs no name.
"""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, get_type_hints

from ddlopt.analysis.gossip_training.estimates import Choco, EventGrad, Sparq
from ddlopt.analysis.gossip_training.exchange import Policy
from ddlopt.analysis.gossip_training.mixing import AllReduce, Elastic, Matcha, Mixing
from ddlopt.analysis.gossip_training.pushes import Adaptive, Alone, GoSgd, Period
from ddlopt.models.errors import OptionError

POLICIES: Mapping[str, type[Policy]] = {
    kind.name: kind
    for kind in (Alone, Period, Adaptive, GoSgd, EventGrad, Sparq, Choco, Mixing, Matcha, Elastic, AllReduce)
}
_SWITCH = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


def policy_of(text: str) -> Policy:
    """A policy as it is written on a command line.

    Raises
    ------
    OptionError
        If there is no such policy or option, or a value is out of its range.
    """
    name, colon, settings = text.strip().partition(":")
    if name not in POLICIES:
        raise OptionError(f"there is no policy '{name}'; expected one of {', '.join(POLICIES)}")
    kind = POLICIES[name]
    known = _options(kind)
    if colon and not known:
        raise OptionError(f"{name} has no options; write {name} alone")
    hints, options = get_type_hints(kind), {}
    for place, setting in enumerate(settings.split(",") if colon else ()):
        option, equals, value = setting.strip().partition("=")
        if not equals and place == 0:
            option, value = known[0], setting.strip()
        if option not in known:
            raise OptionError(f"{name} has no option '{option}'; expected one of {', '.join(known)}")
        options[option] = _value(name, option, value, hints[option])
    return kind(**options)


def label_of(policy: Policy) -> str:
    """What :func:`policy_of` reads: the main option, and others that differ from what they are by default."""
    defaults = {field.name: field.default for field in fields(policy)}
    names = _options(type(policy))
    parts = [_written(getattr(policy, name)) for name in names[:1]]
    parts += [
        f"{name}={_written(getattr(policy, name))}" for name in names[1:] if getattr(policy, name) != defaults[name]
    ]
    return f"{policy.name}:{','.join(parts)}" if parts else policy.name


def _options(kind: type[Policy]) -> list[str]:
    """Names of options, the main one first."""
    names = [field.name for field in fields(kind)]
    return sorted(names, key=lambda name: name != kind.main) if kind.main else names


def _written(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value).lower()


def _value(policy: str, option: str, text: str, kind: Any) -> Any:
    try:
        return _SWITCH[text.lower()] if kind is bool else kind(text)
    except (ValueError, KeyError):
        wanted = {bool: "yes or no", int: "a whole number", float: "a number"}[kind]
        raise OptionError(f"{policy}: {option} is '{text}'; expected {wanted}") from None
