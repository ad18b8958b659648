# C declarations of src/programs/call_sites/.


cdef extern from "programs/call_sites/call_sites.h" nogil:
    struct tf_source:
        const char *file[2]
        const char *function[2]
        int line[2]
    struct tf_source_finder:
        pass
