/* Uses the components of NumPy's C interface that only C can use: see numpy_glue.h. */
#include "numpy_glue.h"

#define PY_ARRAY_UNIQUE_SYMBOL tf32dtype_numpy_glue_ARRAY_API
#include <numpy/arrayobject.h>

#include "formats/byte_tables.h"
#include "runtime/copies.h"
#include "formats/scalar_ops.h"
#include "ufuncs/minmax.h"
#include "matmul/matmul.h"
#include "objects.h"
#include "ufuncs/sort.h"
#include "runtime/stops.h"

PyArray_DTypeMeta tf_dtypes[TF_FORMAT_COUNT];
PyArray_DTypeMeta tf_dtype_base;
PyArray_DTypeMeta tf_exact_dtype;
PyArray_DTypeMeta tf_dtype_carrier;

/* -- class objects ------------------------------------------------------------------ */

static void prepare(PyArray_DTypeMeta *class_, const char *name, PyTypeObject *base)
{
    PyTypeObject *type = (PyTypeObject *)class_;
    Py_SET_REFCNT((PyObject *)type, 1);
    Py_SET_TYPE((PyObject *)type, &PyArrayDTypeMeta_Type);
    type->tp_name = name;
    type->tp_base = base;
    type->tp_basicsize = sizeof(_PyArray_LegacyDescr);
    type->tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE;
}

static tf_integer_sort *integer_sort(int type)
{
    PyArray_Descr *descr = PyArray_DescrFromType(type);
    tf_integer_sort *sort = PyDataType_GetArrFuncs(descr)->sort[NPY_QUICKSORT];
    Py_DECREF(descr);
    return sort;
}

/* Returns whether NumPy uses an instruction set of the CPU. */
static int numpy_uses(const char *feature)
{
    PyObject *module = PyImport_ImportModule("numpy._core._multiarray_umath");
    PyObject *features = module ? PyObject_GetAttrString(module, "__cpu_features__") : NULL;
    PyObject *found = features ? PyMapping_GetItemString(features, feature) : NULL;
    const int uses = found && PyObject_IsTrue(found) == 1;
    Py_XDECREF(found);
    Py_XDECREF(features);
    Py_XDECREF(module);
    PyErr_Clear();
    return uses;
}

int tf_dtype_base_ready(void)
{
    if (_import_array() < 0) {
        return -1;
    }
    /* With other instruction sets NumPy's sort of int16 has no vectors. */
    const int is_fast = numpy_uses("AVX512_ICL") || numpy_uses("ASIMD");
    tf_sort_integers_by(is_fast ? integer_sort(NPY_INT16) : NULL, integer_sort(NPY_INT32),
                        integer_sort(NPY_INT64));
    prepare(&tf_dtype_base, "tf32dtype.ReducedPrecisionDType", &PyArrayDescr_Type);
    tf_dtype_base.flags = NPY_DT_ABSTRACT;
    tf_dtype_base.type_num = -1;
    return PyType_Ready((PyTypeObject *)&tf_dtype_base);
}

int tf_dtype_carrier_ready(reprfunc repr)
{
    PyTypeObject *type = (PyTypeObject *)&tf_dtype_carrier;
    prepare(&tf_dtype_carrier, "tf32dtype.dtypes.CastCarrier", &PyArrayDescr_Type);
    type->tp_flags = Py_TPFLAGS_DEFAULT;
    type->tp_repr = repr;
    type->tp_str = repr;
    return PyType_Ready(type);
}

int tf_dtype_ready(int format, const char *name, newfunc new_, PyMethodDef *methods,
                   PyGetSetDef *getset)
{
    PyTypeObject *type = (PyTypeObject *)&tf_dtypes[format];
    prepare(&tf_dtypes[format], name, (PyTypeObject *)&tf_dtype_base);
    type->tp_flags = Py_TPFLAGS_DEFAULT;
    type->tp_new = new_;
    type->tp_methods = methods;
    type->tp_getset = getset;
    if (PyType_Ready(type) < 0) {
        return -1;
    }
    /* Any methods but np.dtype's, which NumPy refuses in a class without a type number. */
    type->tp_repr = PyBaseObject_Type.tp_repr;
    type->tp_str = PyBaseObject_Type.tp_str;
    return 0;
}

int tf_exact_dtype_ready(reprfunc repr)
{
    PyTypeObject *type = (PyTypeObject *)&tf_exact_dtype;
    prepare(&tf_exact_dtype, "tf32dtype.dtypes.exact_number", &PyArrayDescr_Type);
    type->tp_repr = repr;
    type->tp_str = repr;
    return PyType_Ready(type);
}

/* Makes the descriptor from that of float32, because its items have the size of float32. */
int tf_exact_dtype_make_descr(void)
{
    PyArray_Descr *descr = PyArray_DescrNewFromType(NPY_FLOAT);
    if (!descr) {
        return -1;
    }
    descr->typeobj = tf_exact_dtype.scalar_type;
    Py_INCREF(descr->typeobj);
    descr->kind = 'V';
    descr->byteorder = '|';
    descr->type_num = -1;
    /* The scalar type cannot hold an item: elements become Python floats. */
    descr->flags = NPY_USE_GETITEM | NPY_USE_SETITEM;
    tf_exact_dtype.singleton = descr;
    Py_INCREF(&tf_exact_dtype);
    Py_SET_TYPE((PyObject *)descr, (PyTypeObject *)&tf_exact_dtype);
    return 0;
}

/* -- the hybrid step ------------------------------------------------------------------ */

static PyObject *get_item(void *data, void *array)
{
    PyArray_Descr *descr = PyArray_DESCR((PyArrayObject *)array);
    return tf_objects[tf_format_of_descr(descr)].get_item(descr, data);
}

static int set_item(PyObject *value, void *data, void *array)
{
    return PyArray_Pack(PyArray_DESCR((PyArrayObject *)array), data, value);
}

/* Casts to void: copies raw bytes, truncated or filled with zeros, as NumPy casts its
 * numbers to `V4`. */
static void to_void(void *from, void *to, npy_intp n, void *from_array, void *to_array)
{
    const npy_intp in_size = PyArray_ITEMSIZE((PyArrayObject *)from_array);
    const npy_intp out_size = PyArray_ITEMSIZE((PyArrayObject *)to_array);
    const npy_intp kept = in_size < out_size ? in_size : out_size;
    for (npy_intp i = 0; i < n; i++) {
        char *out = (char *)to + i * out_size;
        memcpy(out, (char *)from + i * in_size, (size_t)kept);
        memset(out + kept, 0, (size_t)(out_size - kept));
    }
}

int tf_dtype_make_hybrid(int format, PyTypeObject *scalar)
{
    static PyArray_ArrFuncs functions[TF_FORMAT_COUNT];
    static PyArray_DescrProto prototypes[TF_FORMAT_COUNT];
    const struct tf_format *f = tf_format_rows[format];
    PyArray_DTypeMeta *class_ = &tf_dtypes[format];
    PyArray_ArrFuncs *functions_ = &functions[format];
    PyArray_DescrProto *prototype = &prototypes[format];

    PyArray_InitArrFuncs(functions_);
    functions_->getitem = get_item;
    functions_->setitem = set_item;
    functions_->copyswap = tf_legacy[format].copyswap;
    functions_->copyswapn = tf_legacy[format].copyswapn;
    functions_->nonzero = tf_legacy[format].nonzero;

    /* The prototype is for a class that NumPy makes and no user sees. It must not claim a
     * scalar type, and therefore gets `object`. Its kind is 'V', since 'f' would make NumPy
     * write and read files as if these were IEEE types of the same size. */
    Py_SET_REFCNT((PyObject *)prototype, 1);
    Py_SET_TYPE((PyObject *)prototype, &PyArrayDescr_Type);
    prototype->typeobj = &PyBaseObject_Type;
    prototype->kind = 'V';
    prototype->type = f->typechar;
    prototype->byteorder = '|';
    prototype->elsize = f->itemsize;
    prototype->alignment = f->itemsize;
    prototype->f = functions_;
    prototype->hash = -1;
    const int number = PyArray_RegisterDataType(prototype);
    if (number < 0) {
        return -1;
    }
    PyArray_Descr *descr = PyArray_DescrFromType(number);
    if (!descr) {
        return -1;
    }

    /* The class's own number, which is not the descriptor's, decides how NumPy promotes it
     * with a Python float:
     *
     *   a user's number   by the common dtype of the class and float16, which would round
     *                     the Python float to float32 first
     *   a builtin's       by asking us, unless NumPy's own table has a common dtype
     *   NPY_DATETIME      the only builtin that is neither a float nor a string and has no
     *                     common dtype there: timedelta64 and bytes have one */
    class_->type_num = NPY_DATETIME;
    class_->singleton = descr;
    class_->flags |= 1; /* NPY_DT_LEGACY, which has no public name */
    ((PyTypeObject *)class_)->tp_repr = PyArrayDescr_Type.tp_repr;
    ((PyTypeObject *)class_)->tp_str = PyArrayDescr_Type.tp_str;
    /* Replace the descriptor's class, which NumPy made, by ours. */
    Py_INCREF(class_);
    Py_SET_TYPE((PyObject *)descr, (PyTypeObject *)class_);
    Py_INCREF(scalar);
    descr->typeobj = scalar;
    /* np.lexsort uses this stable sort, for which the new interface has no slot. */
    PyDataType_GetArrFuncs(descr)->argsort[NPY_STABLESORT] = tf_legacy[format].argsort;
    return PyArray_RegisterCastFunc(descr, NPY_VOID, to_void);
}

/* -- legacy functions
 * -------------------------------------------------------------------- */

/* Copies n items, unless `in` is NULL and `out` has them already, and swaps their bytes if
 * `swap`. NumPy asks to swap only for `byteswap()`, as our dtypes are always native. */
static void copy_items(size_t size, char *out, npy_intp out_stride, const char *in,
                       npy_intp in_stride, npy_intp n, int swap)
{
    if (in) {
        tf_copy(size, out, out_stride, in, in_stride, (size_t)n);
    }
    if (swap) {
        tf_swap_bytes(size, out, out_stride, (size_t)n);
    }
}

static int fill_range(const struct tf_format *f, char *items, npy_intp n)
{
    unsigned ignored = 0;
    const double start = tf_double_from_code(*f, tf_load_code(*f, items));
    const double next = tf_double_from_code(*f, tf_load_code(*f, items + f->itemsize));
    const double step = next - start;
    for (npy_intp i = 2; i < n; i++) {
        tf_store_code(*f, items + i * f->itemsize,
                      tf_code_from_double(*f, start + (double)i * step, &ignored));
    }
    return 0;
}

static int arg_extreme(int format, int greatest, void *items, npy_intp n, npy_intp *found)
{
    *found = n > 0 ? tf_arg_extreme(format, greatest, items, n) : 0;
    return 0;
}

static void dot(int format, void *a, npy_intp a_stride, void *b, npy_intp b_stride,
                void *out, npy_intp n)
{
    const struct tf_matrix row = {a, {0, a_stride}, 0, format};
    const struct tf_matrix column = {b, {b_stride, 0}, 0, format};
    const struct tf_matrix result = {out, {0, 0}, 0, format};
    const struct tf_precision as_they_are = {.parts = 1, .split_orders = 1};
    struct tf_watch watch = {0};
    if (tf_is_stopped(&watch, 1)) {
        return; /* NumPy continues with the other elements after a stop */
    }
    if (tf_matmul(&as_they_are, row, column, result, 1, 1, n, 1) < 0) {
        const PyGILState_STATE state = PyGILState_Ensure();
        if (!PyErr_Occurred()) { /* memory was short, and no signal stopped it */
            PyErr_NoMemory();
        }
        PyGILState_Release(state);
    }
}

TF_INLINE int compare(struct tf_format f, int format, const void *a, const void *b)
{
    uint32_t x, y;
    if (f.itemsize == 1) {
        const struct tf_byte_order order =
            tf_order_with_one_zero(tf_byte_tables[format].order);
        x = tf_rank_of_byte(order, *(const uint8_t *)a);
        y = tf_rank_of_byte(order, *(const uint8_t *)b);
    } else {
        x = tf_order_key(f, tf_load_code(f, a));
        y = tf_order_key(f, tf_load_code(f, b));
    }
    return (x > y) - (x < y);
}

/* Defines the legacy functions of each format: NumPy does not pass the dtype, as `array`
 * may be NULL. */
#define ROW(name, itemsize, ...)                                                        \
    static void copyswap_##name(void *out, void *in, int swap, void *NPY_UNUSED(array)) \
    {                                                                                   \
        copy_items(itemsize, out, 0, in, 0, 1, swap);                                   \
    }                                                                                   \
    static void copyswapn_##name(void *out, npy_intp out_stride, void *in,              \
                                 npy_intp in_stride, npy_intp n, int swap,              \
                                 void *NPY_UNUSED(array))                               \
    {                                                                                   \
        copy_items(itemsize, out, out_stride, in, in_stride, n, swap);                  \
    }                                                                                   \
    static int compare_##name(const void *a, const void *b, void *NPY_UNUSED(array))    \
    {                                                                                   \
        return compare(tf_##name, tf_##name##_index, a, b);                             \
    }                                                                                   \
    static int argsort_##name(void *items, npy_intp *index, npy_intp n,                 \
                              void *NPY_UNUSED(array))                                  \
    {                                                                                   \
        return tf_argsort_next(tf_##name##_index, items, index, n);                     \
    }                                                                                   \
    static int argmax_##name(void *items, npy_intp n, npy_intp *found,                  \
                             void *NPY_UNUSED(array))                                   \
    {                                                                                   \
        return arg_extreme(tf_##name##_index, 1, items, n, found);                      \
    }                                                                                   \
    static int argmin_##name(void *items, npy_intp n, npy_intp *found,                  \
                             void *NPY_UNUSED(array))                                   \
    {                                                                                   \
        return arg_extreme(tf_##name##_index, 0, items, n, found);                      \
    }                                                                                   \
    static void dot_##name(void *a, npy_intp a_stride, void *b, npy_intp b_stride,      \
                           void *out, npy_intp n, void *NPY_UNUSED(array))              \
    {                                                                                   \
        dot(tf_##name##_index, a, a_stride, b, b_stride, out, n);                       \
    }                                                                                   \
    static npy_bool nonzero_##name(void *item, void *NPY_UNUSED(array))                 \
    {                                                                                   \
        return !tf_is_zero(tf_##name, tf_load_code(tf_##name, item));                   \
    }                                                                                   \
    static int fill_##name(void *items, npy_intp n, void *NPY_UNUSED(array))            \
    {                                                                                   \
        return fill_range(&tf_##name, items, n);                                        \
    }
TF_FORMATS(ROW)
#undef ROW

const struct tf_legacy tf_legacy[TF_FORMAT_COUNT] = {
#define ROW(name, ...)                                                                  \
    {copyswap_##name, copyswapn_##name, compare_##name, argsort_##name, argmax_##name,  \
     argmin_##name,   dot_##name,       nonzero_##name, fill_##name},
    TF_FORMATS(ROW)
#undef ROW
};

/* -- reductions
 * ---------------------------------------------------------------------------- */

static _Thread_local const void *reducing;

void tf_reduction_begins(const void *context) { reducing = context; }

int tf_reduction_began(const void *context)
{
    const int began = reducing == context;
    reducing = NULL;
    return began;
}
