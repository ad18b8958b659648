"""Make docs/explorer/core.js: the explorer's C code and its tables.

`python -m tools.explorer` compiles docs/explorer/source with clang and wasm-ld.
"""
