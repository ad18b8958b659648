/* Interprets a call of BLAS: the routine that a symbol names, and the arguments. */
#ifndef TF32DTYPE_PROGRAMS_BLAS_BLAS_CALL_H
#define TF32DTYPE_PROGRAMS_BLAS_BLAS_CALL_H

#include <stddef.h>
#include <stdint.h>

#include "matmul/matmul.h"

/* The routines whose products can run in a precision. */
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

/* The properties of a function of BLAS that its symbol names. */
struct tf_blas_name {
    int routine; /* enum tf_blas_routine */
    char type;   /* 's', 'd', 'c' or 'z', the type of the elements */
    int cblas;   /* C's interface: arguments by value, with an order of rows; otherwise
                    Fortran's, with all arguments by reference */
    int wide;    /* integers have 64 bits */
    int sub;     /* a dot that writes its result to the last argument */
    int wider;   /* a dot: 1 is dsdot (type 's', result float64), 2 is sdsdot */
};

static inline int tf_blas_is_complex(char type) { return type == 'c' || type == 'z'; }

/* Returns whether a routine is a dot product of two vectors. */
static inline int tf_blas_is_dot(int routine)
{
    return routine == TF_BLAS_DOT || routine == TF_BLAS_DOTC;
}

/* Reads a symbol: cblas_ROUTINE with no suffix, "64_" or "_64"; ROUTINE of Fortran's
 * interface with "_", "_64_", no suffix or "_64"; or ROUTINE in capitals, of Fortran's
 * interface. "scipy_" may precede each form except those with "_64", Fortran's without a
 * suffix, and capitals. Returns 0, or -1 if the symbol has none of these forms. */
int tf_blas_read_name(const char *symbol, struct tf_blas_name *name);

/* Returns a routine's name without its type ("gemm"). */
const char *tf_blas_routine_name(int routine);

/* The arguments of a call as the ABI passes them. The System V ABI for x86-64 and AAPCS64
 * number integers and pointers separately from floating-point values, so that reading them
 * needs no prototype. */
struct tf_blas_arguments {
    const int64_t *registers; /* the first integers and pointers */
    int in_registers;         /* how many: 6 or 8 */
    const int64_t *stack;     /* the integers and pointers after these, 8 bytes each */
    const double *floating;   /* the first two; a float is in the low 4 bytes */
    char *returned;           /* memory for the value of a dot without _sub; a complex
                                 value is a real part followed by an imaginary part */
};

/* The shapes of a matrix operand, m x k or k x n. Some elements of a triangular, symmetric
 * or Hermitian operand are not stored, or not read. */
enum tf_blas_shape { TF_FULL, TF_SYMMETRIC, TF_HERMITIAN, TF_TRIANGULAR };

struct tf_blas_matrix {
    const char *data;
    ptrdiff_t strides[2]; /* bytes, of the operand after transposition */
    ptrdiff_t rows, columns;
    int shape;     /* enum tf_blas_shape */
    int upper;     /* the upper triangle is read, else the lower one: of the operand
                      after transposition */
    int unit;      /* the diagonal of a triangular operand is 1, and is not read */
    int conjugate; /* complex elements count as conjugated */
    ptrdiff_t first; /* a block of a triangle begins with this row (A) or column (B) */
};

/* Sums of products that are not those of a tf_precision. Never changed or freed. */
struct tf_blas_products {
    /* Writes the sums A B to C, whose kind is that of its real components: float32 or
     * float64. Both operands are stored in full, whatever their member `shape` names.
     * Returns the flags to raise (runtime/fp_flags.h), or -1 with C unchanged. */
    int (*multiply)(const struct tf_blas_products *products, char type,
                    const struct tf_blas_matrix *a, const struct tf_blas_matrix *b,
                    const struct tf_matrix *c);
    /* Returns whether this thread can call `multiply`. */
    int (*can_multiply)(void);
    void *object; /* for `multiply` */
};

/* One product of a call: C = alpha A B + beta C; C may be a triangle. */
struct tf_blas_product {
    char type;              /* as in tf_blas_name */
    int routine;
    ptrdiff_t m, n, k;
    struct tf_blas_matrix a, b;
    char *c;
    ptrdiff_t c_strides[2]; /* bytes */
    int triangle;           /* 0 writes all of C, 'U' or 'L' only this triangle */
    int hermitian;          /* the diagonal of a triangle becomes real (herk, her2k) */
    int twice;              /* syr2k, her2k: adds alpha' B^T A^T, conjugated for her2k */
    double alpha[2], beta[2];
    int wider;              /* as in tf_blas_name: with 1, C is a float64; with 2, beta is
                               added to the sum, and the result is rounded once */
    const struct tf_blas_products *products; /* these make the sums; NULL: a tf_precision */
};

/* Returns the number of multiply-adds of a product: four times as many for complex
 * elements; only those within a triangle, of C or of an operand; 0 if alpha is 0. */
double tf_blas_multiply_adds(const struct tf_blas_product *product);

/* Calls `each` (with `context`) for each product of a call until it returns nonzero, and
 * returns that result, or 0. Returns -2, before any product, for arguments that BLAS would
 * refuse, so that the library itself reports them. There is no product where C does not
 * change: if m or n is 0 (for a matrix times a vector also k), or if alpha or k is 0 and
 * beta is 1. A dot always is one product, with k = 0 if there is nothing to sum. */
typedef int tf_blas_each_fn(void *context, const struct tf_blas_product *product);
int tf_blas_take_apart(const struct tf_blas_name *name,
                       const struct tf_blas_arguments *arguments, tf_blas_each_fn *each,
                       void *context);

/* Computes a product. The sums A B have tf_matmul's bits, or are those of `products`;
 * docs/reference/precision.md describes float64 and complex operands. alpha times the sums plus beta C are computed in
 * C's own type, with the roundings in blas_update.h. The result is as if operands were read
 * before C is written, also where C overlaps an operand, as in trmm. blas_triangle.h
 * describes the zeros of a triangular operand. Flags are raised as tf_matmul raises them. A
 * signal stops the product only as interrupts.h says. Returns 0; TF_STOPPED, with C
 * undefined; or -1, with C unchanged, if memory is short. With a reserve, memory is short
 * only if k is so large that one row and one column do not fit into it, or if C overlaps an
 * operand that does not fit. */
enum { TF_STOPPED = 1 };
int tf_blas_compute(const struct tf_precision *precision,
                    const struct tf_blas_product *product);

/* Writes line `index` of an operand along k, with all its elements, as float64: a row of A
 * (axis 0) or a column of B (axis 1). The imaginary components of complex elements go to
 * `imaginary`. */
void tf_blas_line(const struct tf_blas_matrix *x, char type, int axis, ptrdiff_t index,
                  double *out, double *imaginary);

#endif
