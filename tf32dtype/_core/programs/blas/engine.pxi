# Calls of BLAS by any library of the process: src/programs/blas/engine.h, as Python switches it.

import _signal

from tf32dtype._core.programs.arithmetic.arithmetic cimport *
from tf32dtype._core.programs.blas.blas cimport *
from tf32dtype._core.programs.call_sites cimport *
from tf32dtype._core.programs.programs cimport *

#: Why a product was emulated or not, in the order of `enum tf_blas_fate`.
fates = ("emulated", "emulated otherwise", "no precision", "float64", "complex", "dot", "short",
         "outside", "no memory")
#: In the order of src/programs/blas/counts.h.
blas_types = ("float32", "float64", "complex64", "complex128")
named_kinds = ("lapack", "solve", "loop")
assert len(fates) == TF_FATES and len(blas_types) == TF_BLAS_TYPES


def blas_available():
    """Whether calls of BLAS can be caught on this platform."""
    return bool(tf_blas_is_available())


def frames_are_known():
    """Whether call sites can be found on this Python."""
    return bool(tf_frames_are_known())


cdef int is_interrupt_waiting() noexcept with gil:
    """Whether Ctrl-C was pressed and Python has not raised KeyboardInterrupt yet."""
    if not PyOS_InterruptOccurred():
        return 0
    PyErr_SetInterrupt()  # asking has cleared it
    return 1


def blas_begin(bint lapack=False):
    """Catch calls of BLAS until `blas_end`; the two are counted.

    Raises
    ------
    MemoryError
        If there is no memory for it.
    RuntimeError
        If the products inside LAPACK are wanted, and the system does not allow that code
        is changed.
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
    """How many products were left to the library, since memory was short."""
    return tf_blas_lost()


def blas_counts():
    """What was made so far: (fate, dtype, routine, calls, multiply-adds), if any."""
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
    """Calls that no precision reaches: (kind, name, calls, seconds)."""
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
    """Count the calls of a ufunc's loops, but for dtypes of these characters, or of these
    only, under a name: "{}" in it becomes the dtype's. They stay counted. Without
    `with_blas` calls are left out that have BLAS make a product."""
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
    """A list of texts as C has it, which ends with NULL."""

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
    """Whose files are libraries': those in `libraries` and not in `users` (folders). Of
    those in `own` nobody asks who calls from there."""
    cdef _Texts a = _Texts(libraries), b = _Texts(users), c = _Texts(own)
    if tf_frames_set_folders(<const char *const *>a.all, <const char *const *>b.all,
                             <const char *const *>c.all) < 0:
        raise MemoryError


def set_regions(only, but, *, bint obey=True):
    """What regions there are: code of `only`, if that names any, and not of `but`. Both
    are pairs of a file, or how its path ends, and a function or "". If they `obey`, other
    products than theirs do not obey the precision that a program was started with."""
    cdef _Texts a = _Texts([text for pair in only for text in pair])
    cdef _Texts b = _Texts([text for pair in but for text in pair])
    if tf_frames_set_regions(<const char *const (*)[2]>a.all,
                             <const char *const (*)[2]>b.all) < 0:
        raise MemoryError
    if obey:
        tf_plans_obey_regions(bool(only or but))


def share_counts():
    """Share the counts with processes that have the returned path, while this process
    runs, in TF32DTYPE_BLAS_COUNTS. The path is empty if that cannot be."""
    cdef char path[64]
    return path.decode() if tf_counts_share(path, sizeof(path)) == 0 else ""


def count_call(str name):
    """Count a call that no precision reaches, under a name."""
    cdef tf_named_count_t *count
    if tf_counts_prepare() == 0:
        count = tf_named_count(TF_LOOP_CALL, name.encode())
        if count != NULL:
            tf_named_call(count, 0)


def watch_call_sites(npy_intp lines, *, bint whole=False, size_t bytes=1 << 30,
                 bint dots=True, bint lapack=False, bint regions=False,
                 bint operands=False):
    """Begin to gather products by call site: src/programs/blas/product_sites.h. With
    `regions` only those of `set_regions`; with `operands` also by operand."""
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
    """How many calls were not gathered, for want of room in the table of call sites."""
    return tf_calls_without_site()


def samples_left_out():
    """How many calls were not sampled, for want of memory."""
    return tf_samples_left_out()


cdef object _frame(const tf_source *source, int which):
    if source.file[which] == NULL:
        return None
    return (source.file[which].decode(), source.line[which],
            source.function[which].decode())


cdef object _lines(const double *numbers, const double *imaginary, npy_intp count,
                   npy_intp k, dtype):
    """A copy of sampled lines, one a row."""
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
    """The samples of a call site since the last time: ((m, n, k), rows of A, columns of B,
    digests of both operands)."""
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
    """Return a dictionary for each call site, without its samples. `operands` has a list of
    dictionaries for each side, in the order of their first use; None if it has too many."""
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


# -- the precision in force --------------------------------------------------------

cdef const tf_blas_mode *mode_here() noexcept:
    """As a tf_read_mode_fn."""
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
    """Tell it that a scope begins to live, or ends (-1)."""
    tf_modes_count_scope(more)


tf_modes_prepare(mode_here)
tf_modes_take_over()


cdef class counted:
    """A function whose calls, and their time, are counted under a name."""

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
