"""The mode of PyTorch in which operations that multiply matrices are replaced."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, Self

import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import TorchDispatchMode

from ..tensors import to_numpy
from .attention import WatchAttention
from .kinds import OF_NESTED, Kind, known
from .layers import Layers, Place
from .multiply import way_of_elements
from .operations import CODES, DTYPES, Multiplier
from .recipe import Recipe, Role
from .trial import check_call

#: Returns the recipe of a layer; None: PyTorch computes it.
Choose = Callable[[str], Recipe | None]
#: The operation and reason of products that scopes of the program's own replace.
INNER = ("products", "in the program's own scopes")
_CAST = torch.ops.aten._to_copy.default
#: The reason that is not counted.
_NO_NUMBERS = "on meta"
#: Classes of tensors that PyTorch itself computes.
_PLAIN = (Tensor, nn.Parameter, nn.Buffer)
#: The kinds of operations that multiply matrices.
_MULTIPLIES = (Kind.REPLACE, Kind.UNREACHED)
#: The attribute of errors that name their layer.
_NAMED = "_names_layer"
#: Advice of `tf32dtype.blocks.quantize`, whose arguments scopes do not have.
_ADVICE = ". Use overflow='saturate' to clip"


class NotReplaced(Exception):
    """PyTorch computes this operation."""


class _Entered(threading.local):
    """The modes that a thread entered; None: a scope in which PyTorch computes."""

    def __init__(self) -> None:
        self.modes: list[ProductMode | None] = []


_entered = _Entered()


class ProductMode(TorchDispatchMode):
    """Replaces the products of this thread's operations while it is entered.

    Parameters
    ----------
    choose : callable
        Given a layer's name, returns its recipe.
    model : Module, optional
        The module that names of layers are relative to.

    Attributes
    ----------
    calls : Counter
        Replaced products by layer.
    unreached : Counter
        Operations that multiply and were not replaced, by their name and the reason.
    inner : int
        Products that scopes inside this one replaced.
    """

    supports_higher_order_operators = True
    #: whether a product may be computed in parts
    in_parts = True

    def __init__(self, choose: Choose, model: nn.Module | None = None) -> None:
        super().__init__()
        self.choose = choose
        self.layers = Layers(model, self._elsewhere)
        self.calls: Counter[str] = Counter()
        self.unreached: Counter[tuple[str, str]] = Counter()
        self.inner = 0
        #: layers that other threads ran, which add them at any time
        self._others: list[str] = []
        #: roles of the next products
        self._expected: list[tuple[Role, Role]] = []
        #: operations so far that multiply, and whose operands have numbers or are fake
        self._seen = 0

    @contextmanager
    def watch(self) -> Iterator[Self]:
        """Replace products, and follow the modules that run."""
        with ExitStack() as stack:
            stack.enter_context(innermost(self))
            self.layers.watch(stack)
            stack.enter_context(_FAST_PATHS)
            stack.enter_context(WatchAttention(self._expect, self._named))
            stack.enter_context(self)
            try:
                yield self
            finally:
                others, self._others = self._others, []
                self.unreached.update((x, "in another thread") for x in [*others])

    def _elsewhere(self, layer: str) -> None:
        if not _entered.modes and self.choose(layer) is not None:
            self._others.append(layer)

    def _expect(self, roles: Sequence[tuple[Role, Role]]) -> None:
        self._expected = [*roles]

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if FakeTensor in types:
            self._seen += 1
            return func(*args, **kwargs)
        if any(kind not in _PLAIN for kind in types):
            return self._by_subclass(func, types, args, kwargs)
        kind, operation, target, why = known(func)
        if kind is Kind.LEAVE or _entered.modes[-1:] != [self]:
            result = func(*args, **kwargs)
            if func is _CAST:
                self.layers.cast(args[0], result)
            return result
        if kind is Kind.TAKE_APART:
            if not any(isinstance(x, Tensor) and x.is_nested for x in args):
                with self:
                    return func.decompose(*args, **kwargs)
            if func not in OF_NESTED:
                return func(*args, **kwargs)
        self._seen += 1
        why = why or _reason(args, kwargs)
        if why:
            if why != _NO_NUMBERS and self.choose(self.layers.running) is not None:
                self.unreached[str(func), why] += 1
            return func(*args, **kwargs)
        try:
            check_call(func, args, kwargs)
            return self.replaced(func, operation, target, args, kwargs)
        except (RuntimeError, ValueError, IndexError) as error:
            raise self._named(error, args) from None

    def _by_subclass(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """Let a subclass of Tensor compute an operation, perhaps by other operations.

        If it multiplies without them, the operation was not replaced.
        """
        multiplies = func in OF_NESTED or known(func).kind in _MULTIPLIES
        if not multiplies or _entered.modes[-1:] != [self]:
            return NotImplemented
        before = self._seen
        result: Any = NotImplemented
        with self:
            for kind in types:
                if kind not in _PLAIN and result is NotImplemented:
                    result = kind.__torch_dispatch__(func, types, args, kwargs)
        is_done = result is not NotImplemented and self._seen == before
        if is_done and self.choose(self.layers.running) is not None:
            self.unreached[str(func), "of a tensor subclass"] += 1
            self._seen += 1
        return result

    def _named(self, error: Exception, args: Sequence[Any]) -> Exception:
        """Return the error of an operation with the layer in its message."""
        if getattr(error, _NAMED, False):
            return error
        layer = self.layers.owner([x for x in args if isinstance(x, Tensor)])
        return _error_of(f"layer {layer!r}" if layer else "", error)

    def replaced(
        self, func: Any, operation: Any, target: str, args: Any, kwargs: Any
    ) -> Any:
        """Compute an operation by products."""
        options = {k: v for k, v in kwargs.items() if k != "out"}
        try:
            result = operation(self, *args, **options)
        except NotReplaced:
            return func(*args, **kwargs)
        if target:
            out: Tensor = args[0] if target == "self" else kwargs["out"]
            if target == "out" and out.shape != result.shape:
                out.resize_(result.shape)
            return out.copy_(result)
        return result

    def again(self, func: Any, *args: Any) -> Tensor:
        """Return the result of another operation, whose products are replaced, too."""
        with self:
            result: Tensor = func(*args)
        return result

    def product(self, a: Tensor, b: Tensor, *roles: Role) -> Tensor:
        """Return the float32 product of (..., m, k) and (..., k, n) of one stack.

        The operands are rounded as the layer's recipe says.

        Raises
        ------
        NotReplaced
            If the layer has no recipe.
        ValueError, MemoryError
            If the operands cannot be rounded or multiplied.
        """
        return self.multiply(a, b, *self._planned(a, b, roles))

    def multiplier(self, a: Tensor, b: Tensor, *roles: Role) -> Multiplier:
        """Return what multiplies matrices that are made of two operands.

        Parameters
        ----------
        a, b : Tensor
            The operands.
        *roles : str
            The roles of both, if the operation knows them.

        Raises
        ------
        NotReplaced
            If the layer has no recipe.
        """
        place, recipe = self._planned(a, b, roles)
        takes_parts = all(recipe.of(x).takes_parts for x in (place.left, place.right))
        product = partial(self.multiply, place=place, recipe=recipe)
        return Multiplier(product, self.in_parts and takes_parts)

    def _planned(
        self, a: Tensor, b: Tensor, roles: tuple[Role, ...]
    ) -> tuple[Place, Recipe]:
        """Return where a product is and how it is computed, and count it."""
        left, right = roles or (None, None)
        if self._expected:
            (left, right), *self._expected = self._expected
        place = self.layers.place(a, b, (left, right))
        recipe = self.choose(place.layer)
        if recipe is None:
            raise NotReplaced
        self.calls[place.layer] += 1
        for mode in _entered.modes[:-1]:
            if mode is not None:
                mode.inner += 1
        return place, recipe

    def multiply(self, a: Tensor, b: Tensor, place: Place, recipe: Recipe) -> Tensor:
        """Return a product of a layer."""
        try:
            if a.dtype in CODES:
                x, y = as_array(a, True), as_array(b, True)
                way = way_of_elements(x.dtype.name, y.dtype.name, recipe.unit)
            else:
                way = recipe.way(place.left, place.right)
                narrow = a.dtype == b.dtype == torch.bfloat16 and way.takes_bfloat16
                x, y = as_array(a, narrow), as_array(b, narrow)
            return torch.from_numpy(way.multiply(x, y))
        except (RuntimeError, ValueError, MemoryError) as error:
            raise _error_of(_words(place), error) from None


def _error_of(where: str, error: Exception) -> Exception:
    """Return an error whose message begins with the place of a product."""
    if isinstance(error, MemoryError):  # NumPy's own makes its message from a shape
        error = MemoryError(str(error))
    if where and error.args:
        text = str(error.args[0]).removesuffix(_ADVICE)
        error.args = (f"{where}: {text}", *error.args[1:])
    setattr(error, _NAMED, True)
    return error


def _words(place: Place) -> str:
    """Return words for a place in an error."""
    name = f"layer {place.layer!r}" if place.layer else "a product outside of layers"
    roles = f"{place.left} x {place.right}"
    return f"{name}{' (backward)' * place.is_backward}, {roles}"


def as_array(x: Tensor, is_narrow: bool = False) -> NDArray[Any]:
    """Return an array of float32, or of the tensor's own format.

    Float32 tensors, and narrow arrays, share the memory of the tensor.
    """
    plain = x.detach().resolve_neg()
    return to_numpy(plain) if is_narrow else plain.float().numpy()


@contextmanager
def innermost(mode: ProductMode | None) -> Iterator[None]:
    """Let a mode compute the products of this thread; None: let PyTorch do it.

    The modes of scopes around it do nothing meanwhile.
    """
    _entered.modes.append(mode)
    try:
        yield
    finally:
        _entered.modes.pop()


def entered() -> ProductMode | None:
    """Return the mode of this thread's innermost scope; None: PyTorch computes."""
    return _entered.modes[-1] if _entered.modes else None


class _FastPaths:
    """Keeps PyTorch from computing layers in one operation while a scope is open.

    These choices belong to the process. The first scope makes them, and the last one
    in any thread restores them.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open = 0
        self._before = (True, True)

    def __enter__(self) -> None:
        attention = torch.backends.mha
        with self._lock:
            if self._open == 0:
                mkldnn = torch._C._get_mkldnn_enabled()
                self._before = (attention.get_fastpath_enabled(), mkldnn)
            self._open += 1
            attention.set_fastpath_enabled(False)
            torch._C._set_mkldnn_enabled(False)

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._open -= 1
            if self._open == 0:
                torch.backends.mha.set_fastpath_enabled(self._before[0])
                torch._C._set_mkldnn_enabled(self._before[1])


_FAST_PATHS = _FastPaths()


def _reason(args: Any, kwargs: Any) -> str:
    """Return why operands cannot be replaced; "" if they can."""
    for x in (*args, *kwargs.values()):
        if not isinstance(x, Tensor):
            continue
        if x.device.type == "meta":
            return _NO_NUMBERS
        if x.is_nested:
            return "of nested tensors"
        if x.dtype not in DTYPES:
            return f"of {str(x.dtype).removeprefix('torch.')}"
        if x.device.type != "cpu" or x.layout != torch.strided:
            return f"on {x.device}" if x.layout == torch.strided else f"{x.layout}"
    return ""
