/* A word for each thread: the mode of the context that it was seen in last. */
#define _GNU_SOURCE /* RTLD_DEFAULT */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "blas/preload/preload.h"
#include "blas/stubs.h"
#include "blas_modes.h"
#include "frames.h"

const struct tf_blas_mode tf_no_mode;

static tf_read_mode_fn *read_mode;
static _Atomic(const struct tf_blas_mode *) of_process, of_workers;
static atomic_int scopes;
/* NULL: no scope, so far as is known. */
static _Thread_local const struct tf_blas_mode *own;
/* Of the context that `own` was read in. */
static _Thread_local uint64_t own_version;

const struct tf_blas_mode *tf_mode_kept(const struct tf_blas_mode *mode)
{
    static struct kept {
        struct tf_blas_mode mode;
        struct kept *next;
    } *all;
    for (const struct kept *one = all; one; one = one->next) {
        if (memcmp(&one->mode, mode, sizeof *mode) == 0) {
            return &one->mode;
        }
    }
    struct kept *fresh = malloc(sizeof *fresh);
    if (!fresh) {
        return NULL;
    }
    memcpy(&fresh->mode, mode, sizeof *mode);
    fresh->next = all;
    all = fresh;
    return &fresh->mode;
}

static const struct tf_blas_mode *in_force(const struct tf_blas_mode *scoped)
{
    return scoped == &tf_no_mode ? NULL
           : scoped              ? scoped
                                 : atomic_load_explicit(&of_process, memory_order_acquire);
}

static void refresh(void)
{
    PyObject *type, *value, *trace; /* BLAS may be called while an error is on its way */
    PyErr_Fetch(&type, &value, &trace);
    own = read_mode();
    own_version = PyThreadState_Get()->context_ver;
    PyErr_Restore(type, value, trace);
}

/* Without the GIL. Python counts the contexts that a thread enters and leaves, as tasks
 * do: only where another is entered now, a thread that Python knows takes the GIL. */
static void refresh_if_stale(void)
{
    if (PyGILState_GetThisThreadState()->context_ver != own_version) {
        const PyGILState_STATE state = PyGILState_Ensure();
        refresh();
        PyGILState_Release(state);
    }
}

static const struct tf_blas_mode *find(void)
{
    if (atomic_load_explicit(&scopes, memory_order_relaxed) == 0) {
        return atomic_load_explicit(&of_process, memory_order_acquire);
    }
    if (!tf_frames_has_any()) {
        return atomic_load_explicit(&of_workers, memory_order_acquire);
    }
    if (PyGILState_Check()) {
        refresh();
    } else {
        refresh_if_stale();
    }
    return in_force(own);
}

void tf_modes_prepare(tf_read_mode_fn *read)
{
    read_mode = read;
    tf_blas_set_mode_finder(find);
}

#if TF_HAVE_STUBS

#include <dlfcn.h>

void tf_modes_take_over(void)
{
    void (*end)(tf32dtype_total_fn *);
    *(void **)&end = dlsym(RTLD_DEFAULT, "tf32dtype_preload_end");
    if (end) {
        end(tf_blas_total);
    }
}

#else

void tf_modes_take_over(void) {}

#endif

void tf_modes_set_process(const struct tf_blas_mode *mode)
{
    atomic_store(&of_process, mode);
    tf_modes_publish();
}

void tf_modes_count_scope(int more) { atomic_fetch_add(&scopes, more); }

void tf_modes_publish(void)
{
    refresh();
    atomic_store(&of_workers, in_force(own));
}
