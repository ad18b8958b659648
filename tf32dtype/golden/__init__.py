"""The golden run: what a GPU's tensor cores are asked, and how its answers are judged.

None of this needs a GPU; `tf32dtype.cuda.golden` runs it on one.
"""
