# C declarations of the header next to this file.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t


cdef extern from "interop/dlpack.h":
    enum:
        TF_DLPACK_MAJOR
        TF_DLPACK_MINOR
        TF_DLPACK_READ_ONLY
        TF_DLPACK_IS_COPIED
        TF_DLPACK_IS_PADDED
    struct tf_dlpack_tensor:
        char *data
        int32_t device_kind
        int32_t device_number
        int32_t ndim
        uint8_t code
        uint8_t bits
        uint16_t lanes
        int64_t *shape
        int64_t *strides
        uint64_t byte_offset
    struct tf_dlpack_legacy:
        tf_dlpack_tensor tensor
        void *context
        void (*deleter)(tf_dlpack_legacy *) noexcept nogil
    struct tf_dlpack_versioned:
        uint32_t major
        uint32_t minor
        void *context
        void (*deleter)(tf_dlpack_versioned *) noexcept nogil
        uint64_t flags
        tf_dlpack_tensor tensor
