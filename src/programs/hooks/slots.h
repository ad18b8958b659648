/* Finds and redirects the slots through which the objects of a process (its executable, its
 * libraries) call functions of each other. Slots are found by the names of the functions.
 *
 * A slot is a pointer that the dynamic linker filled, in the global offset table or in
 * data. Redirecting it changes the calls of that object, whatever names others export. */
#ifndef TF32DTYPE_PROGRAMS_HOOKS_SLOTS_H
#define TF32DTYPE_PROGRAMS_HOOKS_SLOTS_H

struct tf_slot {
    const char *symbol; /* the name that the object imports */
    const char *object; /* the object's file; "" for the executable */
    void *handle;       /* the object's handle, for tf_defines */
    void *original;     /* the function that the slot leads to */
    int own;            /* the object defines the name itself */
};

/* Writes the new content of a slot to `value`, or NULL to leave the slot as it is. Returns
 * -1 if memory is short. */
typedef int tf_redirect_fn(const struct tf_slot *slot, void **value);

/* Returns whether slots of a symbol are wanted. Must be quick: it is called for every
 * import of every object. */
typedef int tf_wanted_fn(const char *symbol);

/* Redirects slots of the objects that no call has visited before. The slots of this
 * library, of the dynamic linker and of the kernel's object are not changed, nor are slots
 * that hold a stub already. Only one thread may call it at a time. Returns -1 if memory is
 * short; the next call then visits the same objects again. */
int tf_redirect_slots(tf_wanted_fn *wanted, tf_redirect_fn *redirect);

/* Returns whether objects were loaded or unloaded since the last tf_redirect_slots. */
int tf_objects_changed(void);

/* Returns whether two functions belong to the same object. */
int tf_are_of_one_object(const void *a, const void *b);

/* Returns whether the object of a slot itself defines a symbol. */
int tf_defines(const struct tf_slot *slot, const char *symbol);

#endif
