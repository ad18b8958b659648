/* Frames of CPython 3.13. */
#include "internal/pycore_frame.h"
#include "internal/pycore_code.h"

#define TF_FRAMES_ARE_KNOWN 1
typedef struct _PyInterpreterFrame Frame;

static inline const Frame *first_frame_of(const PyThreadState *state)
{
    return state ? state->current_frame : NULL;
}

static inline PyCodeObject *code_in(const Frame *frame)
{
    PyObject *code = frame->owner == FRAME_OWNED_BY_CSTACK ? NULL : frame->f_executable;
    return code && Py_IS_TYPE(code, &PyCode_Type) ? (PyCodeObject *)code : NULL;
}

static inline int offset_in(const Frame *frame, PyCodeObject *code)
{
    return (int)((const char *)frame->instr_ptr - (const char *)_PyCode_CODE(code));
}

static inline PyObject *local_in(const Frame *frame, int i) { return frame->localsplus[i]; }
