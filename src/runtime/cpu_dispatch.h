/* The instruction sets this build has, and the choice among them. */
#ifndef TF32DTYPE_RUNTIME_CPU_DISPATCH_H
#define TF32DTYPE_RUNTIME_CPU_DISPATCH_H

/* Returns the name of the i-th set, from the plainest to the best, or NULL past the end.
 * Writes whether this build has the set and whether this CPU runs it. */
const char *tf_isa_name(int i, int *built, int *runs);

/* Takes one by name, or the best for NULL or "". Returns its name, or NULL if
 * this CPU or this build has none of that name. */
const char *tf_isa_choose(const char *name);

/* Whether bfloat16 numbers are multiplied faster in pairs than as float32. VDPBF16PS
 * does 32 multiply-adds of a vector, FMA 16. On AMD's Zen 4 and Zen 5 both take the
 * same time; on Intel's Sapphire and Emerald Rapids, measured, VDPBF16PS takes two
 * cycles and FMA half of one. The bits are the same. Chosen by vendor: a timing at
 * import would be another one beside a busy neighbor. */
extern int tf_pairs_pay;

#endif
