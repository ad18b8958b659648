"""Units of all GPUs, and the results of the slow reference."""

from functools import cache

import numpy as np

from tests.reference import matrix_units, tensor_core
from tools.tensor_core_recorder import instructions, recordings
from tools.tensor_core_recorder.probes import probes

CAPABILITIES = [(7, 0), (7, 5), (8, 0), (8, 9), (9, 0), (10, 0), (12, 0)]
UNITS = {
    (instructions.device_of(c), unit.name): unit
    for c in CAPABILITIES
    for unit in instructions.units(c)
}
DISTINCT = list({recordings.set_name(unit): unit for unit in UNITS.values()}.values())


def truth(model, a, b, c, mutation=tensor_core.RIGHT):
    """Return a model's results by the slow reference, as an evaluator of models."""
    found = matrix_units.dots(model, a.tolist(), b.tolist(), c.tolist(), mutation)
    return np.array(found, np.uint32)


asked = cache(probes)
