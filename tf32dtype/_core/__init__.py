"""The compiled core: scalar types, dtypes, casts and ufunc loops."""

try:
    from ._core import *  # noqa: F403
    from ._core import __all__  # noqa: F401
except ModuleNotFoundError as error:
    if error.name != f"{__name__}._core":
        raise
    raise ImportError(
        "tf32dtype is not built here: this folder holds its sources. In the folder"
        " that contains pyproject.toml run `pip install -e .`, or start Python in"
        " another folder if the package is installed."
    ) from None
