# Functions for the Python modules: codes of arrays and explicit rounding.

from tf32dtype._core.formats.formats cimport *

cdef object item_mask(tf_format f):
    """Return a mask of the bits of a stored element that belong to its code."""
    cdef uint32_t code = tf_magnitude_mask(f) | tf_sign_mask(f)
    return int(code << f.shift)


def bits_of(array):
    """Return the codes of an array as unsigned integers, with unused bits cleared."""
    cdef int format = tf_format_of_descr(<descr_t *><PyObject *>array.dtype)
    if format < 0:
        raise TypeError(
            f"array must be of a format of tf32dtype; got {array.dtype}")
    cdef tf_format f = tf_format_rows[format][0]
    unsigned = np.dtype(f"u{f.itemsize}")
    mask = item_mask(f)
    return array.view(unsigned) & unsigned.type(mask)


def from_bits_of(codes, int format, bint check):
    """Return a view of unsigned integers as a format.

    With `check`, integers with unused bits set raise a ValueError."""
    cdef tf_format f = tf_format_rows[format][0]
    mask = item_mask(f)
    if check:
        dirty = codes & ~codes.dtype.type(mask)
        if dirty.any():
            place = int(np.flatnonzero(dirty)[0])
            value = int(codes.reshape(-1)[place])
            raise ValueError(
                f"codes of {names[format]} must not have bits outside of"
                f" {mask:#0{2 + 2 * f.itemsize}x}; got"
                f" {value:#0{2 + 2 * f.itemsize}x}. Use dirty='ignore' to ignore them"
            )
    return codes.view(scalar_types[format])


def quantize_items(source, target, int rounding, int overflow, draws):
    """Round a contiguous, native array to an array of a format, float16 or float32.

    Return floating-point flags, without overflow if it saturates."""
    cdef int is_complex = 0, to_complex = 0
    cdef int from_kind = kind_of_descr(<descr_t *><PyObject *>source.dtype, &is_complex)
    cdef int to_kind = kind_of_descr(<descr_t *><PyObject *>target.dtype, &to_complex)
    cdef cnp.ndarray from_array = source
    cdef cnp.ndarray to_array = target
    cdef cnp.ndarray draw_array
    cdef const uint64_t *draw_items = NULL
    cdef char *from_items = cnp.PyArray_BYTES(from_array)
    cdef char *to_items = cnp.PyArray_BYTES(to_array)
    cdef npy_intp count = cnp.PyArray_SIZE(from_array)
    if (from_kind < 0 or is_complex or not 0 <= to_kind <= TF_FLOAT32 or to_complex
            or not target.dtype.isnative):
        raise TypeError(f"x must hold real numbers; got {source.dtype}, which cannot be"
                        f" rounded to {target.dtype}")
    if cnp.PyArray_SIZE(to_array) != count:
        raise ValueError(f"target must have {count} items, as source; got {target.size}")
    if draws is not None:
        draw_array = draws
        draw_items = <const uint64_t *>cnp.PyArray_BYTES(draw_array)
    cdef unsigned flags
    with nogil:
        flags = tf_quantize(from_kind, to_kind, from_items, to_items, count,
                            <tf_rounding>rounding, <tf_overflow>overflow, draw_items)
    return flags & ~TF_OVER if overflow == TF_OVERFLOW_SATURATE else flags


def report(unsigned flags, bytes where=b"cast"):
    """Report floating-point flags as NumPy does after a cast; see numpy.errstate."""
    tf_warn(flags, where)
