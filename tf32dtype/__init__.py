"""Reduced-precision numbers for NumPy: tf32, bfloat16, fp8, fp6 and fp4.

>>> import numpy as np, tf32dtype as td
>>> a = np.array([1.1, 2.2], dtype=td.tf32)
>>> a + a
array([2.2, 4.4], dtype=tf32)
"""

import os as _os
import typing as _typing

from ._base.requirements import check as _check

_check()
del _check

import numpy as _numpy  # noqa: E402

from . import interop  # noqa: E402
from ._base.version import __version__  # noqa: E402
from ._core import (  # noqa: E402
    bfloat16,
    float4_e2m1fn,
    float6_e2m3fn,
    float6_e3m2fn,
    float8_e3m4,
    float8_e4m3,
    float8_e4m3b11fnuz,
    float8_e4m3fn,
    float8_e4m3fnuz,
    float8_e5m2,
    float8_e5m2fnuz,
    float8_e8m0fnu,
    free_buffers,
    isa,
    tf32,
)
from ._formats.aliases import cure as _cure  # noqa: E402
from ._formats.codes import bits, from_bits  # noqa: E402
from ._formats.naming import names  # noqa: E402
from ._formats.naming import register as _register_names  # noqa: E402
from ._formats.table import Format, formats  # noqa: E402
from ._functions import answers as _answers  # noqa: E402
from ._programs.variables import VARIABLE as _VARIABLE  # noqa: E402
from .interop import hooks as _hooks  # noqa: E402
from .interop.lazy_modules import attribute as _attribute  # noqa: E402
from .interop.lazy_modules import submodule as _submodule  # noqa: E402

if _typing.TYPE_CHECKING:
    from . import blocks, hdf5, linalg, safetensors, tensor_core, testing
    from . import cuda as cuda
    from . import typing as typing
    from ._checks.bounded_matmul import matmul
    from ._checks.error_bounds import error_bound
    from ._config import show_config
    from ._exact.sums import exact_sum
    from ._files.arrays import load, save, savez, savez_compressed
    from ._formats.packing import pack, unpack
    from ._formats.quantize import quantize
    from ._matmul.einsum import einsum
    from ._matmul.explain import explain_matmul
    from ._measures.ulps import ulp_distance
    from ._programs.arithmetic import arithmetic
    from ._programs.context import matmul_precision, set_matmul_precision
    from ._programs.report.context import report
    from .interop.dlpack import from_dlpack, to_dlpack
    from .interop.ml_dtypes import as_ml_dtypes, from_ml_dtypes

_register_names()
_answers.register()
_hooks.register(formats)
del _answers, _hooks, _register_names

if _os.environ.get(_VARIABLE):
    _attribute(__name__, "_programs.context", "read_environment")()
del _VARIABLE, _os

bf16 = bfloat16
fp8_e4m3 = float8_e4m3fn
fp8_e5m2 = float8_e5m2
fp4 = float4_e2m1fn

__all__ = [
    "Format",
    "__version__",
    "arithmetic",
    "as_ml_dtypes",
    "bf16",
    "bfloat16",
    "bits",
    "blocks",
    "einsum",
    "error_bound",
    "exact_sum",
    "explain_matmul",
    "float4_e2m1fn",
    "float6_e2m3fn",
    "float6_e3m2fn",
    "float8_e3m4",
    "float8_e4m3",
    "float8_e4m3b11fnuz",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "formats",
    "fp4",
    "fp8_e4m3",
    "fp8_e5m2",
    "free_buffers",
    "from_bits",
    "from_dlpack",
    "from_ml_dtypes",
    "hdf5",
    "interop",
    "isa",
    "linalg",
    "load",
    "matmul",
    "matmul_precision",
    "names",
    "pack",
    "quantize",
    "report",
    "safetensors",
    "save",
    "savez",
    "savez_compressed",
    "set_matmul_precision",
    "show_config",
    "tensor_core",
    "testing",
    "tf32",
    "to_dlpack",
    "ulp_distance",
    "unpack",
]

#: Only who names them pays for them: modules,
_MODULES = (
    "blocks",
    "cuda",
    "hdf5",
    "linalg",
    "safetensors",
    "tensor_core",
    "testing",
    "typing",
)
#: and what modules have.
_LATER = {
    "arithmetic": "_programs.arithmetic",
    "as_ml_dtypes": "interop.ml_dtypes",
    "einsum": "_matmul.einsum",
    "error_bound": "_checks.error_bounds",
    "exact_sum": "_exact.sums",
    "explain_matmul": "_matmul.explain",
    "from_dlpack": "interop.dlpack",
    "from_ml_dtypes": "interop.ml_dtypes",
    "load": "_files.arrays",
    "matmul": "_checks.bounded_matmul",
    "matmul_precision": "_programs.context",
    "pack": "_formats.packing",
    "quantize": "_formats.quantize",
    "report": "_programs.report.context",
    "save": "_files.arrays",
    "savez": "_files.arrays",
    "savez_compressed": "_files.arrays",
    "set_matmul_precision": "_programs.context",
    "show_config": "_config",
    "to_dlpack": "interop.dlpack",
    "ulp_distance": "_measures.ulps",
    "unpack": "_formats.packing",
}


def __dir__() -> list[str]:
    # `import *` takes neither: CuPy may be missing, and typing is Python's.
    return [*__all__, "cuda", "typing"]


if not _typing.TYPE_CHECKING:  # to type checkers nothing else is there

    def __getattr__(name: str) -> object:
        if name in _MODULES:
            return _submodule(__name__, name, _MODULES)
        if name in _LATER:
            return globals().setdefault(name, _attribute(__name__, _LATER[name], name))
        from ._base.wording import did_you_mean

        private = name.startswith("_")
        help = _cure(name) or ("" if private else did_you_mean(name, __dir__(), "td."))
        spelled = name.lower().replace("_", "")
        same = [x for x in __dir__() if x.replace("_", "").lower() == spelled]
        if same:
            help = f"Did you mean td.{same[0]}?"
        if name in interop.__all__:
            help = f"Use td.interop.{name}"
        elif not private and name in dir(_numpy):
            help = f"Use NumPy's np.{name}"
        # With `name`, Python adds no suggestion of its own to the message.
        raise AttributeError(
            f"module {__name__!r} has no attribute {name!r}"
            + (f". {help}" if help else ""),
            name=name,
        )
