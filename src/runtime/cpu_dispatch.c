/* The choice of an instruction set, by what the CPU has or by name. */
#include "runtime/cpu_dispatch.h"

#include <string.h>

#include "runtime/kernel_table.h"

extern const struct tf_isa tf_isa_baseline;
const struct tf_isa *tf_isa = &tf_isa_baseline;

static int always(void) { return 1; }

#if defined(TF_HAVE_X86_64_V3)
extern const struct tf_isa tf_isa_x86_64_v3;

static int has_v3(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
           __builtin_cpu_supports("popcnt");
}
#endif

#if defined(TF_HAVE_X86_64_V4)
extern const struct tf_isa tf_isa_x86_64_v4;

static int has_v4(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl");
}
#endif

#if defined(TF_HAVE_X86_64_V4_BF16)
extern const struct tf_isa tf_isa_x86_64_v4_bf16;

static int has_v4_bf16(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512bf16") &&
           __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vnni");
}
#endif

/* From the plainest to the best. */
static const struct {
    const char *name;
    int (*runs)(void);
    const struct tf_isa *isa;
} choices[] = {
    {"baseline", always, &tf_isa_baseline},
#if defined(TF_HAVE_X86_64_V3)
    {"x86-64-v3", has_v3, &tf_isa_x86_64_v3},
#endif
#if defined(TF_HAVE_X86_64_V4)
    {"x86-64-v4", has_v4, &tf_isa_x86_64_v4},
#endif
#if defined(TF_HAVE_X86_64_V4_BF16)
    {"x86-64-v4-bf16", has_v4_bf16, &tf_isa_x86_64_v4_bf16},
#endif
};
enum { CHOICES = sizeof choices / sizeof choices[0] };

const char *tf_isa_name(int i)
{
    for (int c = 0; c < CHOICES; c++) {
        if (choices[c].runs() && i-- == 0) {
            return choices[c].name;
        }
    }
    return 0;
}

/* A set that is asked for by name is used in full. */
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
    for (int c = CHOICES - 1; c >= 0; c--) {
        const int wanted = !name || !*name || strcmp(name, choices[c].name) == 0;
        if (wanted && choices[c].runs()) {
            tf_isa = choices[c].isa;
            return choices[c].name;
        }
    }
    return 0;
}
