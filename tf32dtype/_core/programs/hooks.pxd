# C declarations of src/programs/hooks/.


cdef extern from "programs/hooks/stubs.h" nogil:
    struct tf_stub:
        void *original
        void *facts
    struct tf_call:
        pass
    ctypedef int (*tf_handler_fn)(tf_stub *, tf_call *)
    void *tf_stub_new(void *, tf_stub **)
    void tf_stub_set(tf_stub *, tf_handler_fn)
