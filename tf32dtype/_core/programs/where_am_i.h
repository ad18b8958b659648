/* Finds the line of Python source where a thread is, from its frames and without the
 * GIL.
 *
 * The thread is inside a call of ours, so that its frames and their code objects continue
 * to exist. No reference is counted; no Python object is made or changed. The layout of
 * frames is private to CPython: cpython/frames.h has a file for each version. In other
 * versions tf_frames_are_known returns 0, and no call has a call site. */
#ifndef TF32DTYPE_PROGRAMS_WHERE_AM_I_H
#define TF32DTYPE_PROGRAMS_WHERE_AM_I_H

#include "programs/call_sites/call_sites.h"

/* Returns whether this Python's frames can be read. */
int tf_frames_are_known(void);

/* tf_frames_set_folders sets which files belong to libraries, namely those in one of the
 * folders `libraries` and in none of `users`, and which belong to this package (`own`),
 * whose frames are skipped. tf_frames_set_regions sets the code of regions: pairs of a file
 * and a function or "". Files and folders have no links in them. All lists end with NULL,
 * and are copied. Both return -1 if memory is short. */
int tf_frames_set_folders(const char *const *libraries, const char *const *users,
                          const char *const *own);
int tf_frames_set_regions(const char *const (*only)[2], const char *const (*except)[2]);

/* Finds the call site of this thread: the nearest frame of the user's code, and the
 * innermost one. */
extern const struct tf_source_finder tf_frames_finder;

/* Returns whether this thread, given its PyThreadState or NULL, has frames. */
int tf_frames_has_any(const void *state);

/* Returns whether this thread's frames are in a region of `only`, if there are any, and in
 * none of `except`. */
int tf_frames_may_obey(void);

/* Returns whether a file is the user's. */
int tf_frames_is_users(const char *file);

struct _object; /* PyObject */

/* Returns a new list of pairs (name, object), or NULL after an error: the variables of this
 * thread's functions that are the user's, the outermost first, each after the globals of
 * its module. Needs the GIL. In a Python without a GIL the list is empty, because other
 * threads may change the variables. */
struct _object *tf_frames_variables(void);

#endif
