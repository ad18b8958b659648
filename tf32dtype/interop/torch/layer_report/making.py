"""Make a report of a model's layers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from torch import nn

from ...._base.arguments import checked_number
from ...._base.caller import warn
from ...._base.wording import brief
from ...._programs.report.naming import some
from ....tensor_core.device import DeviceName
from ..hook.recipe import formats_on
from .recording import Recorder
from .result import LayerReport
from .running import Runs, calls_of, unplanned
from .sensitivity import Sensitivities, groups_of, measure_outputs

#: The formats that are measured by default.
PRECISIONS = ("bf16", "fp8_e4m3", "mxfp8", "nvfp4")
#: The usual SNR in dB of products of normally distributed numbers is 53 in bf16, 29 in
#: fp8_e4m3, 23 in fp8_e5m2 and 17 in nvfp4.
TARGET_DB = 25.0
#: Layers that compute something else in training.
_OF_TRAINING = (nn.modules.dropout._DropoutNd, nn.modules.batchnorm._NormBase)


def report(
    model: nn.Module,
    inputs: Any,
    precisions: Iterable[str] = PRECISIONS,
    *,
    device: DeviceName | None = None,
    target_db: float = TARGET_DB,
    kwargs: Mapping[str, Any] | None = None,
    sensitivities: bool = True,
    groups: Mapping[str, Iterable[str] | str] | None = None,
    seed: int = 0,
    quiet: bool = False,
) -> LayerReport:
    """Report which layers of a model lose accuracy in which precision.

    The model runs once unchanged, without gradients. Each of its matrix products is
    measured on samples, in each precision: with both operands rounded, and with only
    the activations or only the weights. Then the model runs with all layers rounded,
    and with only one of them, to measure how the errors reach its outputs.

    Parameters
    ----------
    model : Module
        The model, on the CPU. It runs in its mode (`train` or `eval`).
    inputs : tuple, or list of tuples and dicts
        The positional arguments of the model. A list has several batches; a dict is the
        keyword arguments of a batch.
    precisions : iterable of str
        Formats as in `matmul_precision`: precisions such as "fp8_e4m3:row", or block
        formats. The default ones are left out if the device cannot multiply them.
    device : str, optional
        The device whose tensor core multiplies. None: this package's own sums.
    target_db : float
        The required SNR of a product in dB. The default, 25, is reached by ordinary
        operands in ``fp8_e4m3`` (29 dB) and ``bf16`` (53 dB), but not in ``nvfp4``
        (17 dB).
    kwargs : mapping, optional
        Keyword arguments of all calls.
    sensitivities : bool
        Whether the outputs are measured. This runs the model once more for each
        precision and each group of layers.
    groups : mapping, optional
        Groups of layers that are rounded together: names of layers, in which ``*``
        matches any characters, by the group's name. None: each layer is a group. If
        there are more than 64, layers are a group whose names begin with the same
        modules.
    seed : int
        Seed of the random numbers of each run, and of the choice of samples.
    quiet : bool
        Whether the progress bar and the estimate of the time are left out.

    Returns
    -------
    LayerReport
        The report. If Ctrl-C ends the runs, it has the results so far, and
        `is_partial` is True.

    Raises
    ------
    ValueError
        For an unknown precision, device or layer; for a target that is not a positive
        and finite number; if the model multiplies no matrices that can be measured, or
        if its outputs have no floats, or NaN, without rounding.
    TypeError
        For a model that is not a `torch.nn.Module`, and for inputs that are not a
        tuple, or a list of tuples and dicts.

    Warns
    -----
    UserWarning
        If layers of dropout or batch normalization are in training mode.

    See Also
    --------
    matmul_precision : Run a model with its products in another precision.
    tf32dtype.report : The same for NumPy's products, by source line.

    Notes
    -----
    The SNR is -20 log10 of the relative error of the product, against the float64
    product of the operands before rounding. It counts up to 64 rows and 256 columns of
    a call, over all of k. Scales and roundings are those of the whole operands. The
    first four calls of a product are measured, and those whose number is a power of
    two.

    The SNR of the outputs is against the outputs without rounding. Squares of all float
    tensors of the output are added. Copies of the inputs are used in each run, and
    buffers that a run changes are restored. A plan of `apply` does not count.

    Examples
    --------
    >>> import torch
    >>> from tf32dtype.interop import torch as tt
    >>> _ = torch.manual_seed(0)
    >>> model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Linear(64, 8))
    >>> found = tt.report(model, (torch.randn(16, 64),), ["bf16", "nvfp4"], quiet=True)
    >>> [(row.layer, row.is_below(found.target_db)) for row in found.rows]
    [('0', ['nvfp4']), ('1', ['nvfp4'])]
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"model must be a torch.nn.Module; got {brief(model)}")
    target = checked_number(target_db, "target_db")
    if not 0 < target < float("inf"):
        raise ValueError(f"target_db must be more than 0 and finite; got {target:g}")
    runs = Runs(model, calls_of(inputs, kwargs), seed)
    if precisions is PRECISIONS:
        precisions = formats_on(device, PRECISIONS)
    recorder = Recorder(precisions, device=device, model=model, seed=seed)
    if names := _in_training(model):
        warn(
            f"layers compute in training mode: {some(names, 3, ', ')}. Call"
            " model.eval() to measure the model as it is used"
        )
    is_partial, found = False, Sensitivities({})
    with unplanned(model):
        try:
            with recorder:
                runs.outputs()
        except KeyboardInterrupt:
            if not recorder.rows:
                raise
            is_partial = True
        rows, unreached = recorder.rows, recorder.unreached
        if not rows:
            others = ", ".join(f"{x.name} {x.reason}" for x in unreached)
            raise ValueError(
                "the model must multiply matrices in operations that can be measured;"
                f" got {others or 'none'}"
            )
        if sensitivities and not is_partial:
            layers = [row.layer for row in rows if not row.is_backward]
            chosen = groups_of(layers, groups)
            found = measure_outputs(runs, recorder.recipes, chosen, quiet)
    return LayerReport(
        type(model).__name__,
        tuple(recorder.recipes),
        device,
        target,
        rows,
        found.rows(rows),
        found.whole,
        found.failures,
        unreached,
        found.estimated_seconds,
        is_partial or found.is_partial,
    )


def _in_training(model: nn.Module) -> list[str]:
    """Return the layers that compute something else in training mode, and are in it."""
    return [
        name or type(module).__name__
        for name, module in model.named_modules()
        if module.training and isinstance(module, _OF_TRAINING)
    ]
