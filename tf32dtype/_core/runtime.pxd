# C declarations of src/runtime/.

from numpy cimport npy_intp


cdef extern from "runtime/copies.h" nogil:
    void tf_copy(size_t, char *, npy_intp, const char *, npy_intp, size_t)


cdef extern from "runtime/cpu_dispatch.h":
    const char *tf_isa_name(int, int *built, int *runs)
    const char *tf_isa_choose(const char *)


cdef extern from "runtime/fp_environment.h" nogil:
    struct tf_fp:
        pass
    tf_fp tf_fp_begin()
    void tf_fp_end(tf_fp, unsigned)


cdef extern from "runtime/stops.h" nogil:
    struct tf_watch:
        pass
    void tf_stops_prepare(int (*)() noexcept nogil)
    int tf_is_stopped(tf_watch *, int)


cdef extern from "runtime/thread_pool.h" nogil:
    void tf_workers_free()
    npy_intp tf_workspaces()
