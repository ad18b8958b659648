/* ldmatrix and mma.sync for simt.h. The elements of each lane follow the figures of PTX ISA
 * 9, never the kernels' headers. The arithmetic is src/tensor_core/mma_model.h with the rows
 * of tf32dtype/tensor_core/models.py for an architecture. */
#include "tensor_core/mma_model.h"

/* 80 for sm_80, 90 for sm_90a, ...; backend.py sets it. */
extern "C" {
int simt_architecture = 90;
int simt_conflicts; /* counts matrices of ldmatrix with two rows in the same banks */
}

namespace simt {

/* -- ldmatrix: 9.7.14.5.15 ------------------------------------------------------------- */

inline const unsigned char *matrix_rows[1024];

} // namespace simt

/* Loads four 8x8 matrices of 16-bit elements, by ldmatrix .x4. "Threads 8i to 8i + 7 hold the
 * addresses of the rows of matrix i"; "each thread receives a fragment of a row". By the
 * figure "ldmatrix fragment layout for one 8x8 matrix with 16-bit elements", thread T has
 * elements 2 (T % 4) and 2 (T % 4) + 1 of row T / 4. With .trans "the matrix is loaded in
 * column-major format". */
inline void simt_load_matrices(uint32_t *r, const void *row, bool transposed)
{
    using namespace simt;
    if ((uintptr_t)row % 16) {
        error = "ldmatrix of an address that is not a multiple of 16";
    }
    const unsigned me = rank(thread_index), first = me / 32 * 32, t = me % 32;
    matrix_rows[me] = (const unsigned char *)row;
    yield(WARP);
    if (t % 8 == 0) { /* 32 banks of 4 bytes take 8 rows of 16 bytes */
        unsigned banks = 0;
        for (unsigned i = 0; i < 8; i++) {
            banks |= 1u << (uintptr_t)matrix_rows[me + i] / 16 % 8;
        }
        simt_conflicts += banks != 0xFF;
    }
    for (unsigned matrix = 0; matrix < 4; matrix++) {
        r[matrix] = 0;
        for (unsigned i = 0; i < 2; i++) {
            const unsigned line = t / 4, place = t % 4 * 2 + i;
            uint16_t element;
            memcpy(&element,
                   matrix_rows[first + 8 * matrix + (transposed ? place : line)] +
                       2 * (transposed ? line : place),
                   2);
            r[matrix] |= (uint32_t)element << 16 * i;
        }
    }
    yield(WARP);
}

namespace simt {

/* -- mma.sync: 9.7.14.5, "Matrix Fragments for mma" ---------------------------------- */

struct Place {
    int row, column;
};

/* Returns row and column of element i of A in a lane. Sources: figures 75 and 76 for m16n8k8
 * with .tf32, 79 and 80 for m16n8k16 with .f16 and .bf16, 88 to 90 for m16n8k32 with .e4m3
 * and .e5m2. m16n8k8 with .bf16 has the first elements of m16n8k16. Its A is "row: groupID
 * for a0 and a1, groupID + 8 for a2 and a3; col: threadID_in_group * 2 + (i & 0x1)". Its B
 * is "row: (threadID_in_group * 2) + i; col: groupID". */
inline Place place_a(int bits, int lane, int i)
{
    const int group = lane >> 2, member = lane % 4;
    switch (bits) {
    case 32: /* row groupID for a0 and a2, column threadID_in_group for a0 and a1 */
        return {i == 0 || i == 2 ? group : group + 8,
                i == 0 || i == 1 ? member : member + 4};
    case 16:
        return {(0 <= i && i < 2) || (4 <= i && i < 6) ? group : group + 8,
                i < 4 ? member * 2 + (i & 1) : member * 2 + (i & 1) + 8};
    default:
        return {(0 <= i && i < 4) || (8 <= i && i < 12) ? group : group + 8,
                i < 8 ? member * 4 + (i & 3) : member * 4 + (i & 3) + 16};
    }
}

inline Place place_b(int bits, int lane, int i)
{
    const int group = lane >> 2, member = lane % 4;
    switch (bits) {
    case 32: return {i == 0 ? member : member + 4, group};
    case 16: return {i < 2 ? member * 2 + (i & 1) : member * 2 + (i & 1) + 8, group};
    default: return {i < 4 ? member * 4 + (i & 3) : member * 4 + (i & 3) + 16, group};
    }
}

inline Place place_d(int lane, int i)
{
    const int group = lane >> 2, member = lane % 4;
    return {i < 2 ? group : group + 8, member * 2 + (i & 1)};
}

/* Lane and number of each element of A and of B (by column). */
struct Fragments {
    Place a[16][32], b[8][32];
    Fragments(int bits, int depth)
    {
        for (int lane = 0; lane < 32; lane++) {
            for (int i = 0; i < 16 * depth / 32; i++) {
                const Place p = place_a(bits, lane, i);
                a[p.row][p.column] = {lane, i};
            }
            for (int i = 0; i < 8 * depth / 32; i++) {
                const Place p = place_b(bits, lane, i);
                b[p.column][p.row] = {lane, i};
            }
        }
    }
};

/* An operand's format, with the conversion of its codes to the bits of float32. */
struct Operand {
    const char *name;
    int bits, exponent_bits, mantissa_bits, least, has_infinity;

    uint32_t number(uint32_t code) const
    {
        if (bits == 32) { /* the unit ignores the low bits */
            return code & 0xFFFFE000u;
        }
        const uint32_t fraction = code & ((1u << mantissa_bits) - 1);
        const uint32_t top = (1u << exponent_bits) - 1;
        const uint32_t field = code >> mantissa_bits & top;
        const uint32_t sign = code >> (bits - 1) << 31;
        if (field == top && has_infinity) {
            return sign | 0x7F800000u | fraction << (23 - mantissa_bits);
        }
        if (field == top && fraction == (1u << mantissa_bits) - 1) { /* NaN of e4m3 */
            return sign | 0x7FC00000u;
        }
        const double x = ldexp((double)(fraction | (field ? 1u << mantissa_bits : 0)),
                               least + (field ? (int)field - 1 : 0) - mantissa_bits);
        const float single = (float)x;
        uint32_t y;
        memcpy(&y, &single, 4);
        return sign | y;
    }
};

inline const Operand operands[] = {{"tf32", 32, 8, 10, -126, 1},
                                   {"bf16", 16, 8, 7, -126, 1},
                                   {"f16", 16, 5, 10, -14, 1},
                                   {"e4m3", 8, 4, 3, -6, 0},
                                   {"e5m2", 8, 5, 2, -14, 1}};

/* An instruction as an architecture computes it. */
struct Instruction {
    const Operand *a, *b;
    int depth;
    tf_mma_model model;
    const Fragments *fragments;
    std::vector<uint32_t> numbers_a, numbers_b; /* by code, of up to 16 bits */
};

inline const Instruction *instruction(const char *unit)
{
    static std::vector<std::pair<std::pair<std::string, int>, Instruction *>> known;
    const std::pair<std::string, int> key{unit, simt_architecture};
    for (const auto &[name, found] : known) {
        if (name == key) {
            return found;
        }
    }
    static const Fragments of_32(32, 8), of_16(16, 16), of_8(8, 32), half_of_16(16, 8);
    auto *made = new Instruction{};
    for (const Operand &a : operands) {
        for (const Operand &b : operands) {
            for (int depth : {256 / a.bits, 8}) {
                char name[80];
                snprintf(name, sizeof name, "m16n8k%d.row.col.f32.%s.%s.f32", depth,
                         a.name, b.name);
                if (strcmp(name, unit) == 0 && (&a == &b || a.bits == 8) &&
                    (depth == 256 / a.bits || a.bits == 16)) {
                    made->a = &a;
                    made->b = &b;
                    made->depth = depth;
                }
            }
        }
    }
    const int arch = simt_architecture;
    const bool eight = made->a && made->a->bits == 8;
    if (!made->a || made->a->bits != made->b->bits || arch < 80 || (eight && arch < 89)) {
        error = "no such mma.sync on this architecture";
        return nullptr;
    }
    const int bits = made->a->bits;
    made->fragments = bits == 32            ? &of_32
                      : bits == 8           ? &of_8
                      : made->depth == 8    ? &half_of_16
                                            : &of_16;
    tf_mma_model &model = made->model;
    model.instruction_depth = made->depth;
    model.emulated = eight && (arch == 90 || arch == 100);
    const int whole = 256 / bits;
    model.depth = (!eight && arch < 90) || (eight && arch < 120) ? whole / 2 : whole;
    model.depth = std::min(model.depth, made->depth);
    model.fraction = eight && arch == 89 ? 13 : arch < 90 ? 24 : 25;
    model.kept = eight && arch == 89 ? 13 : 23;
    model.floor = model.fraction == 24 ? -132 : model.fraction == 25 ? -133 : TF_NO_EXPONENT;
    model.zero_c = TF_NO_EXPONENT;
    model.least_a = model.emulated ? -14 : made->a->least;
    model.least_b = model.emulated ? -14 : made->b->least;
    for (uint32_t code = 0; bits < 32 && code < 1u << bits; code++) {
        made->numbers_a.push_back(made->a->number(code));
        made->numbers_b.push_back(made->b->number(code));
    }
    known.emplace_back(key, made);
    return made;
}

inline uint32_t fragments_a[1024][4], fragments_b[1024][2];

} // namespace simt

inline void simt_mma(const char *unit, float *d, const uint32_t *a, const uint32_t *b,
                     const float *accumulators)
{
    using namespace simt;
    const Instruction *does = instruction(unit);
    const unsigned me = rank(thread_index), first = me / 32 * 32;
    const size_t words = does ? (size_t)(does->depth * does->a->bits / 64) : 0;
    memcpy(fragments_a[me], a, words * 4); /* 4 registers for a whole step of k */
    memcpy(fragments_b[me], b, words * 2);
    yield(WARP);
    if (does) {
        const int bits = does->a->bits, each = 32 / bits;
        const uint32_t mask = bits == 32 ? ~0u : (1u << bits) - 1;
        for (int i = 0; i < 4; i++) {
            const Place at = place_d((int)(me % 32), i);
            uint32_t x[32], y[32], c;
            for (int k = 0; k < does->depth; k++) {
                const Place p = does->fragments->a[at.row][k];
                const Place q = does->fragments->b[at.column][k];
                const uint32_t code_a =
                    fragments_a[first + p.row][p.column / each] >> p.column % each * bits;
                const uint32_t code_b =
                    fragments_b[first + q.row][q.column / each] >> q.column % each * bits;
                x[k] = bits == 32 ? does->a->number(code_a)
                                  : does->numbers_a[code_a & mask];
                y[k] = bits == 32 ? does->b->number(code_b)
                                  : does->numbers_b[code_b & mask];
            }
            memcpy(&c, &accumulators[i], 4);
            c = tf_mma_accumulate(&does->model, x, 1, y, 1, does->depth, c, 0);
            memcpy(&d[i], &c, 4);
        }
    }
    yield(WARP);
}
