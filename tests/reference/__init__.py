"""The slow truth: formats, rounding and arithmetic from their specifications.

Plain Python integers decide every bit here. Nothing is imported from the
package under test, and no table is shared with it, so that an error has to be
made twice to stay hidden.

formats     the facts of each format, as its specification prints them
codec       code -> exact value, exact value -> code, with flags
arithmetic  what integers and square roots settle exactly
functions   what needs a transcendental function, at rising precision
operations  name -> result code and flags, for one element
products    products of matrices in float32, under every precision
arrays      the same rounding for whole float64 arrays
ufuncs      name -> result codes and flags, for whole arrays
"""
