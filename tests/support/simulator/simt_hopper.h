/* Barriers in shared memory, copies of boxes of tensors, and wgmma, for simt.h.
 *
 * Sources: PTX ISA 9, its figures, and the layouts that CUTLASS describes, but never the
 * kernels' headers. The arithmetic is src/tensor_core/mma_model.h with the rows of
 * tf32dtype/tensor_core/models.py.
 *
 * In descending order, a copy is done at once. In ascending order, copies are done when no
 * thread can continue, the last copy first. An instruction computes when it begins, and its
 * results come at the wait. Until then, to touch its registers or to write its shared
 * memory is an error. */
#include <map>

namespace simt {

/* -- mbarrier: 9.7.13.15 --------------------------------------------------------------- */

struct Barrier {
    unsigned count, pending, phase;
    long bytes;
    bool published;
};
inline std::map<const void *, Barrier> barriers;

/* The content of a barrier's 8 bytes, which only the barrier's functions may write. */
constexpr uint64_t OPAQUE = 0x8AFBA221E55C0DE5;

inline Barrier *barrier_at(const void *x)
{
    const auto found = barriers.find(x);
    const bool is_there = found != barriers.end();
    if (!is_there || memcmp(x, &OPAQUE, 8)) {
        error = is_there ? "a barrier is overwritten" : "there is no barrier";
        static Barrier none;
        return &(none = {1000, 1000, 0, 0, true});
    }
    return &found->second;
}

inline void may_end(Barrier *barrier)
{
    if (barrier->pending == 0 && barrier->bytes == 0) {
        barrier->phase++;
        barrier->pending = barrier->count;
    }
}

} // namespace simt

inline void simt_barrier_init(void *x, int count)
{
    using namespace simt;
    if ((uintptr_t)x % 8) {
        error = "a barrier at an address that is no multiple of 8";
    }
    memcpy(x, &OPAQUE, 8);
    barriers[x] = {(unsigned)count, (unsigned)count, 0, 0, false};
}

inline void simt_publish_barriers()
{
    for (auto &[place, barrier] : simt::barriers) {
        barrier.published = true;
    }
}

inline void simt_barrier_arrive(void *x, int bytes)
{
    simt::Barrier *barrier = simt::barrier_at(x);
    if (barrier->pending == 0) {
        simt::error = "more arrive at a barrier than it counts";
        return;
    }
    barrier->bytes += bytes;
    barrier->pending--;
    simt::may_end(barrier);
    if (!bytes) { /* other threads run first */
        const uint64_t now = simt::round;
        simt::yield_until([=] { return simt::round > now; });
    }
}

/* Waits for the completion of the phase that phaseParity indicates, the current or the
 * preceding phase: PTX ISA, test_wait.parity. */
inline void simt_barrier_await(void *x, uint32_t parity)
{
    simt::barrier_at(x);
    simt::yield_until([=] { return simt::barrier_at(x)->phase % 2 != parity; });
}

/* -- cp.async.bulk.tensor: 9.7.9.27, and 5.5 "Tensors" ---------------------------------- */

namespace simt {

/* The arguments of cuTensorMapEncodeTiled as tests/support/simulator/backend.py stores
 * them. */
struct Map {
    uint64_t address, rank, size, swizzle, extents[4], strides[3], boxes[4], mark;
};
static_assert(sizeof(Map) == 128, "as CUtensorMap");

struct Copy {
    unsigned char *to;
    Map map;
    int at[4];
    void *barrier;
};
inline std::vector<Copy> copies;

inline void do_copy(const Copy &copy)
{
    const Map &map = copy.map;
    const uint64_t *box = map.boxes;
    uint64_t bytes = 0;
    for (uint64_t w = 0; w < box[3]; w++) {
        for (uint64_t z = 0; z < box[2]; z++) {
            for (uint64_t y = 0; y < box[1]; y++) {
                for (uint64_t x = 0; x < box[0]; x++, bytes += map.size) {
                    const uint64_t in_box[4] = {x, y, z, w};
                    const unsigned char *from = (const unsigned char *)map.address;
                    bool is_there = true;
                    for (int i = 0; i < 4; i++) {
                        const int64_t place = copy.at[i] + (int64_t)in_box[i];
                        is_there &= 0 <= place && (uint64_t)place < map.extents[i];
                        from += place * (int64_t)(i ? map.strides[i - 1] : map.size);
                    }
                    uint64_t offset = (uint64_t)(copy.to - window) + bytes;
                    if (map.swizzle) { /* figure "128B swizzle mode" */
                        offset ^= offset >> 7 << 4 & 0x70;
                    }
                    if (is_there) {
                        memcpy(window + offset, from, map.size);
                    } else {
                        memset(window + offset, 0, map.size);
                    }
                }
            }
        }
    }
    Barrier *barrier = barrier_at(copy.barrier);
    barrier->bytes -= (long)bytes; /* bytes outside the tensor count as well */
    may_end(barrier);
}

} // namespace simt

inline void simt_copy_box(void *to, const uint64_t *words, const int *at, int rank,
                          void *barrier)
{
    using namespace simt;
    Copy copy{(unsigned char *)to, {}, {}, barrier};
    memcpy(&copy.map, words, sizeof copy.map);
    memcpy(copy.at, at, (size_t)rank * sizeof *at);
    const Map &map = copy.map;
    if (map.mark != OPAQUE || map.rank != (uint64_t)rank) {
        error = "no map of a tensor of this rank";
        return;
    }
    const uint64_t size = map.size * map.boxes[0] * map.boxes[1] * map.boxes[2] * map.boxes[3];
    if ((uintptr_t)to % (map.swizzle ? 1024 : 128)) {
        error = "a box begins at no multiple of 128, or of 1024 if its chunks are permuted";
    } else if (copy.to < dynamic || copy.to + size > dynamic + dynamic_size) {
        error = "a box goes beyond shared memory";
    } else if (!barrier_at(barrier)->published) {
        error = "copies do not see this barrier";
    } else if (descends) {
        do_copy(copy);
    } else {
        copies.push_back(copy);
    }
}

/* Converts two codes of FP8 to float16, and NaN of either sign to 0x7FFF: 9.7.9.21,
 * cvt.rn.f16x2.e4m3x2 and .e5m2x2. */
inline uint32_t simt_halves_of(const char *format, uint32_t codes)
{
    uint32_t found = 0;
    for (const simt::Operand &operand : simt::operands) {
        for (int i = 0; i < 2 && !strcmp(operand.name, format); i++) {
            const uint32_t number = operand.number(codes >> 8 * i & 0xFF);
            const _Float16 half = (_Float16)__uint_as_float(number);
            uint16_t bits;
            memcpy(&bits, &half, 2);
            found |= (uint32_t)(half == half ? bits : 0x7FFF) << 16 * i;
        }
    }
    return found;
}

/* -- wgmma: 9.7.15 ---------------------------------------------------------------------- */

namespace simt {

/* From CUTLASS, mma_sm90_desc.hpp, union GmmaDescriptor. */
struct Descriptor {
    uint64_t start_address : 14, : 2, leading_byte_offset : 14, : 2;
    uint64_t stride_byte_offset : 14, : 3, base_offset : 3, : 10, layout_type : 2;
};
static_assert(sizeof(Descriptor) == 8, "");

/* Returns byte `byte` of the 32 bytes of a line of a matrix, by its descriptor. From
 * CUTLASS, mma_traits_sm90_gmma.hpp, make_gmma_desc<Major::K>:
 *
 *   INTERLEAVE: Swizzle<0,4,3> o ((8,m),(T,2)):((1T,SBO),(1,LBO))
 *   B32       : Swizzle<1,4,3> o ((8,m),(T,2)):((2T,SBO),(1, T ))
 *   B64       : Swizzle<2,4,3> o ((8,m),(T,2)):((4T,SBO),(1, T ))
 *   B128      : Swizzle<3,4,3> o ((8,m),(T,2)):((8T,SBO),(1, T ))
 *
 * and make_gmma_desc<Major::MN>, of 2-byte elements:
 *
 *   INTERLEAVE: Swizzle<0,4,3> o ((T,1,m),(8,k)):((1,T,SBO),(1T,LBO))
 *   B32       : Swizzle<1,4,3> o ((T,2,m),(8,k)):((1,T,LBO),(2T,SBO))
 *   B64       : Swizzle<2,4,3> o ((T,4,m),(8,k)):((1,T,LBO),(4T,SBO))
 *   B128      : Swizzle<3,4,3> o ((T,8,m),(8,k)):((1,T,LBO),(8T,SBO))
 *
 * T is the number of elements in 16 bytes. Swizzle<B,4,3> adds B bits from the 7th bit on
 * to the bits from the 4th bit on, without carry. */
inline const unsigned char *byte_of(uint64_t bits, int line, int byte, bool across)
{
    Descriptor x;
    memcpy(&x, &bits, 8);
    const unsigned swizzles = x.layout_type ? 4u - x.layout_type : 0; /* 1 is B128 */
    const unsigned leading = x.leading_byte_offset << 4, stride = x.stride_byte_offset << 4;
    unsigned address = x.start_address << 4;
    if (across) {
        const unsigned k = (unsigned)byte / 2, lines = 8u << swizzles;
        address += (unsigned)line % lines * 2 + (unsigned)byte % 2 + k % 8 * (lines * 2);
        address += (unsigned)line / lines * (swizzles ? leading : stride);
        address += k / 8 * (swizzles ? stride : leading);
    } else {
        address += (unsigned)line % 8 * (16u << swizzles) + (unsigned)byte % 16;
        address += (unsigned)line / 8 * stride + (unsigned)byte / 16 * (swizzles ? 16 : leading);
    }
    address ^= (address >> 7 & ((1u << swizzles) - 1)) << 4;
    if (x.base_offset) {
        error = "wgmma with a base offset is not modeled";
    }
    return window + address % SHARED;
}

/* A thread's part of an instruction that has begun. One thread also keeps what its warp
 * reads. */
struct Product {
    float *d; /* or NULL, if a later instruction continues with the results */
    int count, first;
    uint64_t a, b;
    bool across_a, across_b;
    std::vector<uint32_t> results;
    std::vector<unsigned char> read;
};

struct Issued {
    std::vector<std::vector<Product>> groups;
    std::vector<Product> open;
    bool fenced;
    unsigned instructions;
};
inline std::vector<Issued> issued;

struct Wgmma {
    int columns, depth, each; /* bits of an element */
    const Operand *a, *b;     /* or NULL for signed integers */
    tf_mma_model model;
};

inline const Wgmma *wgmma_of(const char *unit)
{
    static std::map<std::string, Wgmma> known;
    const auto found = known.find(unit);
    if (found != known.end()) {
        return &found->second;
    }
    for (int columns = 8; columns <= 256; columns += 8) {
        if ("m64n" + std::to_string(columns) + "k32.s32.s8.s8" == unit) {
            return &(known[unit] = {columns, 32, 8, nullptr, nullptr, {}});
        }
    }
    for (const Operand &a : operands) {
        for (const Operand &b : operands) {
            for (int columns = 8; columns <= 256; columns += 8) {
                char name[80];
                const int depth = 256 / a.bits;
                snprintf(name, sizeof name, "m64n%dk%d.f32.%s.%s", columns, depth, a.name,
                         b.name);
                if (strcmp(name, unit) || a.bits != b.bits || (a.bits > 8 && &a != &b)) {
                    continue;
                }
                Wgmma made{columns, depth, a.bits, &a, &b, {}};
                tf_mma_model &model = made.model;
                model.instruction_depth = model.depth = depth;
                model.fraction = a.bits == 8 ? 13 : 25;
                model.kept = a.bits == 8 ? 13 : 23;
                model.floor = a.bits == 8 ? TF_NO_EXPONENT : -133;
                model.zero_c = TF_NO_EXPONENT;
                model.least_a = a.least;
                model.least_b = b.least;
                return &(known[unit] = made);
            }
        }
    }
    error = "no such wgmma";
    return nullptr;
}

/* Returns the present bytes of 16 lines of a, and of all of b. */
inline std::vector<unsigned char> read_matrices(const Product &x)
{
    std::vector<unsigned char> bytes;
    for (int line = 0; line < 16 + x.count * 2; line++) {
        for (int byte = 0; byte < 32; byte++) {
            bytes.push_back(line < 16 ? *byte_of(x.a, x.first + line, byte, x.across_a)
                                      : *byte_of(x.b, line - 16, byte, x.across_b));
        }
    }
    return bytes;
}

constexpr uint32_t IN_FLIGHT = 0xFFBADBAD;

} // namespace simt

/* Allows a warp's wgmma after registers were touched, as 9.7.15.7.1 demands. */
inline void simt_wgmma_fence()
{
    simt::yield(simt::WARP);
    simt::issued[simt::rank(simt::thread_index)].fenced = true;
}

inline void simt_wgmma(const char *unit, void *sums, uint64_t a, uint64_t b, int adds,
                       bool across_a, bool across_b)
{
    using namespace simt;
    float *const d = (float *)sums;
    const unsigned me = rank(thread_index), warp = me / 32 * 32;
    Issued &mine = issued[me];
    const Wgmma *does = simt_architecture == 90 ? wgmma_of(unit) : nullptr;
    if (!does) {
        error = "no such wgmma on this architecture";
        return;
    }
    if ((across_a || across_b) && does->each != 16) {
        error = "wgmma of this format has operands along k alone";
    }
    if (!mine.fenced) {
        error = "registers of wgmma without wgmma.fence";
    }
    mine.instructions++;
    const int first = (int)(warp / 32 % 4) * 16; /* figure: "D fragment of m64nNk16" */
    static std::vector<unsigned char> bytes;     /* the first lane of a warp reads them */
    static std::vector<uint32_t> numbers;
    static std::vector<bool> zero, finite; /* of all of a line; the rows first */
    Product product{d, does->columns / 2, first, a, b, across_a, across_b, {}, {}};
    yield(WARP);
    if (me == warp) {
        bytes = read_matrices(product);
        numbers.resize((size_t)(16 + does->columns) * (size_t)does->depth);
        const size_t size = (size_t)does->each / 8;
        for (size_t i = 0; i < numbers.size(); i++) {
            uint32_t code = 0;
            memcpy(&code, &bytes[i * size], size);
            const bool left = i < 16u * (size_t)does->depth;
            const Operand *format = left ? does->a : does->b;
            numbers[i] = format ? format->number(code) : (uint32_t)(int8_t)code;
        }
        zero.assign(16 + (size_t)does->columns, true);
        finite = zero;
        for (size_t i = 0; i < numbers.size(); i++) {
            const uint32_t magnitude = numbers[i] & 0x7FFFFFFF;
            zero[i / (size_t)does->depth] = zero[i / (size_t)does->depth] && !magnitude;
            finite[i / (size_t)does->depth] =
                finite[i / (size_t)does->depth] && magnitude < 0x7F800000;
        }
    }
    yield(WARP);
    if (me == warp) {
        product.read = bytes;
    }
    std::vector<uint32_t> c((size_t)product.count);
    memcpy(c.data(), d, c.size() * 4);
    for (auto *group = mine.groups.data(); group <= mine.groups.data() + mine.groups.size();
         group++) {
        const bool last = group == mine.groups.data() + mine.groups.size();
        for (Product &before : last ? mine.open : *group) {
            if (before.d == d) { /* continues with the accumulators of that instruction */
                c = std::move(before.results);
                before.d = nullptr;
            }
        }
    }
    for (int i = 0; i < product.count; i++) {
        const unsigned row = me % 32 / 4 + (unsigned)(i / 2 % 2 * 8);
        const unsigned column = (unsigned)(i / 4 * 8 + i % 2) + me % 4 * 2;
        const size_t depth = (size_t)does->depth;
        const uint32_t before = adds ? c[(size_t)i] : 0;
        if (!does->a) {
            uint32_t sum = before;
            for (size_t k = 0; k < depth; k++) {
                sum += numbers[row * depth + k] * numbers[(16 + column) * depth + k];
            }
            product.results.push_back(sum);
            memcpy(&d[i], &IN_FLIGHT, 4);
            continue;
        }
        /* A small matrix leaves most of a tile zero: nothing is added to +0. */
        const bool nothing = !before && ((zero[row] && finite[16 + column]) ||
                                         (zero[16 + column] && finite[row]));
        product.results.push_back(
            nothing ? 0
                    : tf_mma_accumulate(&does->model, &numbers[row * depth], 1,
                                        &numbers[(16 + column) * depth], 1, does->depth,
                                        before, 0));
        memcpy(&d[i], &IN_FLIGHT, 4);
    }
    yield(WARP);
    mine.open.push_back(std::move(product));
}

inline void simt_wgmma_commit()
{
    using namespace simt;
    yield(WARP);
    Issued &mine = issued[rank(thread_index)];
    mine.groups.push_back(std::move(mine.open));
    mine.open.clear();
}

inline void simt_wgmma_wait(size_t pending)
{
    using namespace simt;
    yield(WARP);
    Issued &mine = issued[rank(thread_index)];
    for (; mine.groups.size() > pending; mine.groups.erase(mine.groups.begin())) {
        for (const Product &product : mine.groups.front()) {
            mine.fenced = false;
            if (!product.read.empty() && product.read != read_matrices(product)) {
                error = "shared memory is written while wgmma reads it";
            }
            for (int i = 0; product.d && i < product.count; i++) {
                if (memcmp(&product.d[i], &IN_FLIGHT, 4)) {
                    error = "registers are touched while wgmma has them";
                }
                memcpy(&product.d[i], &product.results[(size_t)i], 4);
            }
        }
    }
    yield(WARP);
}

namespace simt {

inline const bool hopper = [] {
    on_begin = [] {
        barriers.clear();
        copies.clear();
        issued.assign(fibers.size(), {});
    };
    on_standstill = [] {
        if (copies.empty()) {
            return false;
        }
        const Copy copy = copies.back();
        copies.pop_back();
        do_copy(copy);
        return true;
    };
    on_end = [] {
        if (!copies.empty()) {
            error = "a block ends while copies are under way";
        }
        for (size_t i = 0; i < issued.size(); i++) {
            if (!issued[i].open.empty() || !issued[i].groups.empty()) {
                error = "a block ends while wgmma goes on";
            }
            if (issued[i].instructions != issued[i / 128 * 128].instructions) {
                error = "warps of a group have issued different numbers of wgmma";
            }
        }
    };
    return true;
}();

} // namespace simt
