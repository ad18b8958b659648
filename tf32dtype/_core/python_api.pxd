# Python's C API that Cython's own declarations lack.

from cpython.object cimport PyObject, PyTypeObject


cdef extern from "Python.h":
    ctypedef struct PyType_Slot:
        int slot
        void *pfunc

    ctypedef struct PyType_Spec:
        const char *name
        int basicsize
        int itemsize
        unsigned int flags
        PyType_Slot *slots

    ctypedef struct PyMethodDef:
        const char *ml_name
        void *ml_meth
        int ml_flags
        const char *ml_doc

    ctypedef PyObject *(*getter)(PyObject *, void *)

    ctypedef struct PyGetSetDef:
        const char *name
        getter get
        void *set
        const char *doc
        void *closure

    ctypedef PyObject *(*newfunc)(PyTypeObject *, PyObject *, PyObject *)
    ctypedef PyObject *(*reprfunc)(PyObject *)

    PyObject *PyErr_NoMemory()
    void PyErr_SetObject(object, object)
    void PyErr_Clear()
    void PyErr_WriteUnraisable(object)
    void PyErr_Fetch(PyObject **, PyObject **, PyObject **)
    void PyErr_Restore(PyObject *, PyObject *, PyObject *)
    int PyGC_Disable()
    int PyGC_Enable()
    PyObject *PyObject_GenericGetDict(object, void *)
    PyObject *PySequence_Fast_GET_ITEM(object, Py_ssize_t)
    Py_ssize_t PySequence_Fast_GET_SIZE(object)
    int PyErr_CheckSignals()
    void PyErr_SetInterrupt() nogil
    int PyOS_InterruptOccurred() nogil
    double PyOS_string_to_double(const char *text, char **end, PyObject *) except? -1.0
    unsigned long PyThread_get_thread_ident() nogil
    int Py_IsInitialized() nogil
    void decref "Py_DECREF"(PyObject *)
    void incref "Py_INCREF"(PyObject *)
    object PyType_FromSpecWithBases(PyType_Spec *spec, object bases)
    int Py_tp_new, Py_tp_dealloc, Py_tp_repr, Py_tp_str, Py_tp_hash
    int Py_tp_richcompare, Py_tp_methods, Py_tp_doc
    int Py_nb_float, Py_nb_int, Py_nb_bool
    int Py_nb_add, Py_nb_subtract, Py_nb_multiply, Py_nb_true_divide
    int Py_nb_negative, Py_nb_absolute
    unsigned int Py_TPFLAGS_DEFAULT, Py_TPFLAGS_BASETYPE
    int METH_NOARGS, METH_VARARGS
