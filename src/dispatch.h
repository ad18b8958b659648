/* The instruction sets this build has, and the choice among them. */
#ifndef TF32DTYPE_DISPATCH_H
#define TF32DTYPE_DISPATCH_H

/* The name of the i-th one that this CPU runs, from the plainest to the best;
 * NULL past the end. */
const char *tf_isa_name(int i);

/* Takes one by name, or the best for NULL or "". Returns its name, or NULL if
 * this CPU or this build has none of that name. */
const char *tf_isa_choose(const char *name);

#endif
