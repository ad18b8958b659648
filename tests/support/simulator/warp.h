/* Runs the addressing of kernels without a GPU, in one warp or four warps on the CPU. Each
 * lane is a thread. A mixture of the tile's elements replaces mma.sync or wgmma, and tables of
 * PTX ISA 9.7.14.5 and 9.7.15.5 give their lanes. BITS is the width of an element of A and B. */
#include <barrier>
#include <thread>
#include <vector>

#define STAND_IN
#define __device__
#define __global__

struct Index {
    unsigned x, y;
};
static thread_local Index threadIdx;
static Index blockIdx, blockDim;

#define __shared__ static
#define __launch_bounds__(n)

enum { COUNT = WGMMA ? 128 : 32 };
static std::barrier<> gate(COUNT);
static unsigned as[COUNT][4], bs[COUNT][2], ds[COUNT][8];
static const unsigned *shared_a, *shared_b;
static int adds;

struct Place {
    int row, column;
};

/* Returns the position of element i of A in a lane, as PTX numbers elements. */
static Place place_a(int lane, int i) {
    int group = lane >> 2, member = lane % 4;
    if (ROWS == 8) /* m8n8k4 */
        return {lane < 16 ? lane % 4 : lane % 4 + 4, i};
    if (BITS == 32) /* a1 and a3 are 8 rows below, a2 and a3 in column 4 and after */
        return {i % 2 == 0 ? group : group + 8, i < 2 ? member : member + 4};
    if (BITS == 16) /* m16n8k8 has a0 to a3 */
        return {i < 2 || (4 <= i && i < 6) ? group : group + 8,
                i < 4 ? member * 2 + (i & 1) : member * 2 + (i & 1) + 8};
    return {i < 4 || (8 <= i && i < 12) ? group : group + 8, /* m16n8k16 has a0 to a7 */
            i < 8 ? member * 4 + (i & 3) : member * 4 + (i & 3) + 16};
}

static Place place_b(int lane, int i) {
    int group = lane >> 2, member = lane % 4;
    if (ROWS == 8)
        return {i, lane < 16 ? lane % 4 : lane % 4 + 4};
    if (BITS == 32)
        return {i == 0 ? member : member + 4, group};
    if (BITS == 16)
        return {i < 2 ? member * 2 + (i & 1) : member * 2 + (i & 1) + 8, group};
    return {i < 4 ? member * 4 + (i & 3) : member * 4 + (i & 3) + 16, group};
}

static Place place_d(int lane, int i) {
    if (ROWS != 8) {
        int group = lane % 32 >> 2, first = lane / 32 * 16; /* of a warp of wgmma */
        return {first + (i < 2 ? group : group + 8), lane % 4 * 2 + (i & 1)};
    }
    if (HALF)
        return {lane < 16 ? lane % 4 : lane % 4 + 4, i};
    int x = (lane & 1) + (i & 2);
    return {lane < 16 ? x : x + 4, (i & 4) + (lane & 2) + (i & 1)};
}

static unsigned element(const unsigned *registers, int i, int bits) {
    int each = 32 / bits;
    return registers[i / each] >> i % each * bits & (bits == 32 ? ~0u : (1u << bits) - 1);
}

/* Returns an element of a K-major matrix in the canonical layout without swizzling. For T =
 * 128 / BITS elements the layout is ((8,m),(T,2)):((1T,SBO),(1,LBO)), with strides in
 * bytes. */
static unsigned of_shared(const unsigned *words, int row, int k) {
    int each = 128 / BITS, leading = 128, stride = 256;
    int byte = row % 8 * 16 + row / 8 * stride + k / each * leading + k % each * (BITS / 8);
    return element(words + byte / 4, byte % 4 * 8 / BITS, BITS);
}

static void multiply() {
    const int k = WORDS * 32 / BITS, of_a = ROWS * k / 32 * (ROWS == 8 ? 4 : 1),
              of_b = 8 * k / 32 * (ROWS == 8 ? 4 : 1), of_d = ROWS == 8 ? 8 : 4,
              bits = HALF ? 16 : 32;
    static unsigned a[ROWS][32], b[32][8], d[ROWS][8];
    for (int lane = 0; lane < COUNT; lane++) {
        for (int i = 0; !WGMMA && i < of_a; i++)
            a[place_a(lane, i).row][place_a(lane, i).column] = element(as[lane], i, BITS);
        for (int i = 0; !WGMMA && i < of_b; i++)
            b[place_b(lane, i).row][place_b(lane, i).column] = element(bs[lane], i, BITS);
        for (int i = 0; i < of_d; i++)
            d[place_d(lane, i).row][place_d(lane, i).column] =
                adds ? element(ds[lane], i, bits) : 0;
    }
    for (int i = 0; WGMMA && i < k; i++) {
        for (int row = 0; row < ROWS; row++)
            a[row][i] = of_shared(shared_a, row, i);
        for (int column = 0; column < 8; column++)
            b[i][column] = of_shared(shared_b, column, i);
    }
    for (int row = 0; row < ROWS; row++)
        for (int column = 0; column < 8; column++)
            for (int i = 0; i < k; i++)
                d[row][column] = (d[row][column] ^ a[row][i]) * 2654435761u + b[i][column] * (i + 1);
    for (int lane = 0; lane < COUNT; lane++)
        for (int i = 0; i < of_d; i++) {
            unsigned x = d[place_d(lane, i).row][place_d(lane, i).column];
            if (HALF)
                ds[lane][i / 2] = i % 2 ? (ds[lane][i / 2] & 0xffff) | x << 16 : x & 0xffff;
            else
                ds[lane][i] = x;
        }
}

static void exchange(unsigned *d) {
    int lane = threadIdx.x;
    for (int i = 0; i < 8; i++)
        ds[lane][i] = d[i];
    gate.arrive_and_wait();
    if (lane == 0)
        multiply();
    gate.arrive_and_wait();
    for (int i = 0; i < 8; i++)
        d[i] = ds[lane][i];
}

#if WGMMA
static void instruction(unsigned *d, const unsigned *a, const unsigned *b, int scale_d) {
    if (threadIdx.x == 0)
        shared_a = a, shared_b = b, adds = scale_d;
    exchange(d);
}
#else
static void instruction(unsigned *d, const unsigned *a, const unsigned *b) {
    for (int i = 0; i < 4; i++)
        as[threadIdx.x][i] = a[i];
    for (int i = 0; i < 2; i++)
        bs[threadIdx.x][i] = b[i];
    adds = 1;
    exchange(d);
}
#endif

extern "C" void run(const unsigned *, const unsigned *, const unsigned *, unsigned *, int, int);

extern "C" void launch(const unsigned *a, const unsigned *b, const unsigned *c, unsigned *d,
                       int tiles, int chain, int scale_d) {
    for (blockIdx.x = 0; blockIdx.x < (unsigned)tiles; blockIdx.x++) {
        std::vector<std::thread> warp;
        for (unsigned lane = 0; lane < COUNT; lane++)
            warp.emplace_back([=] {
                threadIdx.x = lane;
                run(a, b, c, d, chain, scale_d);
            });
        for (std::thread &thread : warp)
            thread.join();
    }
}
