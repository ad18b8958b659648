"""CUDA: for now the golden run alone, which records what a GPU's tensor cores return.

    python -m tf32dtype.cuda.golden --out DIR

It needs CuPy (`pip install 'tf32dtype[cuda]'`), which is imported when a GPU is used,
and not before.
"""
