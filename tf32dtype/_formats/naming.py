"""Choose whose dtypes NumPy finds by names that ml_dtypes has, too: "bfloat16"."""

from __future__ import annotations

from types import ModuleType
from typing import Any, Literal, get_args

import numpy as np

from .. import _core
from .._base.imports import when_imported
from .._base.wording import one_of
from .table import Format, formats

Owner = Literal["tf32dtype", "ml_dtypes"]

#: The scalar types of ml_dtypes, by our names, once the program has imported it.
_theirs: dict[str, type[Any]] = {}
_chosen: Owner | None = None
_lock = _core.shared_lock()  # for these names, and for NumPy's table of names


def names(owner: Owner | None = None) -> Owner:
    """Return or set the package whose dtypes NumPy finds by names such as "bfloat16".

    Names given to functions of this package always mean its own formats. In NumPy's
    functions, as in ``np.dtype("bfloat16")`` or ``x.astype("bf16")``, names mean this
    package's dtypes until the program imports ml_dtypes, itself or through another
    package. From then on they mean ml_dtypes' dtypes. Names of formats that ml_dtypes
    lacks, such as "tf32", always mean this package's dtypes.

    Parameters
    ----------
    owner : {"tf32dtype", "ml_dtypes"}, optional
        The package whose dtypes the names mean from now on, in the whole process, also
        if ml_dtypes is imported later. JAX and other libraries that give names to NumPy
        need the dtypes of ml_dtypes. By default nothing changes.

    Returns
    -------
    str
        The package whose dtypes the names mean: "tf32dtype" or "ml_dtypes".

    Raises
    ------
    ValueError
        For another owner; for "ml_dtypes" if it has not been imported.

    See Also
    --------
    as_ml_dtypes : View an array under the dtype of ml_dtypes.
    from_ml_dtypes : View an array of ml_dtypes under the dtype of this package.

    Examples
    --------
    >>> import numpy as np, tf32dtype as td
    >>> td.names("tf32dtype")
    'tf32dtype'
    >>> np.dtype("bfloat16") == td.bfloat16
    True
    """
    global _chosen
    if owner is not None:
        if owner not in get_args(Owner):
            raise ValueError(one_of("owner", owner, get_args(Owner)))
        if owner == "ml_dtypes" and not _theirs:
            raise ValueError(
                "owner='ml_dtypes' cannot be set before ml_dtypes is imported. Import"
                " ml_dtypes first"
            )
        with _lock:
            _chosen = owner
            _write()
    return "ml_dtypes" if _are_theirs() else "tf32dtype"


def register() -> None:
    """Register the names in NumPy, and those of ml_dtypes once it is imported."""
    _write()
    when_imported("ml_dtypes", _join)


def _join(ml_dtypes: ModuleType) -> None:
    found = {name: getattr(ml_dtypes, name, None) for name in formats}
    with _lock:
        _theirs.update({name: t for name, t in found.items() if isinstance(t, type)})
        _core.add_twins(_theirs)
        _write()


def _are_theirs() -> bool:
    return bool(_theirs) and _chosen != "tf32dtype"


def _write() -> None:
    for form in formats.values():
        types = {form.type, _theirs.get(form.name)}
        for name in (form.name, *form.aliases):
            # Leave the entries of any other package.
            if np.sctypeDict.get(name, form.type) in types:
                np.sctypeDict[name] = _type(form)


def _type(form: Format) -> type[Any]:
    return _theirs.get(form.name, form.type) if _are_theirs() else form.type
