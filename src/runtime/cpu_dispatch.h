/* The instruction sets that this build has, and the choice among them. */
#ifndef TF32DTYPE_RUNTIME_CPU_DISPATCH_H
#define TF32DTYPE_RUNTIME_CPU_DISPATCH_H

/* Returns the name of the i-th set, from the plainest to the best, or NULL past the end.
 * Writes whether this build has the set and whether this CPU runs it. */
const char *tf_isa_name(int i, int *built, int *runs);

/* Selects the set with this name, or the best one for NULL or "". Returns its name, or NULL
 * if this CPU or this build has no set with that name. */
const char *tf_isa_choose(const char *name);

/* Whether bfloat16 numbers are multiplied faster in pairs than as float32, with the same
 * bits. VDPBF16PS does 32 multiply-adds per vector, FMA 16. On AMD's Zen 4 and Zen 5 both
 * take the same time. On Intel's Sapphire and Emerald Rapids, measured, VDPBF16PS takes two
 * cycles and FMA half a cycle. The vendor decides: a timing at import would vary with the
 * load of the machine. */
extern int tf_pairs_pay;

#endif
