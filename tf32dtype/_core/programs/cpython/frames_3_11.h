/* Frames of CPython 3.11. */
#include "internal/pycore_frame.h"

#define TF_FRAMES_ARE_KNOWN 1
typedef struct _PyInterpreterFrame Frame;

static inline const Frame *first_frame_of(const PyThreadState *state)
{
    return state && state->cframe ? state->cframe->current_frame : NULL;
}

static inline PyCodeObject *code_in(const Frame *frame)
{
    PyObject *code = (PyObject *)frame->f_code;
    return code && Py_IS_TYPE(code, &PyCode_Type) ? (PyCodeObject *)code : NULL;
}

static inline int offset_in(const Frame *frame, PyCodeObject *code)
{
    return (int)((const char *)frame->prev_instr - (const char *)_PyCode_CODE(code));
}

static inline PyObject *local_in(const Frame *frame, int i) { return frame->localsplus[i]; }
