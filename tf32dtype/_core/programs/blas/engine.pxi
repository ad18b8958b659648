# Intercept BLAS calls of any library in the process: functions of
# src/programs/blas/engine.h for Python.

import _signal

from tf32dtype._core.programs.arithmetic.arithmetic cimport *
from tf32dtype._core.programs.blas.blas cimport *
from tf32dtype._core.programs.call_sites cimport *
from tf32dtype._core.programs.programs cimport *

#: Whether a product was emulated, and why not, in the order of `enum tf_blas_fate`.
fates = ("emulated", "emulated otherwise", "no precision", "float64", "complex", "dot", "short",
         "outside", "foreign thread", "no memory")
#: Dtypes, and kinds of named counts, in the order of src/programs/blas/counts.h.
blas_types = ("float32", "float64", "complex64", "complex128")
named_kinds = ("lapack", "solve", "loop")
assert len(fates) == TF_FATES and len(blas_types) == TF_BLAS_TYPES


def blas_available():
    """Return whether calls of BLAS can be intercepted on this platform."""
    return bool(tf_blas_is_available())


def frames_are_known():
    """Return whether call sites can be found in this version of Python."""
    return bool(tf_frames_are_known())


cdef int is_interrupt_waiting() noexcept with gil:
    """Return whether Ctrl-C was pressed, and KeyboardInterrupt is not yet raised."""
    if not PyOS_InterruptOccurred():
        return 0
    PyErr_SetInterrupt()  # set again, because the query has cleared it
    return 1


def blas_begin(bint lapack=False):
    """Intercept calls of BLAS until `blas_end` is called as often as this function.

    Raises
    ------
    MemoryError
        If memory cannot be allocated.
    RuntimeError
        If `lapack` is true, and the system does not allow changes to code.
    """
    if tf_blas_begin() < 0:
        raise MemoryError("cannot allocate memory to intercept calls of BLAS")
    if (PyThread_get_thread_ident() == main_thread
            and _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler):
        tf_interrupts_count(is_interrupt_waiting)
    if lapack and tf_blas_enter_lapack() < 0:
        tf_blas_end()
        raise RuntimeError(
            "lapack=True cannot be used: the system forbids changes to LAPACK's code")


def blas_end():
    tf_blas_end()


def blas_lost():
    """Return how many products the library computed itself for lack of memory."""
    return tf_blas_lost()


def blas_counts():
    """Return counts that are not 0: (fate, dtype, routine, calls, multiply-adds)."""
    cdef tf_blas_counts *total = <tf_blas_counts *>malloc(sizeof(tf_blas_counts))
    cdef tf_blas_count_t *count
    if total == NULL:
        raise MemoryError
    tf_blas_total(total)
    count = &total.of[0][0][0]
    found = []
    for fate in fates:
        for dtype in blas_types:
            for routine in range(TF_BLAS_ROUTINES):
                if count.calls:
                    found.append((fate, dtype, tf_blas_routine_name(routine).decode(),
                                  count.calls, count.multiply_adds))
                count += 1
    free(total)
    return found


def named_counts():
    """Return calls that precisions do not affect: (kind, name, calls, seconds)."""
    found = {}
    cdef const tf_named_count_t *count
    cdef int i = 0
    while True:
        count = tf_named_counts(i)
        if count == NULL:
            return [(*key, *value) for key, value in found.items() if value[0]]
        if count.is_ready:
            key = named_kinds[count.kind], count.name.decode()
            calls, seconds = found.get(key, (0, 0.0))
            found[key] = calls + count.calls, seconds + 1e-9 * count.nanoseconds
        i += 1


def count_loops(ufunc, str name, str but="", *, str only="", bint with_blas=True):
    """Count the calls of a ufunc's loops under a name, permanently.

    "{}" in the name becomes the name of the dtype. Dtypes whose characters are in `but`
    are not counted; with `only`, only those in it are. Without `with_blas`, calls that
    use BLAS are not counted."""
    cdef int signature[8]
    cdef cnp.PyUFuncGenericFunction found, counting
    cdef ufunc_object *fields = <ufunc_object *><PyObject *>ufunc
    cdef int i, number
    for number, types in enumerate(ufunc.types):
        dtypes = [np.dtype(t) for t in types.replace("->", "")]
        if (dtypes[0].char in but or (only and dtypes[0].char not in only)
                or len(dtypes) > 8):
            continue
        for i, dtype in enumerate(dtypes):
            signature[i] = dtype.num
        label = name.format(dtypes[0].name).encode()
        found = fields.functions[number]
        counting = <cnp.PyUFuncGenericFunction>tf_blas_counting(
            <void *>found, TF_LOOP_CALL, label, with_blas)
        if counting != NULL:
            cnp.PyUFunc_ReplaceLoopBySignature(ufunc, counting, signature, &found)


# -- call sites ------------------------------------------------------------------------

cdef class _Texts:
    """A list of strings as a C array that ends with NULL."""

    cdef list kept
    cdef const char **all

    def __cinit__(self, texts):
        cdef size_t i
        self.kept = [text.encode() for text in texts]
        self.all = <const char **>malloc((len(self.kept) + 2) * sizeof(char *))
        if self.all == NULL:
            raise MemoryError
        for i in range(<size_t>len(self.kept)):
            self.all[i] = self.kept[i]
        self.all[<size_t>len(self.kept)] = self.all[<size_t>len(self.kept) + 1] = NULL

    def __dealloc__(self):
        free(self.all)


def set_source_folders(libraries, users, own):
    """Set the folders by which files of libraries and of the user are distinguished.

    Files in `libraries` and not in `users` belong to libraries. Frames of files in
    `own`, those of this package, are skipped in the search for a call site."""
    cdef _Texts a = _Texts(libraries), b = _Texts(users), c = _Texts(own)
    if tf_frames_set_folders(<const char *const *>a.all, <const char *const *>b.all,
                             <const char *const *>c.all) < 0:
        raise MemoryError


def set_regions(only, but, *, bint obey=True):
    """Set the regions of code: code in `only`, if it is not empty, and not in `but`.

    Both have pairs: a file or the end of its path, and a function or "". With `obey`,
    the precision that a program was started with affects only products in the
    regions."""
    cdef _Texts a = _Texts([text for pair in only for text in pair])
    cdef _Texts b = _Texts([text for pair in but for text in pair])
    if tf_frames_set_regions(<const char *const (*)[2]>a.all,
                             <const char *const (*)[2]>b.all) < 0:
        raise MemoryError
    if obey:
        tf_plans_obey_regions(bool(only or but))


def share_counts():
    """Share the counts with other processes while this process runs.

    Other processes need the returned path in TF32DTYPE_BLAS_COUNTS. The path is empty
    if counts cannot be shared."""
    cdef char path[64]
    return path.decode() if tf_counts_share(path, sizeof(path)) == 0 else ""


def count_call(str name):
    """Count a call that precisions do not affect, under a name."""
    cdef tf_named_count_t *count
    if tf_counts_prepare() == 0:
        count = tf_named_count(TF_LOOP_CALL, name.encode())
        if count != NULL:
            tf_named_call(count, 0)


def watch_call_sites(npy_intp lines, *, bint whole=False, size_t bytes=1 << 30,
                 bint dots=True, bint lapack=False, bint regions=False,
                 bint operands=False):
    """Begin to record products by call site: see src/programs/blas/product_sites.h.

    With `regions`, record only products in the regions of `set_regions`. With
    `operands`, also record them by operand."""
    cdef tf_product_sites_wanted wanted
    wanted.lines, wanted.whole, wanted.bytes = lines, whole, bytes
    wanted.dots, wanted.lapack = dots, lapack
    wanted.is_inside, wanted.made = NULL, tf_follow_result
    if regions:
        wanted.is_inside = tf_frames_may_obey
    wanted.operands = operands
    wanted.name_operands = name_operands
    if tf_product_sites_begin(&tf_frames_finder, &wanted) < 0:
        raise MemoryError("cannot allocate memory to record call sites")


def stop_watching():
    tf_product_sites_end()


def calls_without_call_site():
    """Return how many calls were not recorded because the table was full."""
    return tf_calls_without_site()


def samples_left_out():
    """Return how many calls were not sampled for lack of memory."""
    return tf_samples_left_out()


cdef object _frame(const tf_source *source, int which):
    if source.file[which] == NULL:
        return None
    return (source.file[which].decode(), source.line[which],
            source.function[which].decode())


cdef object _lines(const double *numbers, const double *imaginary, npy_intp count,
                   npy_intp k, dtype):
    """Copy sampled lines to an array with one line per row."""
    cdef cnp.ndarray real = np.empty((count, k)), other
    memcpy(cnp.PyArray_DATA(real), numbers, count * k * sizeof(double))
    if imaginary == NULL:
        return real.astype(dtype)
    other = np.empty((count, k))
    memcpy(cnp.PyArray_DATA(other), imaginary, count * k * sizeof(double))
    out = np.empty((count, k), dtype)
    out.real, out.imag = real, other
    return out


def take_samples(size_t number):
    """Return the samples of a call site since the last call of this function.

    A sample is ((m, n, k), rows of A, columns of B, digests of both operands)."""
    cdef const tf_product_site *site = tf_product_sites(number)
    cdef tf_sample *sample = tf_take_samples(site) if site != NULL else NULL
    cdef tf_sample *following
    found = []
    dtype = blas_types["sdcz".index(chr(site.type))] if site != NULL else None
    while sample != NULL:
        found.append(((sample.m, sample.n, sample.k),
                      _lines(sample.a, sample.imaginary_a, sample.rows, sample.k, dtype),
                      _lines(sample.b, sample.imaginary_b, sample.columns, sample.k,
                             dtype).T,
                      (sample.digests[0], sample.digests[1])))
        following = sample.next
        tf_free_sample(sample)
        sample = following
    return found[::-1]


cdef dict _shapes(const tf_shape *shapes, int count):
    cdef int i
    return {(shapes[i].m, shapes[i].n, shapes[i].k): shapes[i].calls for i in range(count)
            if shapes[i].calls and shapes[i].m >= 0}


def blas_call_sites():
    """Return a dictionary for each call site, without its samples.

    `operands` has a list of dictionaries for each side, in the order of first use, or
    None if there are too many."""
    found = []
    numbers = {}
    cdef const tf_product_site *first
    cdef const tf_product_operand *operand
    cdef tf_product_site site
    cdef size_t position = 0
    while True:
        first = tf_product_sites(<size_t>len(found))
        if first == NULL:
            break
        tf_product_site_copy(first, &site)
        numbers[<size_t>first] = len(found)
        found.append({
            "user": _frame(&site.source, 0),
            "library": _frame(&site.source, 1),
            "object": site.object.decode(errors="replace"),
            "dtype": blas_types["sdcz".index(chr(site.type))],
            "routine": tf_blas_routine_name(site.routine).decode(),
            "calls": site.calls,
            "multiply_adds": site.multiply_adds,
            "seconds": site.seconds * site.calls / max(site.timed, 1),
            "shapes": _shapes(site.shapes, TF_SHAPES),
            "operands": [None if site.is_many[side] else [] for side in range(2)],
        })
    while True:
        operand = tf_product_operands(&position)
        if operand == NULL:
            break
        side = found[numbers[<size_t>operand.of]]["operands"][operand.side]
        if side is not None:
            side.append({
                "number": operand.number,
                "side": "AB"[operand.side],
                "rows": operand.rows,
                "columns": operand.columns,
                "digest": operand.digest,
                "name": "" if operand.name == NULL else operand.name.decode(),
                "address": <size_t>operand.data,
                "has_moved": bool(operand.has_moved),
                "is_named_buffer": bool(operand.is_named_buffer),
                "calls": operand.calls,
                "multiply_adds": operand.multiply_adds,
                "shapes": _shapes(operand.shapes, TF_OPERAND_SHAPES),
            })
    for row in found:
        for side in filter(None, row["operands"]):
            side.sort(key=lambda one: one["number"])
    return found


# -- the current precision ---------------------------------------------------------

cdef const tf_blas_mode *mode_here() noexcept:
    """Return the mode of the current context, or NULL (a tf_read_mode_fn)."""
    cdef tuple scopes
    cdef MatmulSpec spec
    try:
        scopes = precision_variable.get()
        if not scopes:
            return NULL
        spec = (<PrecisionScope>scopes[-1]).precision
        return spec.mode if spec is not None and spec.blas else &tf_no_mode
    except BaseException:
        return NULL


def publish_precision():
    """Tell the engine that the context of this thread has changed."""
    tf_modes_publish()


def count_scope(int more):
    """Tell the engine that a scope is created (1) or deleted (-1)."""
    tf_modes_count_scope(more)


tf_modes_prepare(mode_here)
tf_modes_take_over()


cdef class counted:
    """A function whose calls and time are counted under a name."""

    cdef object own
    cdef tf_named_count_t *count

    def __init__(self, own, str name):
        self.own = own
        self.count = tf_named_count(TF_LOOP_CALL, name.encode())

    def __call__(self, *args, **kwargs):
        began = perf_counter()
        try:
            return self.own(*args, **kwargs)
        finally:
            if self.count != NULL:
                tf_named_call(self.count, <uint64_t>(1e9 * (perf_counter() - began)))

    def __getattr__(self, name):
        return getattr(self.own, name)
