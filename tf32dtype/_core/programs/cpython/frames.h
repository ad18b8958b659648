/* The layout of this CPython's frames, one file for each version.
 *
 * Each file defines TF_FRAMES_ARE_KNOWN, the type Frame, and
 *     first_frame_of(state)   the innermost frame of a thread; NULL: it has none
 *     code_in(frame)          the frame's code; NULL: it runs none
 *     offset_in(frame, code)  the bytes from the code's first instruction to the present one
 *     frame_before(frame)     the frame that called this one; NULL: none did
 *     local_in(frame, i)      a local variable, or the cell of it; NULL: it has no value
 * Its members f_globals and f_locals are the same in all versions. */
#ifndef TF32DTYPE_PROGRAMS_CPYTHON_FRAMES_H
#define TF32DTYPE_PROGRAMS_CPYTHON_FRAMES_H

#if PY_VERSION_HEX < 0x030c0000
#include "programs/cpython/frames_3_11.h"
#elif PY_VERSION_HEX < 0x030d0000
#include "programs/cpython/frames_3_12.h"
#elif PY_VERSION_HEX < 0x030e0000
#include "programs/cpython/frames_3_13.h"
#elif PY_VERSION_HEX < 0x030f0000
#include "programs/cpython/frames_3_14.h"
#else
#include "programs/cpython/frames_unknown.h"
#endif

static inline const Frame *frame_before(const Frame *frame) { return frame->previous; }

#endif
