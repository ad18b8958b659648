/* Keeps for each thread the mode of its Python context. */
#define _GNU_SOURCE /* RTLD_DEFAULT */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "programs/blas/preload/preload.h"
#include "programs/hooks/stubs.h"
#include "programs/blas_modes.h"
#include "programs/where_am_i.h"

const struct tf_blas_mode tf_no_mode;

static tf_read_mode_fn *read_mode;
static _Atomic(const struct tf_blas_mode *) of_process, of_workers;
static atomic_int scopes;
/* The mode of this thread (NULL: no scope), and the version of its context, which Python
 * increases with each change of context, at the last reading. */
static _Thread_local struct {
    const struct tf_blas_mode *mode;
    uint64_t version;
} own __attribute__((tls_model("initial-exec")));

struct kept {
    struct tf_blas_mode mode;
    struct kept *next;
};

/* Returns an equal mode in the list from `from` on, before `to`; or NULL. */
static const struct tf_blas_mode *look_for(const struct tf_blas_mode *mode,
                                           const struct kept *from, const struct kept *to)
{
    for (const struct kept *one = from; one != to; one = one->next) {
        if (memcmp(&one->mode, mode, sizeof *mode) == 0) {
            return &one->mode;
        }
    }
    return NULL;
}

const struct tf_blas_mode *tf_mode_kept(const struct tf_blas_mode *mode)
{
    static struct kept *_Atomic all; /* grows at its head, and never shrinks */
    struct kept *head = atomic_load(&all);
    const struct tf_blas_mode *found = look_for(mode, head, NULL);
    struct kept *fresh = found ? NULL : malloc(sizeof *fresh);
    if (!fresh) {
        return found;
    }
    memcpy(&fresh->mode, mode, sizeof *mode);
    do {
        fresh->next = head;
        if (atomic_compare_exchange_weak(&all, &head, fresh)) {
            return &fresh->mode;
        }
        found = look_for(mode, head, fresh->next); /* in additions of other threads */
    } while (!found);
    free(fresh);
    return found;
}

static const struct tf_blas_mode *in_force(const struct tf_blas_mode *scoped)
{
    return scoped == &tf_no_mode ? NULL
           : scoped              ? scoped
                                 : atomic_load_explicit(&of_process, memory_order_acquire);
}

static void refresh(void)
{
    PyObject *type, *value, *trace; /* BLAS may be called while an error is set */
    PyErr_Fetch(&type, &value, &trace);
    own.mode = read_mode();
    own.version = PyThreadState_Get()->context_ver;
    PyErr_Restore(type, value, trace);
}

int tf_modes_has_python(void)
{
    const PyThreadState *state = PyGILState_GetThisThreadState();
    return state && tf_frames_has_any(state);
}

static const struct tf_blas_mode *find(void)
{
    if (atomic_load_explicit(&scopes, memory_order_relaxed) == 0) {
        return atomic_load_explicit(&of_process, memory_order_acquire);
    }
    /* The thread's own state cannot change, because the thread is in this call. */
    if (!tf_modes_has_python()) {
        return atomic_load_explicit(&of_workers, memory_order_acquire);
    }
    const PyThreadState *state = PyGILState_GetThisThreadState();
    /* Python counts the contexts that a thread enters and leaves, as asyncio's tasks do.
     * Only if that count has changed does a thread that runs Python code take the GIL. */
    if (own.version != state->context_ver) {
        const PyGILState_STATE gil = PyGILState_Ensure();
        refresh();
        PyGILState_Release(gil);
    }
    return in_force(own.mode);
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
    atomic_store(&of_workers, in_force(own.mode));
}
