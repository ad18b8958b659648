"""Record the results of a GPU's tensor cores, and compare them with the models.

`python -m tools.tensor_core_recorder --out DIR` records results on a GPU (command.py).
Only launch.py needs a GPU.
"""
