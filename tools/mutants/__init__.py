"""Plant faults one by one and report which tests find them.

    python -m tools.mutants --former REVISION [--count N] [--seed N] [--work FOLDER]

A fault changes one token of C, Cython or Python: `<` becomes `<=`, `+` becomes `-`, 3
becomes 4. The plain tier of this checkout, with uncommitted changes, runs on the fault.
If it finds nothing, the plain tier of REVISION runs on the same fault: tests/ and
pyproject.toml of REVISION, and all other files of this checkout. A fault that the first
tier finds counts as found by the former tier, too.

The seed determines the faults, which are equally many of each subject. A fault is
discarded if it does not compile, or if no object file changes. Tests that fail without
a fault are left out. Tests that read the text of the sources are left out, too, because
they fail if a comment is new.

Faults are planted in copies under --work, which are made once. results.json in this
folder is written after each fault. If you interrupt the command, the same command
resumes the work; a larger --count adds faults. The Python that runs this needs NumPy,
Cython, setuptools and the requirements of the tests. Only one such program at a time
can use a folder.
"""
