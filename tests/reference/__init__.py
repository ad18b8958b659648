"""The slow reference: formats, rounding and arithmetic from their specifications.

Plain Python integers decide every bit. This package imports nothing from the package
under test, and shares no table with it. An error must therefore be made twice to stay
hidden.

    formats      the facts of each format, as its specification prints them
    codec        code -> exact value, exact value -> code, with flags
    arithmetic   operations that integers and square roots settle exactly
    functions    transcendental functions, evaluated at rising precision
    operations   name -> result code and flags, for one element
    matmul       float32 matrix products, in every precision
    codec_arrays the same rounding for whole float64 arrays
    ufuncs       name -> result codes and flags, for whole arrays
    exact        exact sums of numbers and products, each rounded once
    exact_arrays the same products, for whole matrices
"""
