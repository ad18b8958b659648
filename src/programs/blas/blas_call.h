/* A call of BLAS, taken apart: which routine a symbol names, what its arguments mean. */
#ifndef TF32DTYPE_PROGRAMS_BLAS_BLAS_CALL_H
#define TF32DTYPE_PROGRAMS_BLAS_BLAS_CALL_H

#include <stddef.h>
#include <stdint.h>

#include "matmul/matmul.h"

/* Those whose products can obey a precision. */
enum tf_blas_routine {
    TF_BLAS_GEMM, /* gemm3m too */
    TF_BLAS_GEMM_BATCH,
    TF_BLAS_GEMM_BATCH_STRIDED,
    TF_BLAS_GEMMT, /* gemmtr too */
    TF_BLAS_SYMM,
    TF_BLAS_HEMM,
    TF_BLAS_SYRK,
    TF_BLAS_HERK,
    TF_BLAS_SYR2K,
    TF_BLAS_HER2K,
    TF_BLAS_TRMM,
    TF_BLAS_GEMV,
    TF_BLAS_SYMV,
    TF_BLAS_HEMV,
    TF_BLAS_TRMV,
    TF_BLAS_DOT,   /* dot, dotu */
    TF_BLAS_DOTC,
    TF_BLAS_ROUTINES
};

/* What a symbol says of the function that it names. */
struct tf_blas_name {
    int routine; /* enum tf_blas_routine */
    char type;   /* 's', 'd', 'c', 'z': of the numbers */
    int cblas;   /* arguments by value, with an order of rows; else Fortran's, all by
                    reference */
    int wide;    /* integers have 64 bits */
    int sub;     /* of dots: the result goes to the last argument */
    int wider;   /* of dots: 1 dsdot (type 's', result float64), 2 sdsdot */
};

static inline int tf_blas_is_complex(char type) { return type == 'c' || type == 'z'; }

/* Whether a routine sums products of two vectors into one number. */
static inline int tf_blas_is_dot(int routine)
{
    return routine == TF_BLAS_DOT || routine == TF_BLAS_DOTC;
}

/* Reads a symbol: cblas_ROUTINE with no suffix, "64_" or "_64"; ROUTINE of Fortran's
 * interface with "_", "_64_", none or "_64"; each of them, but for those with "_64" and
 * Fortran's without suffix, after "scipy_" too; or ROUTINE in capitals, Fortran's.
 * Returns 0, or -1 if it names none of these. */
int tf_blas_read_name(const char *symbol, struct tf_blas_name *name);

/* A routine's name without its type ("gemm"). */
const char *tf_blas_routine_name(int routine);

/* The arguments of a call as the ABI passes them. System V's for x86-64 and AAPCS64
 * number integers and pointers apart from floating-point numbers, so that this needs no
 * prototype. */
struct tf_blas_arguments {
    const int64_t *registers; /* the first integers and pointers */
    int in_registers;         /* how many: 6 or 8 */
    const int64_t *stack;     /* those that follow, 8 bytes each */
    const double *floating;   /* the first two; a float lies in the low 4 bytes */
    char *returned;           /* where the value of a function goes: dots without _sub;
                                 of complex ones both numbers, one after the other */
};

/* One matrix operand, m x k or k x n, as a product reads it. A triangular, symmetric or
 * Hermitian one has elements that are not stored, or not read. */
enum tf_blas_shape { TF_FULL, TF_SYMMETRIC, TF_HERMITIAN, TF_TRIANGULAR };

struct tf_blas_matrix {
    const char *data;
    ptrdiff_t strides[2]; /* bytes; those of the operand, a transpose taken in */
    ptrdiff_t rows, columns;
    int shape;     /* enum tf_blas_shape */
    int upper;     /* which triangle is read, seen in the operand as it is here: so a
                      transpose turns it round */
    int unit;      /* of a triangular one: its diagonal is 1, and not read */
    int conjugate; /* of complex numbers */
    ptrdiff_t first; /* of a part of a triangular one: the row of A, the column of B, that it
                        begins with */
};

/* C = alpha A B + beta C, of one product of a call; C may be a triangle. */
struct tf_blas_product {
    char type;              /* as in tf_blas_name */
    int routine;
    ptrdiff_t m, n, k;
    struct tf_blas_matrix a, b;
    char *c;
    ptrdiff_t c_strides[2]; /* bytes */
    int triangle;           /* 0 all of C; 'U' or 'L': what is written of it */
    int hermitian;          /* the diagonal of a triangle becomes real (herk, her2k) */
    int twice;              /* syr2k, her2k: + alpha' B^T A^T, of her2k conjugated */
    double alpha[2], beta[2];
    int wider;              /* as in tf_blas_name: 1, C is a float64; 2, beta is added to
                               the sum, which is rounded once */
};

/* The multiply-adds of a product, of complex numbers four times as many; of a triangle
 * (C's, or a triangular operand's) those that count; none where alpha is 0. */
double tf_blas_multiply_adds(const struct tf_blas_product *product);

/* Takes a call apart: its products, one after the other, to `each` (with `context`),
 * until that returns nonzero, which is returned. Returns -2, before any, for arguments
 * that BLAS would refuse: the library itself is to say so. Where C stays as it is (m or n
 * is 0; of a matrix times a vector also k; alpha or k is 0, and beta 1) there is no
 * product. Dots always have one, with k = 0 if there is nothing to sum. */
typedef int tf_blas_each_fn(void *context, const struct tf_blas_product *product);
int tf_blas_take_apart(const struct tf_blas_name *name,
                       const struct tf_blas_arguments *arguments, tf_blas_each_fn *each,
                       void *context);

/* Computes a product. The sums A B are tf_matmul's bits, of float64 and complex operands
 * as docs/reference/precision.md has it; then alpha times them, and beta C, in C's own type:
 * blas_update.h has each rounding. Operands count as read before C is written, also where
 * C overlaps them, as of trmm it does; of a triangular operand blas_multiply.h says what
 * the zeros beside the triangle do not do. Flags are raised as tf_matmul raises them. It
 * is stopped only as interrupts.h says. Returns 0; TF_STOPPED, with C undefined; or -1, with C
 * as it was, if memory is short: where there is a reserve, only if k is so great that one row
 * and one column do not fit into it, or C overlaps an operand that does not. */
enum { TF_STOPPED = 1 };
int tf_blas_compute(const struct tf_precision *precision,
                    const struct tf_blas_product *product);

/* Writes line `index` of an operand in full, along k, as float64: row of A (axis 0) or
 * column of B (axis 1); of complex numbers the real ones to `out`, the imaginary ones to
 * `imaginary`. */
void tf_blas_line(const struct tf_blas_matrix *x, char type, int axis, ptrdiff_t index,
                  double *out, double *imaginary);

#endif
