"""The compiler of kernels: Numba's with fewer passes, and with LLVM's once, for a kernel and all of its parts.

What is declared as a kernel, and how it is kept, is in :mod:`ddlopt.models.kernels`.
"""

from types import CodeType
from typing import Any, ClassVar

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.compiler_machinery import PassManager
from numba.core.typed_passes import (
    IRLegalization,
    NoPythonBackend,
    NopythonRewrites,
    NopythonTypeInference,
    PreLowerStripPhis,
)
from numba.core.untyped_passes import FixupArgs, GenericRewrites, IRProcessing, ReconstructSSA, TranslateByteCode

from ddlopt.models.kernel_lowering import Lowering

_PASSES = (
    TranslateByteCode, FixupArgs, IRProcessing, GenericRewrites, ReconstructSSA, NopythonTypeInference,
    PreLowerStripPhis, NopythonRewrites, IRLegalization, Lowering, NoPythonBackend,
)  # fmt: skip


class _Remembered:
    """Numba's typing of one function; what operators give for arguments of the same types is looked up, not sought.

    Numba tries each + as that of all kinds of numbers and arrays in turn, and writes down why they do not fit.
    """

    known: ClassVar[dict[Any, Any]] = {}

    def __init__(self, context: Any) -> None:
        self._context = context

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def resolve_function_type(self, function: Any, args: Any, kws: Any) -> Any:
        """As Numba's."""
        if kws or getattr(getattr(function, "typing_key", None), "__module__", None) != "_operator":
            return self._context.resolve_function_type(function, args, kws)
        key = function, tuple(args)
        if key not in self.known:
            self.known[key] = self._context.resolve_function_type(function, args, kws)
        return self.known[key]


class _Whole(JITCodeLibrary):  # type: ignore[misc]
    """Code of a kernel, optimised once, when all that it calls is linked into it, and without vectorisers.

    Numba's way, three times for each function and at the highest level, takes twice as long, and these kernels (short
    loops with branches in them) are no faster for it.
    """

    def _optimize_functions(self, module: Any) -> None:
        module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self) -> None:
        made = self._codegen._module_pass_manager(opt=1, loop_vectorize=False, slp_vectorize=False)
        manager, *builder = made if isinstance(made, tuple) else (made,)  # earlier versions of Numba have no builder
        manager.run(self._final_module, *builder)


class _Part(_Whole):
    """Code that is linked into that of kernels, and only there optimised and made into machine code."""

    def finalize(self) -> None:
        """Nothing is left to do."""
        self._finalized = True


class Short(Compiler):  # type: ignore[misc]
    """Numba's compiler without the passes for what kernels do not have: closures, contexts, loops in parallel."""

    whole: ClassVar[type] = _Whole

    def __init__(self, typing: Any, target: Any, library: Any, args: Any, result: Any, flags: Any, names: Any) -> None:
        if library is None:
            library = self.whole(target.codegen(), "kernel")
            library.enable_object_caching()
        super().__init__(typing, target, library, args, result, flags, names)

    def define_pipelines(self) -> list[PassManager]:
        """The passes; all of Numba's for a function with others inside."""
        if any(isinstance(each, CodeType) for each in self.state.func_id.code.co_consts):
            return super().define_pipelines()  # type: ignore[no-any-return]
        self.state.typingctx = _Remembered(self.state.typingctx)
        passes = PassManager("short")
        for each in _PASSES:
            passes.add_pass(each, each.__name__)
        passes.finalize()
        return [passes]


class Thorough(Short):
    """The same, with all that LLVM can do."""

    whole = JITCodeLibrary


class InParts(Short):
    """The same, up to what is to be linked."""

    def __init__(self, typing: Any, target: Any, library: Any, args: Any, result: Any, flags: Any, names: Any) -> None:
        flags.no_compile = True
        super().__init__(typing, target, _Part(target.codegen(), "part"), args, result, flags, names)


class OverloadInParts(InParts):
    """What Numba has for a function of NumPy or Python's, with all of its passes: its branches depend on types."""

    def define_pipelines(self) -> list[PassManager]:
        """Numba's."""
        return Compiler.define_pipelines(self)  # type: ignore[no-any-return]
