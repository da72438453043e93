"""Kernels: compiled functions that Python calls, with declared types, compiled ahead and never inside a clock.

:func:`kernel` decorates an entry point::

    @kernel("(const(i8[:, ::1]), f8[::1], i8)", nogil=True)
    def shift(heads: Ints, flow: Floats, source: int) -> float: ...

A signature is the text of Numba types, read when the kernel is compiled: ``(arguments)``, or ``result(arguments)`` to
have the type of the result checked as well. ``const(array)`` is an array that the kernel only reads; frozen arrays and
others are both taken for it. ``record(Net, …)`` is a named tuple with fields of these types. Names of the kernel's own
module are known too. What only kernels call is a :data:`helper`, or :func:`inner` where it has options.

On disk a kernel is kept under a digest of itself, of everything that it calls in whatever file, and of the constants
that these use, so that an edit is noticed wherever it is.
"""

import contextlib
import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from importlib import import_module
from types import CodeType, ModuleType
from typing import Any

import numpy as np
from numba import config, jit, types
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.dispatcher import Dispatcher
from numba.core.registry import CPUDispatcher
from numba.core.runtime import rtsys
from numba.core.target_extension import cpu_target, jit_registry
from numba.core.targetconfig import ConfigStack

from ddlopt.models.kernel_compiler import InParts, OverloadInParts, Short, Thorough
from ddlopt.models.locks import lock_of


def const(array: types.Array) -> types.Array:
    """The type of such an array that is only read."""
    return array.copy(readonly=True)


def record(kind: type, *fields: types.Type) -> types.BaseTuple:
    """The type of a named tuple with fields of these types."""
    return types.BaseTuple.from_types(fields, kind)


_PLAIN = {"nopython": True, "boundscheck": None, "no_cfunc_wrapper": True}
_WORDS = {**vars(types), "const": const, "record": record}


@contextmanager
def _without_collector() -> Iterator[None]:
    """A compilation makes millions of small objects, and looking for garbage among them is a tenth of it.

    They are not looked at afterwards either, and stay in memory: about a megabyte for each function, once.
    """
    paused = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if paused:
            gc.freeze()
            gc.enable()


class _CacheFile(IndexDataCacheFile):  # type: ignore[misc]
    """Files that name a class or a kernel which has moved since are as good as none."""

    def _load_index(self) -> Any:
        try:
            return super()._load_index()
        except (ImportError, AttributeError):
            return {}

    def _load_data(self, name: str) -> Any:
        try:
            return super()._load_data(name)
        except (ImportError, AttributeError):
            return None


class _Cache(FunctionCache):  # type: ignore[misc]
    """Loads without Numba's registries of what can be compiled, which take longer to set up than a small solve takes.

    What has been compiled needs only the runtime that counts references; who compiles sets the rest up himself.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._cache_file.__class__ = _CacheFile

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """As Numba's, without ``target_context.refresh()``."""
        rtsys.initialize(target_context)
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)

    def save_overload(self, sig: Any, data: Any) -> None:
        """As Numba's; what finds no room on the disk is compiled again by the next process, and ready in this one."""
        with contextlib.suppress(OSError):
            super().save_overload(sig, data)


class Kernel(CPUDispatcher):  # type: ignore[misc]
    """A compiled function that is specialised for the types declared and for no others.

    Called before it has been compiled, it compiles what was declared. Arguments that do not fit are a ``TypeError``;
    numbers are converted to the declared type.
    """

    declared: tuple[str, ...]
    thorough: bool

    @property
    def ready(self) -> bool:
        """Whether every declared signature has been compiled or loaded."""
        return not self._can_compile

    @property
    def kept(self) -> bool:
        """Whether every declared signature is ready, or on disk."""
        if self.ready:
            return True
        self._stamp()
        index = self._cache._cache_file._load_index()
        codegen = self.targetctx.codegen()
        return all(self._cache._index_key(each, codegen) in index for each in self._types())

    def prepare(self) -> None:
        """Compile what was declared, or load it; another process that does the same is waited for."""
        if self.ready or self.is_compiling:
            return
        with lock_of(self._cache.cache_path, self.py_func.__module__), _without_collector():
            self._stamp()
            for signature in self._types():
                self.compile(signature)
            self.disable_compile()

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """As of every dispatcher, for calls from compiled code."""
        self.prepare()
        return super().get_call_template(args, kws)

    def _compile_for_args(self, *args: Any, **kws: Any) -> Any:
        """What to call in place of this one, which has just been called and is not compiled."""
        self.prepare()
        return self

    def __reduce__(self) -> Any:
        return _found, (self.py_func.__module__, self.py_func.__qualname__)

    def _types(self) -> list[Any]:
        words = {**_WORDS, **self.py_func.__globals__}
        words.update({name: _WORDS[name] for name in ("const", "record")})
        return [eval(text, words) for text in self.declared]

    def _stamp(self) -> None:
        """Have the files of this kernel and of all that it calls answer to what they are made of."""
        called: list[Any] = [self, *_called(self.py_func, set())]
        for each in called:
            cache_file = getattr(each._cache, "_cache_file", None)
            if cache_file is not None:
                cache_file._source_stamp = digest(each)


def kernel(*signatures: str, thorough: bool = False, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Declare an entry point with the types that it takes; ``options`` are those of ``numba.njit``.

    A ``thorough`` one is optimised as far as it goes, which takes longer to compile: for loops that are faster for it.
    """
    if not signatures:
        raise TypeError("a kernel needs at least one signature")

    def declare(function: Callable[..., Any]) -> Any:
        if config.DISABLE_JIT:
            return function
        pipeline = Thorough if thorough else Short
        made = Kernel(function, targetoptions={**_PLAIN, **options}, pipeline_class=pipeline)
        made.declared, made.thorough = signatures, thorough
        made._cache = _Cache(function)
        return made

    return declare


class Inner(CPUDispatcher):  # type: ignore[misc]
    """A function that only kernels call, compiled as a part of them; called from Python, it is what is written."""

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """As of every dispatcher, for calls from compiled code; constants among the arguments are like others."""
        return super().get_call_template(tuple(map(types.unliteral, args)), kws)

    def add_overload(self, cres: Any) -> None:
        """Have calls linked with the part, and with the parts that it calls."""
        entry, parts = object(), [cres.library, *cres.library._linking_libraries]
        self.targetctx.insert_user_function(entry, cres.fndesc, parts)
        self.overloads[tuple(cres.signature.args)] = cres._replace(entry_point=entry)

    def __call__(self, *args: Any, **kws: Any) -> Any:
        """Run as plain Python: there is no way into the compiled one."""
        return self.py_func(*args, **kws)


class _Overload(Inner):
    """Such a function as a part of kernels."""

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """As of every dispatcher; constants among the arguments may decide what is called."""
        return CPUDispatcher.get_call_template(self, args, kws)


def _overload_for_kernels(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """What Numba decorates overloads with: in parts for kernels, which alone have these flags, as before for others."""
    flags = ConfigStack.top_or_none()
    if flags is None or not flags.no_cfunc_wrapper:
        return jit(**options)  # type: ignore[no-any-return]

    def declare(function: Callable[..., Any]) -> Any:
        if function.__qualname__.startswith("ol_raise_with_shape_context"):
            function = _of_another_shape
        return _Overload(function, targetoptions={**options, **_PLAIN}, pipeline_class=OverloadInParts)

    return declare


def _of_another_shape(src_shapes: Any, index_shape: Any) -> None:
    """In place of a message with the shapes in it, for which Numba compiles all of its formatting of text."""
    raise ValueError("cannot assign slice from input of different size")


del jit_registry[cpu_target]  # it may be set once only
jit_registry[cpu_target] = _overload_for_kernels


def inner(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Declare a function that only kernels call; ``options`` are those of ``numba.njit``.

    It has no ways in from Python and from C, no file of its own on disk, and no machine code but in kernels, which make
    most of what a small function costs to compile. It is compiled once for each combination of types.
    """

    def declare(function: Callable[..., Any]) -> Any:
        if config.DISABLE_JIT:
            return function
        return Inner(function, targetoptions={**_PLAIN, "no_cpython_wrapper": True, **options}, pipeline_class=InParts)

    return declare


helper = inner()
"""Decorates what only kernels call, without options."""
leaf = inner(_nrt=False)
"""Decorates what makes no arrays either: references to those that it is given are not counted, which saves time."""


def kernels_of(module: ModuleType) -> list[Kernel]:
    """The kernels that a module defines."""
    return [
        each
        for each in vars(module).values()
        if isinstance(each, Kernel) and each.py_func.__module__ == module.__name__
    ]


def digest(function: Dispatcher) -> str:
    """SHA-256 of all that a compiled function is made from: code, options, constants, and what it calls."""
    parts: list[str] = []
    for each in (function, *_called(function.py_func, set())):
        options = [
            (name, sorted(value) if isinstance(value, set) else value) for name, value in each.targetoptions.items()
        ]
        parts += [
            repr(sorted(options, key=str)),
            repr(getattr(each, "declared", ())),
            repr(getattr(each, "thorough", False)),
        ]
        parts += _described(each.py_func)
    return sha256("\n".join(parts).encode()).hexdigest()


def _found(module: str, name: str) -> Any:
    return getattr(import_module(module), name)


def _called(function: Callable[..., Any], seen: set[int]) -> Iterator[Dispatcher]:
    """The compiled functions that a function calls, and those call, each once; what comes with Numba is left out."""
    for _, value in _used(function):
        if isinstance(value, Dispatcher) and id(value) not in seen:
            seen.add(id(value))
            if not value.py_func.__module__.startswith("numba."):
                yield value
                yield from _called(value.py_func, seen)


def _described(function: Callable[..., Any]) -> Iterator[str]:
    yield f"{function.__module__}.{function.__qualname__} {function.__defaults__!r}"
    for code in _codes(function.__code__):
        constants = [each for each in code.co_consts if not isinstance(each, CodeType)]
        yield f"{code.co_code.hex()} {constants!r} {code.co_names} {code.co_varnames} {code.co_freevars}"
    for name, value in _used(function):
        yield f"{name} {_as_text(value)}"


def _as_text(value: Any) -> str:
    if isinstance(value, Dispatcher):
        return f"calls {value.py_func.__module__}.{value.py_func.__qualname__}"
    if isinstance(value, np.ndarray):
        return f"{value.dtype.descr} {value.shape} {sha256(value.tobytes()).hexdigest()}"
    if isinstance(value, np.dtype):
        return repr(value)
    if isinstance(value, type | ModuleType):
        return f"{value.__name__} {getattr(value, '_fields', ())}"
    if isinstance(value, tuple | list):
        return f"({', '.join(map(_as_text, value))})"
    plain = int | float | str | complex | bytes | np.generic
    return f"{type(value).__name__} {value!r}" if isinstance(value, plain) else ""


def _used(function: Callable[..., Any]) -> Iterator[tuple[str, Any]]:
    """Names of other objects in a function's code, and what they stand for, those in modules too."""
    cells = function.__closure__ or ()
    yield from zip(function.__code__.co_freevars, (each.cell_contents for each in cells), strict=True)
    names = {name for code in _codes(function.__code__) for name in code.co_names}
    known = function.__globals__
    for name in sorted(names & known.keys()):
        value = known[name]
        yield name, value
        if isinstance(value, ModuleType):
            yield from ((f"{name}.{part}", getattr(value, part)) for part in sorted(names & vars(value).keys()))


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _codes(each)
