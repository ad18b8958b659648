/* The slots through which the objects of a process (its executable, its libraries) call
 * functions of each other: found by the functions' names, and redirected.
 *
 * A slot is a pointer that the dynamic linker filled, in the global offset table or in
 * data. To redirect it reaches what the object calls, whatever names others export. */
#ifndef TF32DTYPE_PROGRAMS_HOOKS_SLOTS_H
#define TF32DTYPE_PROGRAMS_HOOKS_SLOTS_H

struct tf_slot {
    const char *symbol; /* the name that the object imports */
    const char *object; /* the object's file; "" of the executable */
    void *handle;       /* the object's, for tf_defines */
    void *original;     /* what the slot leads to */
    int own;            /* the object defines the name itself */
};

/* Writes what is to stand in a slot, or NULL to leave it. Returns -1 if memory is short. */
typedef int tf_redirect_fn(const struct tf_slot *slot, void **value);

/* Returns whether a name is of interest at all. To be quick: asked for every import. */
typedef int tf_wanted_fn(const char *symbol);

/* Looks at the objects that no call has looked at before. Slots of our own, of the
 * dynamic linker, of the kernel's object, and those that hold a stub already, stay. To be
 * called by one thread at a time. Returns -1 if memory is short: the next call looks at the
 * same objects again. */
int tf_redirect_slots(tf_wanted_fn *wanted, tf_redirect_fn *redirect);

/* Whether objects have come or gone since. */
int tf_objects_changed(void);

/* Whether two functions belong to the same object. */
int tf_are_of_one_object(const void *a, const void *b);

/* Whether an object itself defines a name. */
int tf_defines(const struct tf_slot *slot, const char *symbol);

#endif
