# C declarations of the files next to this one.

from cpython.object cimport PyObject
from libc.stdint cimport uint64_t
from numpy cimport npy_intp

from tf32dtype._core.programs.blas.blas cimport tf_blas_mode
from tf32dtype._core.programs.call_sites cimport tf_source_finder


cdef extern from "programs/blas_modes.h":
    const tf_blas_mode tf_no_mode
    const tf_blas_mode *tf_mode_kept(const tf_blas_mode *)
    void tf_modes_prepare(const tf_blas_mode *(*)() noexcept)
    void tf_modes_take_over()
    int tf_modes_has_python() noexcept nogil
    # called with the GIL
    void tf_modes_set_process(const tf_blas_mode *)
    void tf_modes_count_scope(int)
    void tf_modes_publish()


cdef extern from "programs/where_am_i.h" nogil:
    int tf_frames_are_known()
    int tf_frames_set_folders(const char *const *, const char *const *,
                              const char *const *)
    int tf_frames_set_regions(const char *const (*)[2], const char *const (*)[2])
    int tf_frames_may_obey()
    int tf_frames_is_users(const char *)
    PyObject *tf_frames_variables()
    const tf_source_finder tf_frames_finder


cdef extern from "programs/plans.h" nogil:
    struct tf_planned:
        const char *file[2]
        int line[2]
        uint64_t number
        int side
        uint64_t digest
        npy_intp rows
        npy_intp columns
        const void *what
    struct tf_plan:
        pass
    const tf_plan *tf_plan_new(const tf_planned *, size_t, const void *)
    const void *tf_plan_here(const void *) noexcept
    void tf_plans_obey_regions(int)
