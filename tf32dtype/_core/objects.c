/* Converts items from and to the commonest Python objects: see objects.h. */
#include "objects.h"

#include <string.h>

#define PY_ARRAY_UNIQUE_SYMBOL tf32dtype_objects_ARRAY_API
#include <numpy/arrayobject.h>
#include <numpy/ufuncobject.h>

#include "formats/items.h"

static tf_set_other *set_other;

int tf_objects_ready(tf_set_other *other)
{
    set_other = other;
    return _import_umath();
}

/* Returns whether the innermost frame is in this package, whose lines users do not know. */
static int is_in_package(void)
{
    PyObject *globals = PyEval_GetGlobals();
    PyObject *name = globals ? PyDict_GetItemString(globals, "__name__") : NULL;
    const char *module = name && PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : "";
    return strncmp(module, "tf32dtype.", 10) == 0 &&
           strcmp(module, "tf32dtype._base.caller") != 0;
}

static PyObject *attribute(const char *of_module, const char *name)
{
    PyObject *module = PyImport_ImportModule(of_module);
    PyObject *found = module ? PyObject_GetAttrString(module, name) : NULL;
    Py_XDECREF(module);
    return found;
}

/* Calls tf_warn by tf32dtype/_base/caller.py, to warn at the line that called the
 * package. */
static int warn_at_caller(unsigned flags, const char *where)
{
    PyObject *report = attribute("tf32dtype._base.caller", "report");
    PyObject *give = report ? attribute("tf32dtype._core", "report") : NULL;
    PyObject *done = give ? PyObject_CallFunction(report, "OIs", give, flags, where) : NULL;
    Py_XDECREF(report);
    Py_XDECREF(give);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

int tf_warn(unsigned flags, const char *where)
{
    const int errors = (flags & TF_OVER ? NPY_FPE_OVERFLOW : 0) |
                       (flags & TF_UNDER ? NPY_FPE_UNDERFLOW : 0) |
                       (flags & TF_INVALID ? NPY_FPE_INVALID : 0);
    if (errors && is_in_package()) {
        return warn_at_caller(flags, where);
    }
    return errors ? PyUFunc_GiveFloatingpointErrors(where, errors) : 0;
}

/* Returns the format of a scalar's type, or -1 for other types and for subclasses. */
static int format_of_scalar(const PyTypeObject *type)
{
    for (int format = 0; format < TF_FORMAT_COUNT; format++) {
        if (tf_dtypes[format].scalar_type == type) {
            return format;
        }
    }
    return -1;
}

static const char *item_of_scalar(const PyObject *scalar)
{
    return ((const struct tf_scalar *)scalar)->item;
}

/* Writes the value of an int of at most 2^53 in magnitude, or of one of our scalars, to
 * `x`. Returns whether the value is one of these. */
static int number_of(PyObject *value, double *x)
{
    const PyTypeObject *type = Py_TYPE(value);
    if (type == &PyLong_Type) {
        const long long most = 1LL << 53;
        int overflow;
        const long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
        *x = (double)number;
        return !overflow && -most <= number && number <= most;
    }
    const int format = format_of_scalar(type);
    if (format >= 0) {
        *x = tf_double_of_item(*tf_format_rows[format], format, item_of_scalar(value));
    }
    return format >= 0;
}

TF_INLINE int set_item(struct tf_format f, int format, PyObject *value, char *item)
{
    unsigned flags = 0;
    uint32_t code;
    double x;
    if (Py_TYPE(value) == tf_dtypes[format].scalar_type) {
        code = tf_load_code(f, item_of_scalar(value));
        if (tf_is_nan(f, code)) { /* keeps its sign, but not its payload */
            code = tf_nan_code(f) | (code & tf_sign_mask(f));
        }
        tf_store_code(f, item, code);
        return 0;
    }
    if (PyFloat_CheckExact(value)) {
        x = PyFloat_AS_DOUBLE(value);
    } else if (!number_of(value, &x)) {
        return set_other(format, value, item);
    }
    if (!tf_round_usual(f, x, &code, &flags)) {
        code = tf_code_from_double(f, x, &flags);
    }
    if (flags && tf_warn(flags, "cast") < 0) {
        return -1;
    }
    tf_store_code(f, item, code);
    return 0;
}

#define ROW(name, ...)                                                                  \
    static PyObject *get_##name(PyArray_Descr *Py_UNUSED(descr), char *item)            \
    {                                                                                   \
        return PyFloat_FromDouble(                                                      \
            tf_double_of_item(tf_##name, tf_##name##_index, item));                     \
    }                                                                                   \
    static int set_##name(PyArray_Descr *Py_UNUSED(descr), PyObject *value, char *item) \
    {                                                                                   \
        return set_item(tf_##name, tf_##name##_index, value, item);                     \
    }
TF_FORMATS(ROW)
#undef ROW

const struct tf_objects tf_objects[TF_FORMAT_COUNT] = {
#define ROW(name, ...) {get_##name, set_##name},
    TF_FORMATS(ROW)
#undef ROW
};
