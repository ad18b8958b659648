/* Chooses an instruction set by the features of the CPU, or by name. */
#include "runtime/cpu_dispatch.h"

#include <string.h>

#include "runtime/cpu_sets.h"
#include "runtime/kernel_table.h"

extern const struct tf_isa tf_isa_baseline;
const struct tf_isa *tf_isa = &tf_isa_baseline;

/* The kernels of each set, or NULL where the build leaves the set out. setup.py defines
 * TF_HAVE_X86_64_V3 and so on for this file. */
#if defined(TF_HAVE_X86_64_V3)
extern const struct tf_isa tf_isa_x86_64_v3;
#define KERNELS_x86_64_v3 &tf_isa_x86_64_v3
#else
#define KERNELS_x86_64_v3 NULL
#endif
#if defined(TF_HAVE_X86_64_V4)
extern const struct tf_isa tf_isa_x86_64_v4;
#define KERNELS_x86_64_v4 &tf_isa_x86_64_v4
#else
#define KERNELS_x86_64_v4 NULL
#endif
#if defined(TF_HAVE_X86_64_V4_BF16)
extern const struct tf_isa tf_isa_x86_64_v4_bf16;
#define KERNELS_x86_64_v4_bf16 &tf_isa_x86_64_v4_bf16
#else
#define KERNELS_x86_64_v4_bf16 NULL
#endif
#define KERNELS_baseline &tf_isa_baseline

#define HAS(identifier, name, has) \
    static int has_##identifier(void) { return has; }
TF_CPU_SETS(HAS)
#undef HAS

/* The sets from the plainest to the best. */
static const struct {
    const char *name;
    int (*has)(void);
    const struct tf_isa *isa;
} sets[] = {
#define SET(identifier, name, has) {name, has_##identifier, KERNELS_##identifier},
    TF_CPU_SETS(SET)
#undef SET
};
enum { SETS = sizeof sets / sizeof sets[0] };

const char *tf_isa_name(int i, int *built, int *runs)
{
    if (i >= SETS) {
        return NULL;
    }
    *built = sets[i].isa != NULL;
    *runs = sets[i].has();
    return sets[i].name;
}

/* Returns the value of tf_pairs_pay. A set requested by name is used in full. */
static int pairs_pay(const char *name)
{
#if defined(TF_HAVE_X86_64_V4_BF16)
    return (name && *name) || !__builtin_cpu_is("intel");
#else
    (void)name;
    return 1;
#endif
}

int tf_pairs_pay = 1;

const char *tf_isa_choose(const char *name)
{
    tf_pairs_pay = pairs_pay(name);
    for (int s = SETS - 1; s >= 0; s--) {
        const int wanted = !name || !*name || strcmp(name, sets[s].name) == 0;
        if (wanted && sets[s].isa && sets[s].has()) {
            tf_isa = sets[s].isa;
            return sets[s].name;
        }
    }
    return NULL;
}
