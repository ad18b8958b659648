# Compute NumPy's own products in a chosen precision.
#
# From the first use of a precision on, the loops of np.matmul, matvec, vecmat and
# vecdot for float32, float64, complex64 and complex128 are ours. While any thread uses
# a precision, such a loop looks it up in the context of its call. If the context has no
# precision, the loop calls NumPy's loop, so that bits and flags are those of NumPy.

from tf32dtype._core.runtime cimport *
from tf32dtype._core.formats.formats cimport *
from tf32dtype._core.matmul.matmul cimport *
from tf32dtype._core.tensor_core.tensor_core cimport *
from tf32dtype._core.programs.blas.blas cimport *
from tf32dtype._core.programs.programs cimport *

def precisions():
    """Return all precisions as tuples.

    A tuple has the long name, the short name, the format, the number of components of
    an operand, and the number of split orders."""
    found = []
    cdef const tf_precision_row *row = tf_precisions
    while row.name != NULL:
        format = ("float16" if row.format == TF_FLOAT16 else
                  "float32" if row.format == TF_FLOAT32 else names[row.format])
        found.append((row.preset.decode(), row.name.decode(), format, row.parts,
                      row.split_orders))
        row += 1
    return found


cdef class MatmulSpec:
    """A precision: how to round operands, and for which dtypes. Immutable.

    Parameters
    ----------
    format : str
        Format of rounded operands: the name of a format, "float16" or "float32".
    rounding, scaling : int
        Values of `enum tf_rounding` and `enum tf_scaling`.
    parts, split_orders : int
        Number of components of a split operand, and number of split orders of products
        (default: 1, not split).
    saturates : bool
        Whether Inf counts as the largest value.
    float64, complex64 : bool
        Whether the precision also affects products of these dtypes. With both, it
        affects complex128, too.
    model : Model, optional
        The tensor core that computes the products.
    promote : int
        k after which the model's accumulators are added to others; 0 means never.
    scales_inside : bool
        Whether the model scales accumulators without rounding.
    continues : bool
        Whether the model's accumulators begin with the values of the result.
    silent : bool
        Whether no floating-point error is reported.
    exact : callable, optional
        Computes correctly rounded products: ``exact(a, b, out)`` writes products of
        stacks of matrices, and returns floating-point flags. With `blas`, it also
        computes single products, of two axes, in any thread that runs Python code. The
        arguments above then do not matter, except for float64 and complex64.
    blas : bool
        Whether the precision affects BLAS calls of other libraries, and BLAS calls that
        NumPy makes outside of its ufuncs.
    dots, lapack, min_size
        As in `struct tf_blas_mode`.
    call_sites : sequence, optional
        A plan, as tuples: (file, line) of the user or None; (file, line) of a library
        or None; the `MatmulSpec` for this call site or None; an operand or None. With a
        plan, the other arguments choose the products that it affects.
    otherwise : MatmulSpec, optional
        The precision at all other call sites of a plan (default: NumPy's own).
    """

    # Fields of a tensor core; without a model, only `precision` is used.
    cdef tf_device fields
    cdef const tf_blas_mode *mode  # of these fields and the next ones
    cdef readonly bint float64
    cdef readonly bint complex64
    cdef readonly bint blas
    cdef readonly bint lapack
    cdef readonly bint scales_matrices  # each matrix of a stack has a scale
    cdef readonly object exact

    def __cinit__(self, str format, *, int rounding=0, int scaling=0, int parts=1,
                  int split_orders=1, bint saturates=False, bint float64=False,
                  bint complex64=False, model=None, int promote=0,
                  bint scales_inside=False, bint continues=False, bint silent=False,
                  exact=None, bint blas=False, bint dots=True, bint lapack=False,
                  npy_intp min_size=0, call_sites=None, MatmulSpec otherwise=None):
        cdef tf_blas_mode mode
        cdef MatmulSpec spec
        memset(&self.fields, 0, sizeof(self.fields))
        if model is not None:
            fill_device(&self.fields, model, promote, scales_inside, continues, silent,
                        format)
        if format == "float16":
            self.fields.precision.format = TF_FLOAT16
        elif format == "float32":
            self.fields.precision.format = TF_FLOAT32
        else:
            self.fields.precision.format = names.index(format)
        self.fields.precision.rounding = rounding
        self.fields.precision.scaling = scaling
        self.fields.precision.parts = parts
        self.fields.precision.split_orders = split_orders
        self.fields.precision.saturates = saturates
        self.float64 = float64
        self.complex64 = complex64
        self.scales_matrices = scaling == TF_SCALED_MATRIX
        self.exact = exact
        self.blas = blas
        self.lapack = lapack
        memset(&mode, 0, sizeof(mode))
        memcpy(&mode.device, &self.fields, sizeof(mode.device))
        mode.float64, mode.complex64 = float64, complex64
        mode.dots, mode.lapack, mode.min_size = dots, lapack, min_size
        if exact is not None and blas:
            mode.products = products_by(exact)
        if call_sites is not None:
            specs = [*(site[2] for site in call_sites), otherwise]
            mode.plan = _new_plan(call_sites, [_address_of_mode(x) for x in specs])
            for spec in specs:
                if spec is not None and spec.exact is not None:
                    raise ValueError("a plan must not name precision 'exact', which"
                                     " applies to whole scopes")
                if spec is not None and spec.scales_matrices:
                    self.scales_matrices = True
        self.mode = tf_mode_kept(&mode)
        if self.mode == NULL:
            raise MemoryError


    def obeys_here(self):
        """Return whether the call site may use the precision."""
        return tf_blas_mode_here(self.mode, NULL, NULL) != NULL


cdef _address_of_mode(MatmulSpec spec):
    return <size_t>(NULL if spec is None else spec.mode)


cdef const void *_new_plan(places, facts) except NULL:
    """Return a plan (programs/plans.h).

    `places` has the user's line and the library's of each place, as (file, number) or
    None. `facts` has the address of a mode or of settings for each place, and at its end
    the address for all other places.
    """
    cdef size_t i, count = <size_t>len(places)
    cdef int j
    cdef const tf_plan *plan = NULL
    cdef tf_planned *all = <tf_planned *>calloc(count + 1, sizeof(tf_planned))
    if all == NULL:
        raise MemoryError
    names = [[line and line[0].encode() for line in place[:2]] for place in places]
    for i in range(count):
        for j in range(2):
            if names[i][j] is not None:
                all[i].file[j] = names[i][j]
                all[i].line[j] = places[i][j][1]
        if places[i][3] is not None:
            operand = places[i][3]
            all[i].number, all[i].side = operand.number, "AB".index(operand.side)
            all[i].rows, all[i].columns = operand.rows, operand.columns
            all[i].digest = int(operand.digest or "0", 16)
        all[i].what = <const void *><size_t>facts[i]
    plan = tf_plan_new(all, count, <const void *><size_t>facts[count])
    free(all)
    if plan == NULL:
        raise MemoryError
    return plan


cdef class PrecisionScope:
    """A precision that is set in a context (None: NumPy's own), and its owner."""

    cdef readonly object owner
    cdef readonly MatmulSpec precision

    def __cinit__(self, owner, MatmulSpec precision):
        self.owner = owner
        self.precision = precision


# The open scopes of a context, the innermost last.
precision_variable = ContextVar("tf32dtype_precision", default=())

# The precision outside of all scopes, as the only item of a list. Without a GIL, a
# thread may read an item of a list while another thread sets it, unlike a C variable.
cdef list default_precision = [None]


def set_default_precision(MatmulSpec precision):
    """Set the precision outside of all scopes; None means NumPy's own."""
    default_precision[0] = precision
    tf_modes_set_process(NULL if precision is None or not precision.blas else
                         precision.mode)


def set_outer_precision(bint outer):
    """Mark the precision of the process as the one that a program was started with.

    Precisions that the program sets itself are counted separately, and regions do not
    affect them. With `outer` false, remove the mark."""
    cdef tf_blas_mode mode
    cdef MatmulSpec precision = default_precision[0]
    if not outer or precision is None:
        tf_blas_set_outer_mode(NULL)
        return
    mode = precision.mode[0]
    mode.outer = True
    precision.mode = tf_mode_kept(&mode)
    set_default_precision(precision)
    tf_blas_set_outer_mode(precision.mode)


cpdef MatmulSpec current_precision():
    """Return the precision of the current context, or None."""
    cdef tuple scopes = precision_variable.get()
    if scopes:
        return (<PrecisionScope>scopes[-1]).precision
    return <MatmulSpec>default_precision[0]


# -- the loops -------------------------------------------------------------------

cdef enum:
    PRODUCTS = 4
    DTYPES = 4
    LOOPS = 16
    FLOAT32 = 0
    FLOAT64 = 1
    COMPLEX64 = 2
    COMPLEX128 = 3

cdef tuple product_names = ("matmul", "vecdot", "matvec", "vecmat")   # enum product
cdef int *dtype_numbers = [cnp.NPY_FLOAT, cnp.NPY_DOUBLE, cnp.NPY_CFLOAT,
                           cnp.NPY_CDOUBLE]
# Kinds of the real numbers; for complex dtypes, of real and imaginary parts.
cdef int *dtype_kinds = [TF_FLOAT32, TF_FLOAT64, TF_FLOAT32, TF_FLOAT64]
cdef char *type_letters = b"sdcz"

ctypedef void (*loop_function)(char **, npy_intp *, npy_intp *, void *) noexcept nogil

cdef extern from *:
    """
    #include <stdatomic.h>

    static atomic_int tf_precision_users;

    static void tf_count_precision_users(int more)
    {
        atomic_fetch_add(&tf_precision_users, more);
    }

    /* What ours stand before: NumPy's loops, or those of somebody who came before us. */
    static PyUFuncGenericFunction tf_replaced_loops[16];

    /* A loop gets the data of the one it replaces, so that each has to know which it
     * is: product * DTYPES + dtype. */
    static void (*tf_any_loop)(int, char **, npy_intp *, npy_intp *, void *);
    #define LOOP(number)                                                           \\
        static void tf_loop_##number(char **data, npy_intp const *dimensions,      \\
                                     npy_intp const *strides, void *own)           \\
        {                                                                          \\
            if (!atomic_load_explicit(&tf_precision_users, memory_order_relaxed)) { \\
                tf_replaced_loops[number](data, dimensions, strides, own);         \\
            } else {                                                               \\
                tf_any_loop(number, data, (npy_intp *)dimensions,                  \\
                            (npy_intp *)strides, own);                             \\
            }                                                                      \\
        }
    LOOP(0) LOOP(1) LOOP(2) LOOP(3) LOOP(4) LOOP(5) LOOP(6) LOOP(7)
    LOOP(8) LOOP(9) LOOP(10) LOOP(11) LOOP(12) LOOP(13) LOOP(14) LOOP(15)
    #undef LOOP
    static PyUFuncGenericFunction tf_loops[] = {
        tf_loop_0, tf_loop_1, tf_loop_2, tf_loop_3, tf_loop_4, tf_loop_5,
        tf_loop_6, tf_loop_7, tf_loop_8, tf_loop_9, tf_loop_10, tf_loop_11,
        tf_loop_12, tf_loop_13, tf_loop_14, tf_loop_15,
    };

    /* matmul of float32 that asks for a precision whether NumPy's does or not. */
    static void tf_asking_loop(char **data, npy_intp const *dimensions,
                               npy_intp const *strides, void *own)
    {
        tf_any_loop(0, data, (npy_intp *)dimensions, (npy_intp *)strides, own);
    }

    /* NumPy copies an operand that `out` overlaps if the flags of operands say so. */
    static void tf_copy_operand_flags(PyObject *to, PyObject *from)
    {
        memcpy(((PyUFuncObject *)to)->op_flags, ((PyUFuncObject *)from)->op_flags,
               3 * sizeof(npy_uint32));
    }
    """
    void tf_copy_operand_flags(object to, object source)
    void (*tf_any_loop)(int, char **, npy_intp *, npy_intp *, void *) noexcept nogil
    cnp.PyUFuncGenericFunction tf_loops[]
    cnp.PyUFuncGenericFunction tf_replaced_loops[]
    cnp.PyUFuncGenericFunction tf_asking_loop
    void tf_count_precision_users(int)


cdef tf_blas_product product_of(const matrices *x, char type) noexcept nogil:
    """Describe the first product of a stack as a call of BLAS."""
    cdef tf_blas_product product
    memset(&product, 0, sizeof(product))
    product.type, product.m, product.n, product.k = type, x.m, x.n, x.k
    product.a.data, product.b.data = <const char *>x.a.data, <const char *>x.b.data
    memcpy(product.a.strides, x.a.strides, sizeof(product.a.strides))
    memcpy(product.b.strides, x.b.strides, sizeof(product.b.strides))
    product.a.rows, product.a.columns = x.m, x.k
    product.b.rows, product.b.columns = x.k, x.n
    return product


cdef enum:
    BY_MATRIX_UNITS = 1
    EXACTLY = 2


cdef int find_spec(int dtype, const matrices *x, tf_device *chosen,
                   int *fate) noexcept with gil:
    """Return how a precision computes a product of a dtype; -1 after an error.

    0 means that it does not affect the product."""
    # An earlier loop of this call failed. NumPy continues, but nothing may be written.
    if PyErr_Occurred() != NULL:
        return -1
    cdef MatmulSpec spec = current_precision()
    cdef const tf_blas_mode *mode
    cdef tf_blas_product product
    cdef tf_operands_seen seen
    memset(&seen, 0, sizeof(seen))
    if spec is None:
        return 0
    mode = spec.mode
    if mode.plan != NULL:
        product = product_of(x, type_letters[dtype])
        seen.product = &product
    if tf_blas_fate_of(&mode, NULL, &seen, type_letters[dtype], x.m, x.n, x.k):
        return 0
    chosen[0] = mode.device
    fate[0] = tf_blas_fate_of_obeying(spec.mode)
    if tf_blas_is_watched():  # the watched BLAS does not see products of our loops
        count_call("products in the program's own precision: own")
    return BY_MATRIX_UNITS if spec.exact is None else EXACTLY


cdef object stack_of(const tf_matrix *matrix, npy_intp count, npy_intp rows,
                     npy_intp columns, int dtype):
    """Return matrices of a loop as an array of shape (count, rows, columns)."""
    cdef npy_intp *shape = [count, rows, columns]
    cdef npy_intp *strides = [matrix.step, matrix.strides[0], matrix.strides[1]]
    return cnp.PyArray_New(np.ndarray, 3, shape, dtype_numbers[dtype], strides, matrix.data,
                           0, cnp.NPY_ARRAY_WRITEABLE, None)


cdef void multiply_exactly(int dtype, const matrices *x, bint conjugates,
                           unsigned *flags) noexcept with gil:
    """Compute a product by `exact` of the current precision; set its exception."""
    error = None
    try:
        a = stack_of(&x.a, x.count, x.m, x.k, dtype)
        b = stack_of(&x.b, x.count, x.k, x.n, dtype)
        c = stack_of(&x.c, x.count, x.m, x.n, dtype)
        flags[0] = current_precision().exact(a.conj() if conjugates else a, b, c)
    except BaseException as raised:
        error = raised
    if error is not None:  # NumPy sees the exception as it sees that of a stopped call
        PyErr_SetObject(type(error), error)


cdef int blas_routine(const matrices *x) noexcept nogil:
    """Return the BLAS routine for a product of this shape."""
    if x.m == 1 and x.n == 1:
        return TF_BLAS_DOT
    return TF_BLAS_GEMV if x.m == 1 or x.n == 1 else TF_BLAS_GEMM


cdef void any_loop(int number, char **data, npy_intp *dimensions, npy_intp *strides,
                   void *own) noexcept nogil:
    cdef int kind = number // DTYPES, dtype = number % DTYPES, failed, chosen, fate
    cdef tf_device device
    cdef matrices x = matrices_of(kind, data, dimensions, strides)
    cdef double size
    cdef tf_conjugates conjugates
    cdef tf_fp saved
    cdef unsigned flags = 0
    chosen = 0 if tf_blas_is_aside() else find_spec(dtype, &x, &device, &fate)
    if chosen < 0:
        return
    if chosen == 0:
        (<loop_function><void *>tf_replaced_loops[number])(data, dimensions, strides, own)
        return
    x.a.kind = x.b.kind = x.c.kind = dtype_kinds[dtype]
    size = <double>x.m * x.n * x.k * x.count * (4 if dtype >= COMPLEX64 else 1)
    tf_blas_count(fate, type_letters[dtype], blas_routine(&x), size)
    if chosen == EXACTLY:
        saved = tf_fp_begin()
        multiply_exactly(dtype, &x, dtype >= COMPLEX64 and (kind == VECDOT or kind == VECMAT),
                         &flags)
        tf_fp_end(saved, flags)
        return
    if dtype == COMPLEX64 or dtype == COMPLEX128:
        conjugates.a = kind == VECDOT or kind == VECMAT
        conjugates.b = 0
        failed = tf_matmul_complex(&device.precision, conjugates, x.a, x.b, x.c, x.m,
                                   x.n, x.k, x.count, NULL)
    else:
        failed = tf_matmul(&device.precision, x.a, x.b, x.c, x.m, x.n, x.k, x.count)
    if failed < 0:
        # NumPy sees the exception when it frees the iterator. Then the call fails, and
        # a result in a copy is not written to `out`.
        out_of_memory()


def replace_loops():
    """Replace the loops of NumPy's products by ours, permanently.

    They cannot be removed, because NumPy keeps loops that it has found, and a thread
    may be running one. While they are not used, they call the loops that they replaced.
    """
    cdef int signature[3]
    cdef int number, i
    for number in range(LOOPS):
        ufunc = getattr(umath, product_names[number // DTYPES])
        for i in range(3):
            signature[i] = dtype_numbers[number % DTYPES]
        # NumPy first stores its own loop at the given address. So our loop may be
        # called immediately.
        cnp.PyUFunc_ReplaceLoopBySignature(ufunc, tf_loops[number], signature,
                                           &tf_replaced_loops[number])


def use_loops(bint used):
    """Count the users of our loops, which look up a precision while there are any."""
    tf_count_precision_users(1 if used else -1)


# -- one product -----------------------------------------------------------------

cdef cnp.PyUFuncGenericFunction *own_loops = [tf_asking_loop]
cdef void *own_data = NULL
cdef char *own_types = [cnp.NPY_FLOAT, cnp.NPY_FLOAT, cnp.NPY_FLOAT]

tf_any_loop = any_loop

#: A matmul of float32 that uses the precision even while NumPy's np.matmul does not.
matmul = cnp.PyUFunc_FromFuncAndDataAndSignature(
    own_loops, &own_data, own_types, 1, 2, 1, cnp.PyUFunc_None, "matmul", NULL, 0,
    "(m?,k),(k,n?)->(m?,n?)")
tf_copy_operand_flags(matmul, umath.matmul)


def plan_of_product(a, b, out_dtype, MatmulSpec precision=None):
    """Return how a @ b would be computed, as all fields of `MatmulPlan` but the last.

    `a` and `b` have the shapes (l, m, k) and (l, k, n). The result is contiguous.
    """
    cdef tf_plan_of_product plan
    cdef tf_product *product = &plan.product
    cdef tf_tiles *tiles = &plan.tiles
    cdef tf_kernel kernel
    memset(&plan, 0, sizeof(plan))
    product.precision = (&as_they_are if precision is None
                         else &precision.fields.precision)
    product.a = matrix_of(a, real_kind(a))
    product.b = matrix_of(b, real_kind(b))
    product.count, product.m, product.k = a.shape
    product.n = b.shape[2]
    product.alpha = 1
    product.c.kind = real_kind(np.empty(0, out_dtype))
    product.c.strides[1] = out_dtype.itemsize
    product.c.strides[0] = product.n * out_dtype.itemsize
    product.c.step = product.m * product.c.strides[0]
    tf_plan_product(&plan)
    text = tf_text_of_way(plan.way)
    found = [text.name.decode(), text.reason.decode(), bool(plan.swapped), None, 1, None,
             None, product.count, 1]
    if plan.way in (TF_SMALL_MATRICES, TF_MACRO_KERNEL):
        kernel = plan.fastest.kernel
        found[3] = ("float32", "bfloat16 pairs", "int8 quads")[plan.fastest.packing]
        found[5] = (kernel.rows, kernel.columns)
    if plan.way > TF_SMALL_MATRICES:
        found[4] = plan.fastest.schedule.count
        found[6] = (tiles.rows, tiles.columns)
        found[7] = product.count * tiles.vertical * tiles.across
        found[8] = tiles.threads
    return tuple(found)


def free_buffers():
    """Release the memory that products keep between calls to the system.

    A thread that multiplies keeps a workspace of about 10 MB. Pages that small products
    do not touch use no physical memory. The workspace of a thread is released when the
    thread ends.

    See Also
    --------
    explain_matmul : Return what a matrix product does on this machine.

    Examples
    --------
    >>> import numpy as np, tf32dtype as td
    >>> a = np.ones((300, 300), td.bfloat16)
    >>> b = a @ a
    >>> td.free_buffers()
    """
    tf_workers_free()


def workspaces():
    """Return the number of workspaces of threads, in use or kept."""
    return tf_workspaces()
