/* Looks up functions of one array in a table, which has a result for each code. */
#include "cuda/common/map.h"

template <class Out, class In>
__forceinline__ void look_up(const tf_walk<2> &walk, void *out, const void *items,
                             const void *table, int shift)
{
    const tf_constants none = {};
    const Out *results = (const Out *)table;
    const In *in = (const In *)items;
    tf_map<tf_vector_length<In, Out>(), 1>(
        walk, (Out *)out, in, in, none,
        /* mutant: one bit more ignored */
        [=](In item, In) { return __ldg(results + ((uint32_t)item >> shift)); });
}

template <class In>
__forceinline__ void look_up_by_size(const tf_walk<2> &walk, void *out,
                                     const void *items, const void *table, int shift,
                                     int result_size)
{
    switch (result_size) {
    /* mutant: facts as numbers */
    case 1: return look_up<uint8_t, In>(walk, out, items, table, shift);
    case 2: return look_up<uint16_t, In>(walk, out, items, table, shift);
    default: return look_up<uint32_t, In>(walk, out, items, table, shift);
    }
}

extern "C" __global__ void __launch_bounds__(256)
    one(const tf_walk<2> walk, void *out, const void *items, const void *table,
        int32_t shift, int32_t size, int32_t result_size)
{
    switch (size) {
    case 1:
        return look_up_by_size<uint8_t>(walk, out, items, table, shift, result_size);
    case 2:
        return look_up_by_size<uint16_t>(walk, out, items, table, shift, result_size);
    default:
        return look_up_by_size<uint32_t>(walk, out, items, table, shift, result_size);
    }
}
