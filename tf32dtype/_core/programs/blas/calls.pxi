# Calls of BLAS for tests of src/programs/blas: registers and stack as in the ABI, from
# a list of arguments.

from tf32dtype._core.programs.blas.blas cimport *

cdef enum:
    MOST_WORDS = 32
    IN_REGISTERS = 6  # x86-64's


cdef class BlasCall:
    """A call of BLAS: a symbol and its arguments.

    Parameters
    ----------
    symbol : str
        Name of the function to call.
    words : list
        Integers and pointers in order. An int is passed by value, with 64 bits. The
        address of an array or bytes object is passed.
    floating : sequence of float
        Floating-point arguments that are passed by value, at most two.

    Raises
    ------
    LookupError
        If the symbol does not name a product that precisions affect.
    """

    cdef tf_blas_name name
    cdef tf_blas_arguments arguments
    cdef int64_t words[MOST_WORDS]
    cdef double floating[2]
    cdef char returned[16]
    cdef object alive  # what words point to
    cdef object products
    cdef MatmulSpec spec

    def __cinit__(self, str symbol, list words, floating=()):
        cdef float single
        if tf_blas_read_name(symbol.encode(), &self.name) < 0:
            raise LookupError(f"{symbol!r} is not a supported BLAS function")
        if len(words) > MOST_WORDS:
            raise ValueError(f"call must have at most {MOST_WORDS} arguments; got {len(words)}")
        for i, word in enumerate(words):
            if isinstance(word, int):
                self.words[i] = word
            elif isinstance(word, bytes):
                self.words[i] = <int64_t><const char *>word
            else:
                self.words[i] = word.ctypes.data
        self.alive = words
        for i, number in enumerate(floating):
            if self.name.type in b"sc":  # herk's, of the latter
                single = number
                memcpy(&self.floating[i], &single, sizeof(single))
            else:
                self.floating[i] = number
        self.arguments.registers = self.words
        self.arguments.in_registers = IN_REGISTERS
        self.arguments.stack = self.words + IN_REGISTERS
        self.arguments.floating = self.floating
        self.arguments.returned = self.returned

    @property
    def named(self):
        """Return the parts of the symbol: routine, type, cblas, wide, sub, wider."""
        return (tf_blas_routine_name(self.name.routine).decode(), chr(self.name.type),
                bool(self.name.cblas), bool(self.name.wide), bool(self.name.sub),
                self.name.wider)

    def compute(self, MatmulSpec spec):
        """Compute the products; return the status and 16 bytes of a return value."""
        self.spec = spec
        tf_blas_begin_stops(False)
        status = tf_blas_take_apart(&self.name, &self.arguments, compute_product,
                                    <void *>self)
        tf_blas_end_stops()
        return status, <bytes>self.returned[:16]

    def measure(self):
        """Return the status, and each product's shape, multiply-adds and operands."""
        self.products = []
        status = tf_blas_take_apart(&self.name, &self.arguments, measure_product,
                                    <void *>self)
        return status, self.products


cdef int compute_product(void *context, const tf_blas_product *product) noexcept:
    cdef tf_blas_product chosen = product[0]
    chosen.products = (<BlasCall>context).spec.mode.products
    return tf_blas_compute(&(<BlasCall>context).spec.fields.precision, &chosen)


cdef int measure_product(void *context, const tf_blas_product *product) noexcept:
    cdef BlasCall call = <BlasCall>context
    call.products.append((
        (product.m, product.n, product.k), tf_blas_multiply_adds(product),
        operand_in_full(&product.a, product.type, 0),
        operand_in_full(&product.b, product.type, 1)))
    return 0


cdef object operand_in_full(const tf_blas_matrix *x, char type, int axis):
    """Return an operand as a full matrix, read line by line along k."""
    cdef npy_intp lines = x.columns if axis else x.rows
    cdef npy_intp k = x.rows if axis else x.columns
    cdef bint is_complex = type == b"c" or type == b"z"
    found = np.empty((2, lines, k))
    cdef double *out = <double *>cnp.PyArray_DATA(found)
    cdef npy_intp i
    for i in range(lines):
        tf_blas_line(x, type, axis, i, out + i * k, out + (lines + i) * k)
    full = found[0] + 1j * found[1] if is_complex else found[0]
    return full.T if axis else full
