/* Where in the Python source a thread is: read from its frames without the GIL.
 *
 * The thread is inside a call of ours, so that its frames, and the code objects they own,
 * stay. No reference is counted; no Python object is made or changed. The layout of frames
 * is CPython's own: cpython/frames.h has a file for each version. In other versions
 * tf_frames_are_known returns 0, and no call has a call site. */
#ifndef TF32DTYPE_PROGRAMS_WHERE_AM_I_H
#define TF32DTYPE_PROGRAMS_WHERE_AM_I_H

#include "programs/call_sites/call_sites.h"

/* Whether this Python's frames can be read. */
int tf_frames_are_known(void);

/* Sets which files are libraries': those under one of `libraries` (folders) and under
 * none of `users`; which are this package's, whose frames are none of who calls; and which
 * code counts as a region: a file and a function or "", a pair an entry. Files and folders
 * have no links in them. All lists end with NULL, and are copied. -1: no memory. */
int tf_frames_set_folders(const char *const *libraries, const char *const *users,
                          const char *const *own);
int tf_frames_set_regions(const char *const (*only)[2], const char *const (*except)[2]);

/* Finds the call site of this thread: the nearest frame of the user's code, and the
 * innermost one. */
extern const struct tf_source_finder tf_frames_finder;

/* Whether this thread, which has a PyThreadState or NULL, has frames. */
int tf_frames_has_any(const void *state);

/* Whether this thread's frames are in a region of `only`, if there are any, and in none
 * of `except`. */
int tf_frames_may_obey(void);

/* Whether a file is the user's. */
int tf_frames_is_users(const char *file);

struct _object; /* PyObject */

/* Returns a new list of pairs (name, object): the variables of this thread's functions that
 * are the user's, the outermost first, each after the globals of its module. Needs the GIL.
 * NULL after an error. Without a GIL the list is empty: other threads change variables. */
struct _object *tf_frames_variables(void);

#endif
