/* Put before every file of a wheel by tools/wheels: names the versions of glibc's functions
 * that have been there since 2.17 and before, for which a newer one is declared by the
 * headers of a newer glibc. Their results are the same. */
#ifndef TF32DTYPE_TOOLS_GLIBC_2_17_H
#define TF32DTYPE_TOOLS_GLIBC_2_17_H

#if defined(__x86_64__)
#define FIRST "GLIBC_2.2.5"
#elif defined(__aarch64__)
#define FIRST "GLIBC_2.17"
#endif

/* Since 2.29 a second version does not call what a program has defined as matherr. */
#if defined(FIRST)
__asm__(".symver exp, exp@" FIRST);
__asm__(".symver exp2, exp2@" FIRST);
__asm__(".symver log, log@" FIRST);
__asm__(".symver log2, log2@" FIRST);
__asm__(".symver pow, pow@" FIRST);
#undef FIRST
#endif

#endif
