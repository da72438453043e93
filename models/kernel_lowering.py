"""From typed code of a kernel to LLVM's: values that are set once are handed on instead of kept in slots of the stack.

Numba keeps what more than one block of a function uses in a slot. Each use reads the whole slot. For a record of twenty
arrays these are 140 numbers for one of them, which LLVM then takes longer to clear away than all of its other work.
"""

from collections import defaultdict
from typing import Any

from numba.core.analysis import compute_cfg_from_blocks, compute_use_defs, must_use_alloca
from numba.core.compiler_machinery import register_pass
from numba.core.ir import Assign
from numba.core.lowering import Lower
from numba.core.typed_passes import BaseNativeLowering


class _Lower(Lower):  # type: ignore[misc]
    """Numba's, with values that stand for variables which are set in one place that every use comes after."""

    def _find_singly_assigned_variable(self) -> None:
        super()._find_singly_assigned_variable()
        self._values: dict[str, Any] = {}
        self._counted: set[str] = set()
        self._plain: set[str] = set()
        if not self.func_ir.func_id.is_generator:
            for name in _set_before_used(self.blocks) - self._singly_assigned_vars:
                (self._counted if self._has_references(name) else self._plain).add(name)
        self._singly_assigned_vars |= self._plain

    def _has_references(self, name: str) -> bool:
        model = self.context.data_model_manager[self.typeof(name)]
        return bool(self.context.enable_nrt and model.contains_nrt_meminfo())

    def storevar(self, value: Any, name: str, argidx: int | None = None) -> None:
        """As Numba's, with the slot if references are counted: it is emptied when they are given back, maybe twice."""
        super().storevar(value, name, argidx)
        if name in self._counted:
            self._values[name] = value

    def loadvar(self, name: str) -> Any:
        """As Numba's."""
        return self._values[name] if name in self._values else super().loadvar(name)

    def delvar(self, name: str) -> None:
        """As Numba's; of what has neither slot nor references nothing is left."""
        if name not in self._plain:
            super().delvar(name)


@register_pass(mutates_CFG=True, analysis_only=False)
class Lowering(BaseNativeLowering):  # type: ignore[misc]
    """The pass, in place of Numba's ``NativeLowering``."""

    _name = "lowering_of_kernels"

    @property
    def lowering_class(self) -> type[Lower]:
        """What it is done by."""
        return _Lower


def _set_before_used(blocks: dict[int, Any]) -> set[str]:
    """Variables that one statement sets, in a block that is on every way to those that use them, and written above."""
    used = compute_use_defs(blocks).usemap
    above = compute_cfg_from_blocks(blocks).dominators()
    places: dict[str, list[int]] = defaultdict(list)
    for place, block in blocks.items():
        for each in block.find_insts(Assign):
            places[each.target.name].append(place)
    found: set[str] = {name for name, where in places.items() if len(where) == 1} - must_use_alloca(blocks)
    for place, names in used.items():
        found -= {name for name in names & found if not places[name][0] < place or places[name][0] not in above[place]}
    return found
