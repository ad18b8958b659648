/* Recognizes the symbols of LAPACK's drivers and factorizations, and of triangular
 * solves. */
#include "programs/blas/lapack_names.h"

#include <string.h>

#include "programs/blas/counts.h"

/* Names without the letter of the type. */
static const char *const lapack[] = {
    /* linear equations */
    "gesv", "gesvx", "posv", "sysv", "hesv", "gbsv", "getrf", "getrs", "getri", "potrf",
    "potrs", "potri", "pbsv", "pbtrf", "pbtrs", "gbtrf", "gbtrs", "gtsv", "ptsv", "sytrf", "hetrf", "sytrs", "hetrs", "trtri", "trtrs", "lauum",
    /* least squares, orthogonal factors */
    "gels", "gelsd", "gelss", "gelsy", "geqrf", "geqp3", "gelqf", "gerqf", "orgqr",
    "ungqr", "ormqr", "unmqr", "orglq", "unglq",
    /* eigenvalues, singular values */
    "syev", "syevd", "syevr", "syevx", "heev", "heevd", "heevr", "heevx", "sygv", "sygvd",
    "sygvx", "sbev", "sbevd", "sbevx", "hbev", "hbevd", "hbevx", "hegv", "hegvd", "hegvx", "stev", "stevd", "stevr", "stebz", "geev", "geevx",
    "ggev", "ggevx", "gees", "gges", "gehrd", "hseqr", "gesvd", "gesdd", "trsyl", "trsen",
    "orcsd", "uncsd",
};
static const char *const solves[] = {"trsm", "trsv"};

static int is_among(const char *const *names, size_t count, const char *name, size_t n)
{
    for (size_t i = 0; i < count; i++) {
        if (strlen(names[i]) == n && memcmp(names[i], name, n) == 0) {
            return 1;
        }
    }
    return 0;
}

int tf_lapack_read_name(const char *symbol, char *plain, size_t room)
{
    if (strncmp(symbol, "scipy_", 6) == 0) {
        symbol += 6;
    }
    const int cblas = strncmp(symbol, "cblas_", 6) == 0;
    symbol += cblas ? 6 : 0;
    if (!symbol[0] || !strchr("sdcz", symbol[0])) {
        return -1;
    }
    const size_t n = strcspn(symbol + 1, "_6");
    const char *suffix = symbol + 1 + n;
    const char *const known[] = {"", "_", "64_", "_64", "_64_"};
    int kind = -1;
    if (is_among(lapack, sizeof lapack / sizeof *lapack, symbol + 1, n) && !cblas) {
        kind = TF_LAPACK_CALL;
    } else if (is_among(solves, sizeof solves / sizeof *solves, symbol + 1, n)) {
        kind = TF_SOLVE_CALL;
    }
    if (kind < 0 || n + 2 > room || !is_among(known, 5, suffix, strlen(suffix))) {
        return -1;
    }
    memcpy(plain, symbol, n + 1);
    plain[n + 1] = '\0';
    return kind;
}
