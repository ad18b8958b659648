"""Plants faults one by one and says which tests find them.

    python -m tools.mutants --former REVISION [--count N] [--seed N] [--work FOLDER]

A fault changes one token of C, Cython or Python: `<` becomes `<=`, `+` becomes `-`, 3
becomes 4. The plain tier of this checkout runs on it, with what is not committed. Where
it finds nothing, the plain tier of REVISION runs on the same fault: its tests/ and
pyproject.toml beside all else of this checkout. What the first finds counts as found by
the former tier too.

The faults are drawn by the seed, as many of each subject. A draw is discarded if it
does not compile, or if every object file stays as it was. Tests that fail without a
fault are left out. So are those that look at the text of the sources: they fail where a
comment is new.

The work is done in copies under --work, which are made once. After each fault,
results.json there is written: the same command goes on where it was interrupted, and a
larger --count adds faults. The Python that runs this has NumPy, Cython, setuptools and
what the tests need. One such program at a time can use a folder.
"""
