"""The environment variables that a process takes its precision from."""

VARIABLE = "TF32DTYPE_MATMUL_PRECISION"
#: What goes with it, words with commas between; set: of BLAS's products too.
BLAS_VARIABLE = "TF32DTYPE_BLAS"
