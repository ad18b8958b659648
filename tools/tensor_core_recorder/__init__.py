"""What a GPU's tensor cores are asked, and how its answers are judged.

`python -m tools.tensor_core_recorder --out DIR` records them on a GPU
(command.py). Only launch.py needs one.
"""
