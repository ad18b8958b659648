/* Runs one instruction of a tensor core on tiles in memory, as bits.
 *
 * Options of the compilation choose it (see tools/tensor_core_recorder/instructions.py):
 *
 *   WGMMA  1 for wgmma, 0 for mma.sync
 *   UNIT   its name after "mma.sync.aligned." or "wgmma.mma_async.sync.aligned."
 *   ROWS   rows of A, C and D: 8, 16 or 64; there are always 8 columns
 *   WORDS  32-bit words of k: 2, 4 or 8
 *   HALF   1 for float16 accumulators
 *   TAIL   the text after the scales in wgmma's list: two bits that transpose, or nothing
 *
 * In memory a tile's A is [ROWS][WORDS] and its B is [8][WORDS], column by column: k is
 * innermost, packed into little-endian words. C and D are [ROWS][8], one word per
 * element. So a register of a fragment is a word of the tile in every format.
 *
 * The file includes no header: NVRTC has none, and all arithmetic is the instruction's.
 */
typedef unsigned int u32;
typedef unsigned long long u64;

#define COLUMNS 8
#define VOLTA (ROWS == 8) /* m8n8k4 */
#define A_WORDS (VOLTA ? 2 : WORDS / 2)
#define B_WORDS (VOLTA ? 2 : WORDS / 4)
#define ELEMENTS (VOLTA ? 8 : 4) /* of C and D per thread */
#define THREADS (WGMMA ? 128 : 32)

/* -- positions of a thread's registers in a tile ------------------------------------------
 *
 * PTX ISA 9, 9.7.14.5, "Matrix Fragments for mma": m8n8k4 is in figure 46 and after,
 * m16n8k4 in 65, m16n8k8 in 71, m16n8k16 in 79 (8-bit formats: 84), and m16n8k32 in 88.
 * 9.7.15.5.1.1, figures 149, 151 and 153, has D of wgmma: warp w of the four has rows 16 w
 * to 16 w + 15, with m16n8's layout. All four groups of eight threads of m8n8k4 are given
 * the same tile. */

static __device__ int volta(int lane) { return lane % 4 + (lane < 16 ? 0 : 4); }

static __device__ int d_row(int lane, int i) {
    if (!VOLTA)
        return lane / 32 * 16 + lane % 32 / 4 + i / 2 * 8;
    return HALF ? volta(lane) : lane % 2 + i / 2 % 2 * 2 + (lane < 16 ? 0 : 4);
}

static __device__ int d_column(int lane, int i) {
    if (!VOLTA)
        return lane % 4 * 2 + i % 2;
    return HALF ? i : i / 4 * 4 + lane / 2 % 2 * 2 + i % 2;
}

static __device__ void load(u32 *r, const u32 *tile, int lane) {
    for (int i = 0; i < ELEMENTS; i++) {
        u32 x = tile[d_row(lane, i) * COLUMNS + d_column(lane, i)];
        if (!HALF)
            r[i] = x;
        else
            r[i / 2] = i % 2 ? r[i / 2] | x << 16 : x;
    }
}

static __device__ void store(u32 *tile, const u32 *r, int lane) {
    for (int i = 0; i < ELEMENTS; i++)
        tile[d_row(lane, i) * COLUMNS + d_column(lane, i)] =
            HALF ? r[i / 2] >> i % 2 * 16 & 0xffff : r[i];
}

/* -- mma.sync ---------------------------------------------------------------------------*/

#if !WGMMA

static __device__ int a_row(int lane, int i) {
    return VOLTA ? volta(lane) : lane / 4 + i % 2 * 8;
}

static __device__ int a_word(int lane, int i) { return VOLTA ? i : lane % 4 + i / 2 * 4; }

static __device__ int b_column(int lane) { return VOLTA ? volta(lane) : lane / 4; }

static __device__ int b_word(int lane, int i) { return VOLTA ? i : lane % 4 + i * 4; }

#ifndef STAND_IN /* a test without a GPU defines its own */

#if VOLTA && !HALF
#define D_LIST "{%0,%1,%2,%3,%4,%5,%6,%7}"
#elif VOLTA || !HALF
#define D_LIST "{%0,%1,%2,%3}"
#else
#define D_LIST "{%0,%1}"
#endif
#if WORDS == 8
#define A_LIST "{%8,%9,%10,%11}"
#define B_LIST "{%12,%13}"
#elif VOLTA
#define A_LIST "{%8,%9}"
#define B_LIST "{%12,%13}"
#else
#define A_LIST "{%8,%9}"
#define B_LIST "{%12}"
#endif

/* D = A B + D. Unused registers are passed, so that one list is enough. */
static __device__ void instruction(u32 *d, const u32 *a, const u32 *b) {
    asm volatile("mma.sync.aligned." UNIT " " D_LIST ", " A_LIST ", " B_LIST ", " D_LIST ";"
                 : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3]), "+r"(d[4]), "+r"(d[5]),
                   "+r"(d[6]), "+r"(d[7])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
#endif

/* D = C + A B over `chain` instructions: one tile of C, `chain` tiles of A and of B. */
extern "C" __global__ void run(const u32 *a, const u32 *b, const u32 *c, u32 *d, int chain,
                               int scale_d) {
    int lane = threadIdx.x;
    u64 tile = blockIdx.x;
    u32 r[8] = {0}, x[4] = {0}, y[2] = {0};

    load(r, c + tile * ROWS * COLUMNS, lane);
#pragma unroll 1
    for (int step = 0; step < chain; step++) {
        const u32 *rows = a + (tile * chain + step) * ROWS * WORDS;
        const u32 *columns = b + (tile * chain + step) * COLUMNS * WORDS;
        for (int i = 0; i < A_WORDS; i++)
            x[i] = rows[a_row(lane, i) * WORDS + a_word(lane, i)];
        for (int i = 0; i < B_WORDS; i++)
            y[i] = columns[b_column(lane) * WORDS + b_word(lane, i)];
        instruction(r, x, y);
    }
    store(d + tile * ROWS * COLUMNS, r, lane);
    (void)scale_d;
}

#else

/* -- wgmma ------------------------------------------------------------------------------
 *
 * wgmma reads A and B from shared memory, k innermost, without swizzling, in adjacent
 * core matrices of 8 rows of 16 bytes. An instruction's k is 32 bytes, two core matrices.
 * (PTX ISA 9, 9.7.15.5.1.2, figure 163, "K major interleaved". In its table of strides,
 * the leading one goes to the next core matrix along k, the other to the next 8 rows.) */

#define LEADING 128
#define STRIDE 256

static __device__ void to_shared(u32 *shared, const u32 *tile, int rows) {
    for (int i = threadIdx.x; i < rows * WORDS; i += THREADS) {
        int row = i / WORDS, word = i % WORDS;
        shared[row / 8 * STRIDE / 4 + word / 4 * LEADING / 4 + row % 8 * 4 + word % 4] = tile[i];
    }
}

#ifndef STAND_IN

/* 9.7.15.5.1.2.2, "Matrix Descriptor Format": address, leading and other stride, all in
 * units of 16 bytes. Base offset and swizzling, the bits from 49 on, are 0. */
static __device__ u64 descriptor(const u32 *shared) {
    u64 address = __cvta_generic_to_shared(shared);
    return (address & 0x3ffff) >> 4 | (u64)(LEADING >> 4) << 16 | (u64)(STRIDE >> 4) << 32;
}

#if HALF
#define D_LIST "{%0,%1}"
#else
#define D_LIST "{%0,%1,%2,%3}"
#endif

/* D = A B + D, or A B without `scale_d`, on the shared memory that all threads have
 * written. It is one statement, so that nothing accesses D before it is complete. */
static __device__ void instruction(u32 *d, const u32 *a, const u32 *b, int scale_d) {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %6, 0;\n"
                 "wgmma.fence.sync.aligned;\n"
                 "wgmma.mma_async.sync.aligned." UNIT " " D_LIST ", %4, %5, p, 1, 1" TAIL ";\n"
                 "wgmma.commit_group.sync.aligned;\n"
                 "wgmma.wait_group.sync.aligned 0;\n}"
                 : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
                 : "l"(descriptor(a)), "l"(descriptor(b)), "r"(scale_d)
                 : "memory");
    __syncthreads();
}
#endif

/* D = C + A B as above. With scale_d 0 the first instruction does not add C. */
extern "C" __global__ void __launch_bounds__(128)
    run(const u32 *a, const u32 *b, const u32 *c, u32 *d, int chain, int scale_d) {
    alignas(128) __shared__ u32 x[64 * WORDS];
    alignas(128) __shared__ u32 y[COLUMNS * WORDS];
    int lane = threadIdx.x;
    u64 tile = blockIdx.x;
    u32 r[8] = {0};

    load(r, c + tile * ROWS * COLUMNS, lane);
#pragma unroll 1
    for (int step = 0; step < chain; step++) {
        to_shared(x, a + (tile * chain + step) * ROWS * WORDS, ROWS);
        to_shared(y, b + (tile * chain + step) * COLUMNS * WORDS, COLUMNS);
        instruction(r, x, y, step ? 1 : scale_d);
    }
    store(d + tile * ROWS * COLUMNS, r, lane);
}
#endif
