# C declarations of src/programs/hooks/.


cdef extern from "programs/hooks/stubs.h" nogil:
    struct tf_stub:
        void *original
        void *facts
    struct tf_call:
        pass
    void *tf_stub_new(void *, tf_stub **)
    void tf_stub_set(tf_stub *, int (*)(tf_stub *, tf_call *))
