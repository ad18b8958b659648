/* Where products are made: their number, sizes and time, and samples of their operands. */
#ifndef TF32DTYPE_PROGRAMS_BLAS_PLACES_H
#define TF32DTYPE_PROGRAMS_BLAS_PLACES_H

#include <stddef.h>
#include <stdint.h>

#include "programs/blas/engine.h"

/* Where a call comes from, as whoever knows the language tells it. */
struct tf_source {
    uint64_t key;                 /* the same for the same place; 0: not known */
    const char *file[2];          /* of the user, and of a library; or NULL */
    const char *function[2];
    int line[2];
    const void *details[4];       /* for `fill` */
    int offsets[2];
};

/* `find` gives a key in every call, `fill` the rest when a place is new. */
struct tf_source_finder {
    int (*find)(struct tf_source *source); /* 0, or -1: none */
    void (*fill)(struct tf_source *source);
};

/* Rows of A and columns of B, each k numbers as float64; of complex numbers the imaginary
 * ones too. The first row and the first column hold the greatest magnitudes. */
struct tf_sample {
    struct tf_sample *next;
    ptrdiff_t m, n, k, rows, columns;
    double *a, *b, *imaginary_a, *imaginary_b;
};

enum { TF_SHAPES = 16 };

struct tf_place {
    _Atomic uint64_t key;
    int session; /* of which it is */
    struct tf_source source;
    const char *object; /* the file of the caller */
    char type;
    int routine, lock;
    uint64_t calls, multiply_adds;
    uint64_t timed; /* calls that `seconds` is of */
    double seconds;
    struct tf_shape {
        ptrdiff_t m, n, k;
        uint64_t calls;
    } shapes[TF_SHAPES]; /* of all others the last counts calls alone: m is -1 */
    struct tf_sample *samples;
};

/* What is watched. Of each place the 1st, 2nd, 4th, 8th, ... call is sampled, `lines` rows
 * and columns of it (0: none); if `whole` all of every call. Samples take `bytes` at most. */
struct tf_places_wanted {
    ptrdiff_t lines;
    int whole;
    size_t bytes;
    int dots, lapack; /* products that are one number, those inside LAPACK: too */
    int (*is_inside)(void); /* whether a place is watched; NULL: all are */
};

/* Returns -1 if memory is short. */
int tf_places_begin(const struct tf_source_finder *finder,
                    const struct tf_places_wanted *wanted);
void tf_places_end(void);

/* Returns one place after the other, from 0 on; NULL at the end. */
const struct tf_place *tf_places(size_t number);

/* Copies a place as it is now: other threads may be counting there. */
void tf_place_copy(const struct tf_place *place, struct tf_place *copy);

/* Takes the samples of a place away from it; to be freed one by one. */
struct tf_sample *tf_take_samples(const struct tf_place *place);
void tf_free_sample(struct tf_sample *sample);

/* How many calls could not be sampled, since memory was used up. */
uint64_t tf_samples_left_out(void);

/* How many calls no place could be found for, since the table is full. */
uint64_t tf_calls_without_place(void);

#endif
