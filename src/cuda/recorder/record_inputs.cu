/* Random operands and conversions of float32, by integers but for the instruction.
 * tools/tensor_core_recorder/bulk_inputs.py computes the same numbers and digests. */
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

/* Wellons' lowbias32 */
static __device__ u32 mix(u32 x) {
    x = (x ^ x >> 16) * 0x7feb352du;
    x = (x ^ x >> 15) * 0x846ca68bu;
    return x ^ x >> 16;
}

/* Writes elements `first` to first + count - 1 of an endless array, of `bits` bits each.
 * Tile i of each four, with `per_tile` elements, has `span[i]` exponents from `low[i]`
 * on. */
extern "C" __global__ void fill(void *out, u32 first, u32 count, u32 seed, u32 per_tile,
                                int bits, int mantissa_bits, int exponent_bits, int shift,
                                const u32 *low, const u32 *span) {
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count)
        return;
    u32 kind = (first + i) / per_tile % 4, r = mix(mix(first + i) ^ mix(seed));
    u32 field = low[kind] + ((mix(r) >> 16) * span[kind] >> 16);
    u32 code = (r >> 31) << (exponent_bits + mantissa_bits) | field << mantissa_bits |
               (r & ((1u << mantissa_bits) - 1));
    code <<= shift;
    if (bits == 8)
        ((u8 *)out)[i] = (u8)code;
    else if (bits == 16)
        ((u16 *)out)[i] = (u16)code;
    else
        ((u32 *)out)[i] = code;
}

#ifdef CONVERSION /* PTX that converts %1, .f32, to %0, .u32 */

#ifndef STAND_IN /* a test without a GPU defines its own */
static __device__ u32 converted(u32 x) {
    u32 y;
    asm volatile(CONVERSION : "=r"(y) : "f"(__uint_as_float(x)));
    return y;
}
#endif

/* Converts `count` numbers x. */
extern "C" __global__ void convert(const u32 *x, u32 *y, u32 count) {
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        y[i] = converted(x[i]);
}

/* Steele, Lea and Flood's splitmix64 */
static __device__ u64 mix64(u64 x) {
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* Adds a digest of the conversions of all float32 with the first byte blockIdx.y: the sum
 * of mix64(x, y), modulo 2^64. 256 blocks of 256 threads convert 2^24 numbers. */
extern "C" __global__ void digest(u64 *out) {
    u32 start = blockIdx.y << 24 | blockIdx.x << 16 | threadIdx.x;
    u64 sum = 0;
#pragma unroll 1
    for (u32 i = 0; i < 256; i++) {
        u32 x = start | i << 8;
        sum += mix64((u64)x << 32 | converted(x));
    }
    atomicAdd(out + blockIdx.y, sum);
}
#endif
