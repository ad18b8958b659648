/* Reads names of BLAS's functions: prefix, interface, type, routine, suffix. */
#include <ctype.h>
#include <string.h>

#include "programs/blas/blas_call.h"

/* A routine, by its name after the letter of the type, and the interfaces that have it. */
struct routine {
    const char *name, *types;
    int routine; /* enum tf_blas_routine */
    int cblas, fortran;
    int sub, wider; /* as in struct tf_blas_name */
};

static const struct routine routines[] = {
    {"gemm", "sdcz", TF_BLAS_GEMM, 1, 1, 0, 0},
    {"gemm3m", "cz", TF_BLAS_GEMM, 1, 1, 0, 0},
    {"gemm_batch", "sdcz", TF_BLAS_GEMM_BATCH, 1, 0, 0, 0},
    {"gemm_batch_strided", "sdcz", TF_BLAS_GEMM_BATCH_STRIDED, 1, 0, 0, 0},
    {"gemmt", "sdcz", TF_BLAS_GEMMT, 1, 1, 0, 0},
    {"gemmtr", "sdcz", TF_BLAS_GEMMT, 1, 1, 0, 0},
    {"symm", "sdcz", TF_BLAS_SYMM, 1, 1, 0, 0},
    {"hemm", "cz", TF_BLAS_HEMM, 1, 1, 0, 0},
    {"syrk", "sdcz", TF_BLAS_SYRK, 1, 1, 0, 0},
    {"herk", "cz", TF_BLAS_HERK, 1, 1, 0, 0},
    {"syr2k", "sdcz", TF_BLAS_SYR2K, 1, 1, 0, 0},
    {"her2k", "cz", TF_BLAS_HER2K, 1, 1, 0, 0},
    {"trmm", "sdcz", TF_BLAS_TRMM, 1, 1, 0, 0},
    {"gemv", "sdcz", TF_BLAS_GEMV, 1, 1, 0, 0},
    {"symv", "sd", TF_BLAS_SYMV, 1, 1, 0, 0},
    {"hemv", "cz", TF_BLAS_HEMV, 1, 1, 0, 0},
    {"trmv", "sdcz", TF_BLAS_TRMV, 1, 1, 0, 0},
    {"dot", "sd", TF_BLAS_DOT, 1, 1, 0, 0},
    {"sdot", "d", TF_BLAS_DOT, 1, 1, 0, 1},
    {"dsdot", "s", TF_BLAS_DOT, 1, 1, 0, 2},
    {"dotu", "cz", TF_BLAS_DOT, 0, 1, 0, 0},
    {"dotc", "cz", TF_BLAS_DOTC, 0, 1, 0, 0},
    {"dotu_sub", "cz", TF_BLAS_DOT, 1, 0, 1, 0},
    {"dotc_sub", "cz", TF_BLAS_DOTC, 1, 0, 1, 0},
};

/* A suffix of a routine, its interface, and whether "scipy_" may precede such a name. */
static const struct suffix {
    const char *text;
    int cblas, with_scipy, wide;
} suffixes[] = {
    {"", 1, 1, 0},  {"64_", 1, 1, 1},  {"_64", 1, 0, 1},
    {"_", 0, 1, 0}, {"_64_", 0, 1, 1}, {"", 0, 0, 0},    {"_64", 0, 0, 1},
};

static int skip(const char **text, const char *prefix)
{
    const size_t n = strlen(prefix);
    if (strncmp(*text, prefix, n) != 0) {
        return 0;
    }
    *text += n;
    return 1;
}

static const struct suffix *suffix_of(const char *text, int cblas, int scipy)
{
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
        const struct suffix *s = &suffixes[i];
        if (s->cblas == cblas && s->with_scipy >= scipy && strcmp(text, s->text) == 0) {
            return s;
        }
    }
    return NULL;
}

/* Reads a name in small letters, from its type on. Returns 0, or -1 if it is not known. */
static int read_routine(const char *text, int cblas, int scipy, struct tf_blas_name *name)
{
    for (size_t i = 0; text[0] && i < sizeof routines / sizeof routines[0]; i++) {
        const struct routine *r = &routines[i];
        const char *rest = text + 1;
        if (!(cblas ? r->cblas : r->fortran) || !strchr(r->types, text[0]) ||
            !skip(&rest, r->name)) {
            continue;
        }
        const struct suffix *suffix = suffix_of(rest, cblas, scipy);
        if (suffix) {
            *name = (struct tf_blas_name){
                .routine = r->routine,
                .type = r->wider ? 's' : text[0],
                .cblas = cblas,
                .wide = suffix->wide,
                .sub = r->sub,
                .wider = r->wider,
            };
            return 0;
        }
    }
    return -1;
}

/* Reads a name of MKL's in capitals, without prefix or suffix. Returns 0 or -1. */
static int read_capitals(const char *symbol, struct tf_blas_name *name)
{
    char small[8] = ""; /* SGEMMTR */
    const size_t n = strlen(symbol);
    if (n >= sizeof small) {
        return -1;
    }
    for (size_t i = 0; i < n; i++) {
        if (!isupper((unsigned char)symbol[i]) && !isdigit((unsigned char)symbol[i])) {
            return -1;
        }
        small[i] = (char)tolower((unsigned char)symbol[i]);
    }
    return read_routine(small, 0, 0, name);
}

int tf_blas_read_name(const char *symbol, struct tf_blas_name *name)
{
    if (isupper((unsigned char)symbol[0])) {
        return read_capitals(symbol, name);
    }
    const int scipy = skip(&symbol, "scipy_");
    const int cblas = skip(&symbol, "cblas_");
    return read_routine(symbol, cblas, scipy, name);
}

const char *tf_blas_routine_name(int routine)
{
    static const char *const names[TF_BLAS_ROUTINES] = {
        [TF_BLAS_GEMM] = "gemm",
        [TF_BLAS_GEMM_BATCH] = "gemm_batch",
        [TF_BLAS_GEMM_BATCH_STRIDED] = "gemm_batch_strided",
        [TF_BLAS_GEMMT] = "gemmt",
        [TF_BLAS_SYMM] = "symm",
        [TF_BLAS_HEMM] = "hemm",
        [TF_BLAS_SYRK] = "syrk",
        [TF_BLAS_HERK] = "herk",
        [TF_BLAS_SYR2K] = "syr2k",
        [TF_BLAS_HER2K] = "her2k",
        [TF_BLAS_TRMM] = "trmm",
        [TF_BLAS_GEMV] = "gemv",
        [TF_BLAS_SYMV] = "symv",
        [TF_BLAS_HEMV] = "hemv",
        [TF_BLAS_TRMV] = "trmv",
        [TF_BLAS_DOT] = "dot",
        [TF_BLAS_DOTC] = "dotc",
    };
    return names[routine];
}
