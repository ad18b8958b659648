/* The instruction sets this build has, and the choice among them. */
#ifndef TF32DTYPE_DISPATCH_H
#define TF32DTYPE_DISPATCH_H

/* The name of the i-th one that this CPU runs, from the plainest to the best;
 * NULL past the end. */
const char *tf_isa_name(int i);

/* Takes one by name, or the best for NULL or "". Returns its name, or NULL if
 * this CPU or this build has none of that name. */
const char *tf_isa_choose(const char *name);

/* Whether multiplying bfloat16 numbers in pairs is faster than as float32. VDPBF16PS, of
 * 32 pairs' products a vector, and FMA, of 16, take: on AMD's Zen 4 and Zen 5 as many
 * cycles as each other; on Intel's Sapphire and Emerald Rapids, which have another unit
 * for bfloat16, two cycles and half of one. The bits are the same. By the vendor, not by
 * a clock: a busy neighbour changes what is measured at import. */
extern int tf_pairs_pay;

#endif
