"""Makes docs/explorer/core.js: the C of the explorer of numbers, and what it is told.

`python -m tools.explorer` compiles docs/explorer/source with clang and wasm-ld.
"""
