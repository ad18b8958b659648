"""The environment variables that a process takes its precision from."""

VARIABLE = "TF32DTYPE_MATMUL_PRECISION"
#: The options of the precision, separated by commas. If the variable is set, even if
#: empty, the precision also applies to BLAS calls.
BLAS_VARIABLE = "TF32DTYPE_BLAS"
