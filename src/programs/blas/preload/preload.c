/* The library that LD_PRELOAD loads into a program, Python or not. It catches the program's
 * calls of BLAS, and at its end prints how many ran in the precision.
 *
 * TF32DTYPE_MATMUL_PRECISION names the precision. TF32DTYPE_BLAS lists options of
 * docs/reference/configuration.md, separated by commas. */
#define _GNU_SOURCE /* program_invocation_short_name */

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "programs/blas/preload/preload.h"
#include "formats/byte_tables.h"
#include "matmul/precisions.h"
#include "formats/quantize.h"
#include "runtime/cpu_dispatch.h"

static struct tf_blas_mode mode;
static char complaint[160];
static const char *precision_name;
static int is_quiet, is_scaled, is_split, is_tf32;
static pid_t began_in;
/* Set once tf32dtype, in a program that imports it, catches and counts calls instead. */
static tf32dtype_total_fn *other_total;

/* -- settings ---------------------------------------------------------------------- */

/* Returns whether a name begins as block formats in tf32dtype/_formats/aliases.py do. */
static int is_block_format(const char *name)
{
    const char *const beginnings[] = {"mxfp", "mxint", "nvfp", "tcfp", "int"};
    for (size_t i = 0; i < sizeof beginnings / sizeof *beginnings; i++) {
        if (strncasecmp(name, beginnings[i], strlen(beginnings[i])) == 0) {
            return 1;
        }
    }
    return 0;
}

static int set_precision(const char *name)
{
    const struct tf_precision_row *row = tf_find_precision(name);
    if (!row) {
        const char *block = is_block_format(name)
                                ? ", and block formats are only for tf32dtype report and"
                                  " tf32dtype compare"
                                : "";
        snprintf(complaint, sizeof complaint, "\"%.40s\" is not a precision%s", name, block);
        return -1;
    }
    precision_name = row->name;
    is_scaled = strncmp(row->name, "fp8", 3) == 0;
    is_split = row->parts > 1;
    is_tf32 = strcmp(row->name, "tf32") == 0;
    mode.device.precision = (struct tf_precision){
        .format = row->format,
        .parts = row->parts,
        .split_orders = row->split_orders,
        .scaling = is_scaled ? TF_SCALED_MATRIX : TF_UNSCALED,
    };
    return 0;
}

static int set_word(const char *word)
{
    struct tf_precision *precision = &mode.device.precision;
    const struct {
        const char *word;
        int *field, value;
        int is_for; /* whether the precision has a use for it */
    } words[] = {
        {"float64", &mode.float64, 1, 1},
        {"complex64", &mode.complex64, 1, 1},
        {"dots", &mode.dots, 1, 1},
        {"lapack", &mode.lapack, 1, 1},
        {"quiet", &is_quiet, 1, 1},
        {"rounding=ties_to_even", &precision->rounding, TF_TIES_TO_EVEN, 1},
        {"rounding=ties_to_away", &precision->rounding, TF_TIES_TO_AWAY, is_tf32},
        {"rounding=toward_zero", &precision->rounding, TF_TOWARD_ZERO, is_tf32},
        {"scale=tensor", &precision->scaling,
         is_scaled ? TF_SCALED_MATRIX : TF_UNSCALED, 1},
        {"scale=row", &precision->scaling, TF_SCALED_LINES, is_scaled},
        {"special_values=propagate", &precision->saturates, 0, 1},
        {"special_values=saturate", &precision->saturates, 1, is_split},
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcmp(word, words[i].word) == 0 && words[i].is_for) {
            *words[i].field = words[i].value;
            return 0;
        }
    }
    if (strncmp(word, "min_size=", 9) == 0) {
        char *end;
        errno = 0;
        mode.min_size = strtol(word + 9, &end, 10);
        if (*end == '\0' && end > word + 9 && mode.min_size >= 0 && errno == 0) {
            return 0;
        }
    }
    snprintf(complaint, sizeof complaint,
             "TF32DTYPE_BLAS must not have the option \"%.40s\" with %s", word,
             precision_name);
    return -1;
}

static void read_settings(void)
{
    const char *name = getenv("TF32DTYPE_MATMUL_PRECISION"), *words = getenv("TF32DTYPE_BLAS");
    if (!name || !*name || set_precision(name)) {
        return;
    }
    char *copy = strdup(words ? words : ""), *rest = copy, *word;
    int is_wrong = 0;
    while (copy && (word = strsep(&rest, ","))) {
        is_wrong |= *word && set_word(word);
    }
    if (is_wrong) {
        precision_name = NULL; /* do not use settings of which a part is wrong */
    }
    free(copy);
}

/* -- the process ------------------------------------------------------------------- */

static void prepare(void)
{
    const char *isa = getenv("TF32DTYPE_ISA");
    if (!tf_isa_choose(isa ? isa : "")) {
        tf_isa_choose("");
    }
    tf_byte_tables_fill();
    tf_matmul_prepare();
}

/* Returns the mode of all calls, or NULL. Fills the tables at the first call, because most
 * processes never call BLAS. */
static const struct tf_blas_mode *find_mode(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (!precision_name || other_total) {
        return NULL;
    }
    pthread_once(&once, prepare);
    return &mode;
}

__attribute__((constructor)) static void begin(void)
{
    began_in = getpid();
    read_settings();
    tf_blas_set_mode_finder(find_mode);
    tf_blas_begin();
    if (precision_name && mode.lapack && tf_blas_enter_lapack() < 0) {
        snprintf(complaint, sizeof complaint, "the system forbids changes to LAPACK's code");
    }
}

void tf32dtype_preload_end(tf32dtype_total_fn *total)
{
    if (!other_total) {
        other_total = total;
        complaint[0] = '\0'; /* tf32dtype prints its own complaint */
        tf_blas_end();
    }
}

struct sum {
    unsigned long long calls, multiply_adds;
};

static void add(struct sum *sum, const struct tf_blas_count *count)
{
    sum->calls += count->calls;
    sum->multiply_adds += count->multiply_adds;
}

/* Why a product was not emulated, in the order of enum tf_blas_fate. */
static const char *const reasons[TF_FATES] = {
    "", "",   "no precision is set",  "float64 is not set", "complex64 is not set",
    "dots is not set", "below min_size", "outside the region",  "in another thread",
    "memory was short",
};

static void add_all(struct sum fates[TF_FATES], struct sum *all,
                    tf32dtype_total_fn *get_total)
{
    static struct tf_blas_counts total;
    get_total(&total);
    for (int fate = 0; fate < TF_FATES; fate++) {
        for (int type = 0; type < TF_BLAS_TYPES; type++) {
            for (int routine = 0; routine < TF_BLAS_ROUTINES; routine++) {
                add(&fates[fate], &total.of[fate][type][routine]);
                add(all, &total.of[fate][type][routine]);
            }
        }
    }
}

static unsigned long long lapack_calls(void)
{
    const struct tf_named_count *count;
    unsigned long long calls = 0;
    for (int i = 0; (count = tf_named_counts(i)); i++) {
        calls += count->kind == TF_LAPACK_CALL ? count->calls : 0;
    }
    return calls;
}

__attribute__((destructor)) static void tell(void)
{
    struct sum fates[TF_FATES] = {{0, 0}}, all = {0, 0};
    const unsigned long long lapack = lapack_calls();
    if (is_quiet || getpid() != began_in || tf_counts_are_shared()) {
        return; /* a forked child, or a process whose counts another process prints */
    }
    add_all(fates, &all, tf_blas_total);
    if (other_total) {
        add_all(fates, &all, other_total);
    }
    /* NumPy computes a dot of two elements when it is imported. */
    const int is_numpys =
        all.calls == 1 && all.multiply_adds == 2 && fates[TF_IS_DOT].calls == 1;
    if ((all.calls == 0 || is_numpys) && lapack == 0) {
        return;
    }
    fprintf(stderr, "tf32dtype: %s (%d): ", program_invocation_short_name, (int)began_in);
    if (complaint[0]) {
        fprintf(stderr, "%s; ", complaint);
    }
    fprintf(stderr, "%llu of %llu matrix multiplications ran in %s",
            fates[TF_OBEYED].calls + fates[TF_OBEYED_OTHER].calls, all.calls,
            precision_name && !other_total ? precision_name : "a chosen precision");
    if (all.multiply_adds) {
        const unsigned long long emulated =
            fates[TF_OBEYED].multiply_adds + fates[TF_OBEYED_OTHER].multiply_adds;
        fprintf(stderr, " (%.1f %% of all multiply-adds)",
                100.0 * (double)emulated / (double)all.multiply_adds);
    }
    for (int fate = TF_NO_PRECISION; fate < TF_FATES; fate++) {
        if (fates[fate].calls) {
            fprintf(stderr, "; unchanged: %llu (%s)", fates[fate].calls, reasons[fate]);
        }
    }
    if (lapack) {
        fprintf(stderr, "; unchanged: %llu calls of LAPACK%s", lapack,
                mode.lapack ? " except their matrix multiplications" : "");
    }
    fputs("\n", stderr);
}
