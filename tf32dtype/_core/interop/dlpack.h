/* DLPack's tensors, as its header describes them in version 1.3:
 * https://github.com/dmlc/dlpack/blob/main/include/dlpack/dlpack.h
 *
 * A capsule named "dltensor" has a tensor of before 1.0; one named "dltensor_versioned"
 * has one of now. Who takes the tensor out of a capsule renames that, "used_...", and
 * calls the deleter once, from any thread. */
#ifndef TF32DTYPE_DLPACK_H
#define TF32DTYPE_DLPACK_H

#include <stdint.h>

/* Another major version has another layout from `flags` on; a minor one has more codes. */
enum { TF_DLPACK_MAJOR = 1, TF_DLPACK_MINOR = 3 };

/* Bits of `flags`. */
enum {
    TF_DLPACK_READ_ONLY = 1 << 0,
    TF_DLPACK_IS_COPIED = 1 << 1,
    TF_DLPACK_IS_PADDED = 1 << 2 /* items of less than a byte fill one each */
};

struct tf_dlpack_tensor {
    char *data; /* NULL if there are no items */
    int32_t device_kind, device_number;
    int32_t ndim;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *shape;   /* of ndim; NULL if that is 0 */
    int64_t *strides; /* in items; NULL, before 1.2, if they follow each other */
    uint64_t byte_offset;
};

struct tf_dlpack_legacy {
    struct tf_dlpack_tensor tensor;
    void *context; /* the producer's */
    void (*deleter)(struct tf_dlpack_legacy *); /* may be NULL */
};

struct tf_dlpack_versioned {
    uint32_t major, minor;
    void *context;
    void (*deleter)(struct tf_dlpack_versioned *);
    uint64_t flags;
    struct tf_dlpack_tensor tensor;
};

_Static_assert(sizeof(struct tf_dlpack_tensor) == 32 + 2 * sizeof(void *) ||
                   sizeof(void *) != 8,
               "no gaps but those of 64-bit alignment");

#endif
