/* Where in the source a thread is: read from its frames without the GIL.
 *
 * The thread is inside a call of ours, so that its frames, and the code objects they own,
 * stay. Nothing is counted, made or changed. */
#ifndef TF32DTYPE_FRAMES_H
#define TF32DTYPE_FRAMES_H

#include <stdint.h>

/* A code object, as it was when it was first seen; kept for ever. */
struct tf_code {
    char *file, *function; /* UTF-8; the function's qualified name */
    int is_users;          /* its file is none of a library */
    int region;            /* what tf_frames_regions says: 0 none, 1 only, 2 except */
};

struct tf_place_in_source {
    const struct tf_code *user, *innermost; /* the nearest of the user; either or NULL */
    int user_line, innermost_line;          /* 0 until tf_frames_lines */
    uint64_t key;                           /* the same for the same place, else others */
    const void *codes[2];                   /* for tf_frames_lines */
    int offsets[2];
};

/* Whether this Python's frames can be read. */
int tf_frames_are_known(void);

/* Sets which files are libraries': those under one of `libraries` (folders) and under
 * none of `users`; and which code counts as a region, a file's end and a function or "",
 * a pair an entry. All end with NULL, and are copied. Needs the GIL. -1: no memory. */
int tf_frames_set_folders(const char *const *libraries, const char *const *users);
int tf_frames_set_regions(const char *const (*only)[2], const char *const (*except)[2]);

/* Finds the place of this thread. Returns 0, or -1 if it runs no Python code. */
int tf_frames_find(struct tf_place_in_source *place);
void tf_frames_lines(struct tf_place_in_source *place);

/* Whether this thread has a state of Python's, and frames. */
int tf_frames_has_any(void);

/* Whether this thread's frames are in a region of `only`, if there are any, and in none
 * of `except`. */
int tf_frames_may_obey(void);

#endif
