/* Finds the functions of a library that need a jump, and calls C's interface in their
 * stead. */
#define _GNU_SOURCE /* dladdr1 */

#include "programs/blas/entries.h"

#if TF_HAVE_STUBS

#include <ctype.h>
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

#include "programs/hooks/jumps.h"

/* -- entries ------------------------------------------------------------------------ */

/* The arguments of a routine in Fortran's order: T, U, D, S are options (transpose, upper,
 * diagonal, side), I an integer, A a scalar of the routine's type, R a real scalar, P a
 * pointer. C's interface has an order of rows before them, except for dots. */
static const struct routine {
    const char *name, *types, *arguments;
} routines[] = {
    {"gemm", "sdcz", "TTIIIAPIPIAPI"},  {"gemm3m", "cz", "TTIIIAPIPIAPI"},
    {"gemmt", "sdcz", "UTTIIAPIPIAPI"}, {"gemmtr", "sdcz", "UTTIIAPIPIAPI"},
    {"symm", "sdcz", "SUIIAPIPIAPI"},   {"hemm", "cz", "SUIIAPIPIAPI"},
    {"syrk", "sdcz", "UTIIAPIAPI"},     {"herk", "cz", "UTIIRPIRPI"},
    {"syr2k", "sdcz", "UTIIAPIPIAPI"},  {"her2k", "cz", "UTIIAPIPIRPI"},
    {"trmm", "sdcz", "SUTDIIAPIPI"},    {"gemv", "sdcz", "TIIAPIPIAPI"},
    {"symv", "sd", "UIAPIPIAPI"},       {"hemv", "cz", "UIAPIPIAPI"},
    {"trmv", "sdcz", "UTDIPIPI"},       {"dot", "sd", "IPIPI"},
};

static const struct form {
    const char *fortran, *c; /* with the name between */
} forms[] = {
    {"scipy_%c%s_", "scipy_cblas_%c%s"},
    {"scipy_%c%s_64_", "scipy_cblas_%c%s64_"},
    {"%c%s_", "cblas_%c%s"},
    {"%c%s_64_", "cblas_%c%s64_"},
};

/* Returns a function that the library defines itself; NULL if it does not, or if the
 * function has fewer than `least` bytes, which a jump needs. */
static void *function_in(void *handle, const void *base, const char *name, size_t least)
{
    Dl_info info;
    const ElfW(Sym) *symbol = NULL;
    void *address = dlsym(handle, name);
    if (!address || !dladdr1(address, &info, (void **)&symbol, RTLD_DL_SYMENT) ||
        info.dli_fbase != base || (least && (!symbol || symbol->st_size < least))) {
        return NULL;
    }
    return address;
}

void tf_find_entries(const void *function,
                     void (*each)(const struct tf_entry *entry, const char *library))
{
    Dl_info library;
    char fortran[48], c[48];
    if (!dladdr(function, &library) || !library.dli_fname || !*library.dli_fname) {
        return;
    }
    void *handle = dlopen(library.dli_fname, RTLD_NOLOAD | RTLD_LAZY);
    if (!handle) {
        return; /* the executable, which dlopen cannot open by its name */
    }
    for (size_t f = 0; f < sizeof forms / sizeof *forms; f++) {
        snprintf(fortran, sizeof fortran, forms[f].fortran, 'd', "getrf");
        if (!function_in(handle, library.dli_fbase, fortran, 0)) {
            continue;
        }
        for (size_t r = 0; r < sizeof routines / sizeof *routines; r++) {
            for (const char *type = routines[r].types; *type; type++) {
                struct tf_entry entry;
                snprintf(fortran, sizeof fortran, forms[f].fortran, *type,
                         routines[r].name);
                snprintf(c, sizeof c, forms[f].c, *type, routines[r].name);
                entry.address = function_in(handle, library.dli_fbase, fortran, TF_JUMP);
                entry.twin = function_in(handle, library.dli_fbase, c, 0);
                if (entry.address && entry.twin &&
                    tf_blas_read_name(fortran, &entry.name) == 0) {
                    each(&entry, library.dli_fname);
                }
            }
        }
    }
    dlclose(handle);
}

/* -- the twin ----------------------------------------------------------------------- */

static int number_of(char kind, const char *letter)
{
    const char *letters = kind == 'T' ? "NTC" : kind == 'U' ? "UL" : kind == 'D' ? "NU" : "LR";
    const int first = kind == 'T' ? 111 : kind == 'U' ? 121 : kind == 'D' ? 131 : 141;
    const char *found = strchr(letters, toupper((unsigned char)*letter));
    return found && *found ? first + (int)(found - letters) : 0; /* which C refuses too */
}

static const char *arguments_of(const struct tf_blas_name *name)
{
    const char *plain = tf_blas_routine_name(name->routine);
    for (size_t r = 0; r < sizeof routines / sizeof *routines; r++) {
        if (strcmp(routines[r].name, plain) == 0) {
            return routines[r].arguments; /* also for gemm3m, gemmtr */
        }
    }
    return "";
}

void tf_call_twin(const struct tf_entry *entry, struct tf_call *call)
{
    const struct tf_blas_name *name = &entry->name;
    const int is_complex = tf_blas_is_complex(name->type);
    const int is_single = name->type == 's' || name->type == 'c';
    struct tf_stub twin = {.original = entry->twin};
    struct tf_call by_value = {.stub = &twin};
    int64_t stack[32] = {0}, words[16];
    int count = 0, floats = 0, i = 0;
    if (name->routine != TF_BLAS_DOT) {
        words[count++] = 102; /* CblasColMajor */
    }
    for (const char *kind = arguments_of(name); *kind; kind++, i++) {
        const int64_t word = i < TF_INTEGER_REGISTERS
                                 ? call->integers[i]
                                 : call->stack[i - TF_INTEGER_REGISTERS];
        const void *at = (const void *)(uintptr_t)word;
        if (strchr("TUDS", *kind)) {
            words[count++] = number_of(*kind, at);
        } else if (*kind == 'I') {
            words[count++] = name->wide ? *(const int64_t *)at : *(const int32_t *)at;
        } else if (*kind == 'P' || (*kind == 'A' && is_complex)) {
            words[count++] = word;
        } else {
            memcpy(&by_value.floating[floats++][0], at,
                   is_single ? sizeof(float) : sizeof(double));
        }
    }
    for (int w = 0; w < count; w++) {
        if (w < TF_INTEGER_REGISTERS) {
            by_value.integers[w] = words[w];
        } else {
            stack[w - TF_INTEGER_REGISTERS] = words[w];
        }
    }
    by_value.stack = stack;
    tf_stub_call(&by_value);
    memcpy(call->floating, by_value.floating, 2 * sizeof by_value.floating[0]);
    call->result = by_value.result;
}

#else

void tf_find_entries(const void *function,
                     void (*each)(const struct tf_entry *entry, const char *library))
{
    (void)function;
    (void)each;
}

void tf_call_twin(const struct tf_entry *entry, struct tf_call *call)
{
    (void)entry;
    (void)call;
}

#endif
