/* Types of the arguments and results of arithmetic.js. This file has only comments: the
 * page does not load it; editors and type checkers read it.
 *
 * Three rules apply to all functions:
 *  - A code is right-aligned: only the bits of sign, exponent and mantissa. It is a number,
 *    or a bigint for float64. (`hex` is the item as it is stored in memory, which for tf32
 *    is the code shifted left by 13.)
 *  - An exact value is a string, and every function that takes a value takes such a string:
 *    "0.1", "1e-40", "1/3", "0x1.8p-3", "inf", "nan". `Exact.text` is always one.
 *  - `number` is the nearest float64, for drawing. Nothing is computed from it.
 */

/** @typedef {number | bigint} Code  a bigint only for float64 */

/** @typedef {"ties_to_even" | "ties_to_away" | "toward_zero" | "toward_positive" |
 *    "toward_negative" | "to_odd" | "stochastic"} Rounding  as in td.quantize */

/** @typedef {"ieee" | "saturate"} Overflow */

/** @typedef {"overflow" | "underflow" | "invalid" | "inexact"} Flag
 *    NumPy reports the first three for a cast of this package; "inexact": a finite value
 *    became another number, Inf, or NaN */

/** An exact real number.
 * @typedef {Object} Exact
 * @property {string} text  the value for any function that takes a value
 * @property {string} decimal  all its digits: "0.0009765625", "1.5e-45"; for a fraction
 *   whose decimals do not end, 40 of them and "..."
 * @property {string} short  at most six significant digits, after "~" if rounded
 * @property {boolean} negative
 * @property {string} power  an odd integer times a power of two, "3 * 2^-5"; "" if the
 *   value is not one (0.1), "0" for zero
 * @property {string} hex  "0x1.8p-4"; "" if `power` is ""
 * @property {number} number
 */

/** Properties of a format of numbers.
 * @typedef {Object} Format
 * @property {string} name  "float8_e4m3fn"
 * @property {string} short  "e4m3fn", "bf16", "fp16"
 * @property {string[]} aliases  other names that td.formats takes
 * @property {boolean} ours  true for a dtype of this package, false for NumPy's float16,
 *   float32, float64
 * @property {number} bits  of a code
 * @property {number} storageBits  of an element in memory
 * @property {number} unusedLowBits  of an item: 13 for tf32
 * @property {number} exponentBits
 * @property {number} mantissaBits
 * @property {number} bias
 * @property {boolean} signed
 * @property {boolean} infinity
 * @property {boolean} nan
 * @property {boolean} zero
 * @property {boolean} negativeZero
 * @property {boolean} subnormals
 * @property {number} codes  the number of codes: 2^bits
 * @property {Value} max  the largest finite number
 * @property {Value} min  the lowest: -max, or the smallest of a format without a sign
 * @property {Value} smallestNormal
 * @property {Value} smallest  the smallest above zero
 * @property {Exact} eps  the distance of 1 to the next number
 */

/** @typedef {"zero" | "subnormal" | "normal" | "inf" | "nan"} Kind */

/** One number of a format.
 * @typedef {Object} Value
 * @property {string} format  the name of the format
 * @property {Code} code
 * @property {string} hex  the item in memory, "0x7E"
 * @property {string} binary  all bits of the code, "01111110"
 * @property {string} sign  its bits: "0", "1", or "" in a format without a sign
 * @property {string} exponent  "1111"
 * @property {string} mantissa  "110"
 * @property {Kind} kind
 * @property {boolean} negative  the sign is set, also for zero, Inf and NaN
 * @property {string} text  to show: "448", "-0", "inf", "-inf", "nan"; rounded to 17
 *   significant digits if there are more
 * @property {number} exponentField  the exponent's bits as an integer
 * @property {number | null} power  for a finite number other than zero, the exponent of
 *   2 in significand * 2^power: field - bias; for subnormals that of the smallest normal
 * @property {string} significand  "1.75"; "0.125" for a subnormal; "" for Inf and NaN
 * @property {Exact | null} exact  null for Inf and NaN
 * @property {Exact | null} ulp  the spacing of numbers of its exponent; null for Inf, NaN
 * @property {number} number  may be NaN, Infinity or -0
 */

/** A value rounded to a format.
 * @typedef {Object} Rounded
 * @property {Value} value
 * @property {Flag[]} flags
 * @property {string} outcome  in the words of `tf32dtype inspect`: "exact", "rounded,
 *   subnormal", "saturated"; docs/how_to/terminal.md lists all
 * @property {Exact | null} error  value - exact; null if either is not finite
 * @property {string} relative  |error| / |exact|, "1.2e-3"; "" if error is null, or for 0
 * @property {string} ulps  |error| in spacings of the format at the exact value, "0.25"
 */

/** Typed input, parsed.
 * @typedef {Object} Parsed
 * @property {string} error  why the input is not a number, and what is; "" if it is one
 * @property {boolean} isCode  a code: 0x7E or 0b01111110
 * @property {string} text  the value for functions that take a value; "" if error
 * @property {Exact | null} exact  null for Inf, NaN, and if error
 * @property {Rounded | null} rounded  to the format; a code itself; null if error
 */

/** @typedef {Object} Neighbors
 * @property {Value | null} below  the next finite number below; null if there is none
 * @property {Value | null} above
 * @property {Exact | null} gapBelow  the distance to `below`
 * @property {Exact | null} gapAbove
 */

/** Numbers of a format between two values, both included, in ascending order.
 * @typedef {Object} Between
 * @property {string} count  their number, a string because float64 has many
 * @property {{code: Code, kind: Kind, number: number}[]} values  all of them, with one
 *   zero for -0 and +0; empty if there are more than `most`
 */

/** The finite numbers above zero with one exponent.
 * @typedef {Object} Binade
 * @property {number} power  the numbers are in [2^power, 2^(power + 1))
 * @property {string} numbers  the number of them, in decimal
 * @property {boolean} subnormal  the row is that of all subnormal numbers of the format,
 *   and `power` is that of the largest subnormal number
 * @property {Exact} ulp
 */

/** All seven roundings of a value.
 * @typedef {Object} Roundings
 * @property {Exact | null} exact
 * @property {(Rounded & {rounding: Rounding})[]} rows  the six that are not random
 * @property {{down: Rounded, up: Rounded, probability: number, chance: string}} stochastic
 *   `down` is the outcome toward zero, `up` the outcome away from zero. `probability` is
 *   that of `up`, and `chance` the same in up to 40 digits; 0 if both outcomes are equal,
 *   as for an exact value
 */

/** A cast of one number, and its result cast back to the first format.
 * @typedef {Rounded & {back: Value, same: boolean}} RoundTrip
 */

/** @typedef {Object} Chain
 * @property {Exact | null} exact  the given value
 * @property {Rounded[]} steps  each cast, with its error against the step before
 * @property {Rounded} direct  the value cast directly to the last format
 * @property {boolean} differs  the direct cast gives another code than the chain
 */

/** A row of digits of a sum or product. All rows of one operation have the same length.
 * @typedef {Object} Digits
 * @property {boolean} negative
 * @property {string} bits  of the magnitude; the last bit has the weight 2^unit
 * @property {Exact} exact
 */

/** An addition or multiplication, step by step.
 * @typedef {Object} Operation
 * @property {Value} a
 * @property {Value} b
 * @property {string} special  why there are no digits: "Inf - Inf", "NaN", "Inf times 0";
 *   "" if there are digits. Unless it is "", the next six are null
 * @property {number | null} unit  exponent of the last digit of `rows` and `result`
 * @property {{a: Digits, b: Digits} | null} rows  the operands: for an addition aligned
 *   to one unit, for a multiplication their significands as integers
 * @property {{a: number, b: number} | null} units  exponents of the last digits of rows
 * @property {Digits | null} result  the exact sum or product
 * @property {number | null} last  exponent of the last digit that the format keeps
 * @property {{kept: string, guard: string, round: string, sticky: string, rest: string,
 *   up: boolean, tie: boolean} | null} rounding
 *   `kept`: the digits of the exact result that the format keeps; `guard` and `round`: the
 *   next two bits; `sticky`: 1 if any bit after them is set; `rest`: all digits that are
 *   not kept. `up`: the kept digits grow by one in magnitude
 * @property {Rounded} rounded
 */

// -- tensor cores ---------------------------------------------------------------------

/** @typedef {Object} Device
 * @property {string} name  "H100"
 * @property {string} architecture  "Hopper, sm_90"
 * @property {string[]} aliases
 * @property {string} board
 * @property {Object<string, number>} peak  dense 10^12 operations per second, by format
 * @property {string[]} instructions  the one that GEMM libraries use is first
 */

/** An instruction with its formats: a row of td.tensor_core's models.
 * @typedef {Object} Model
 * @property {number} index  in `models`
 * @property {string} device
 * @property {string} instruction
 * @property {string} a  format of the left operand
 * @property {string} b
 * @property {"float32" | "float16"} accumulator
 * @property {string} name  "H100 wgmma float16 -> float32"
 * @property {number} depth  products of an MMA group
 * @property {number} instructionDepth  k of an instruction
 * @property {number} fraction  bits kept below the largest exponent
 * @property {number} kept  fraction bits of a group's result
 * @property {string} rounding  "toward_zero" or "ties_to_even"
 * @property {boolean} emulated
 * @property {number | null} floor
 * @property {number | null} cutFirst
 * @property {string} verified  "recorded", "two simulators", "one source", "contested"
 * @property {string} verifiedText
 */

/** A block-scaled instruction with its formats.
 * @typedef {Object} ScaledModel
 * @property {number} index  in `scaledModels`
 * @property {string} device
 * @property {string} instruction  "tcgen05.mxf4nvf4"
 * @property {string} a
 * @property {string} b
 * @property {string} scale  format of scales: "float8_e8m0fnu" or "ue4m3"
 * @property {number} blockSize  k that share a scale
 * @property {number} depth
 * @property {number} group  products that are one term
 * @property {number} fraction
 * @property {"float32"} accumulator
 * @property {string} name
 * @property {number | null} floor
 * @property {string} verified
 * @property {string} verifiedText
 */

/** A term that a group aligns: a product, a sum of 16 products, or the accumulator.
 * @typedef {Object} Term
 * @property {number[]} ks  the k of its products; empty for the accumulator
 * @property {Exact} exact
 * @property {number | null} exponent  that aligns the term; null for zero
 * @property {Exact} kept
 * @property {string} keptUnits  `kept` in units of 2^unit, "-0x600000"
 * @property {Exact | null} cut  the truncated bits; null if there are none
 */

/** @typedef {Object} SumRounding
 * @property {string} how  "toward zero" or "to nearest"
 * @property {boolean} up  the magnitude increased
 * @property {boolean} tie
 * @property {boolean} overflow  to Inf
 * @property {Exact | null} off  the value truncated, or added if `up`, with the sum's sign;
 *   null for an exact sum and for an overflow
 */

/** An MMA group.
 * @typedef {Object} Group
 * @property {"group"} kind
 * @property {number[]} ks
 * @property {Value} accumulator  before the group
 * @property {string[]} special  why the result is Inf or NaN: "k 3: a is NaN". Unless it is
 *   empty, there are no terms, and all following members except `result` are null
 * @property {Term[]} terms  the accumulator is first
 * @property {number | null} greatest  the largest exponent; null if all terms are zero
 * @property {string[]} sources  of the largest exponent: "c", "k 0", "the floor"
 * @property {number | null} unit  exponent of the last bit kept
 * @property {string | null} totalUnits  the sum in units, hexadecimal
 * @property {Exact | null} total
 * @property {SumRounding | null} rounding
 * @property {Value} result  the next group's accumulator
 */

/** An addition to the accumulator, rounded to nearest with ties to even, for emulated
 * instructions or for a promotion.
 * @typedef {Object} Addition
 * @property {"addition"} kind
 * @property {number[]} ks
 * @property {Value} sum
 * @property {Value} accumulator
 * @property {boolean} promotes
 * @property {SumRounding | null} rounding
 * @property {Value} result
 */

/** @typedef {Object} Dot
 * @property {(Group | Addition)[]} steps
 * @property {Value} result
 * @property {Exact | null} exact  the sum without any rounding; null with Inf or NaN
 * @property {Exact | null} error  result - exact
 */

// -- blocks ---------------------------------------------------------------------------

/** @typedef {Object} BlockFormat
 * @property {string} name  "mxfp4"
 * @property {string[]} aliases
 * @property {string} element  "float4_e2m1fn", or "mxint8", "int8", "int12", "int16"
 * @property {number} elementBits
 * @property {string | null} residual  element of the second level
 * @property {string | null} scaleFormat  null: the finest that fits
 * @property {number} blockSize
 * @property {string} rule  the default
 * @property {string[]} rules  all possible rules
 * @property {number} bitsPerValue
 * @property {Exact} max  the largest element
 * @property {boolean} poisons  a NaN or Inf makes the whole block NaN
 */

/** One number of a block.
 * @typedef {Object} BlockElement
 * @property {Exact | null} x  the given value as float32; null for Inf and NaN
 * @property {string} given  the same as a string: "-1.5", "nan"
 * @property {number} code
 * @property {string} hex
 * @property {string} binary
 * @property {string} element  the value of the code without a scale: "-1.5", "nan"
 * @property {number | null} residualCode
 * @property {string | null} residual
 * @property {string} value  the float32 that dequantize returns
 * @property {number} number  the same value, for drawing
 * @property {Exact | null} exact  the same value; null for Inf and NaN
 * @property {Exact | null} error  value - x; null if either is not finite
 * @property {string} outcome  as in Rounded; "NaN: its scale" if NaN or Inf of the block
 *   makes it NaN
 */

/** @typedef {Object} BlockScale
 * @property {number} code
 * @property {string} hex
 * @property {Exact | null} worth  the value of the code; null for NaN
 * @property {Exact | null} scale  `worth` times the tensor's scale, as float32
 */

/** @typedef {Object} Block
 * @property {BlockScale} scale
 * @property {BlockScale | null} residualScale
 * @property {BlockElement[]} elements  one per given value
 * @property {string} amax  the largest finite magnitude
 * @property {string} rms  root of the mean squared error, "0.0012"; "" if not finite
 * @property {string} worst  the largest error in magnitude
 */

/** @typedef {Object} Quantized
 * @property {string} error  why the values cannot be quantized ("x[3] is nan: ..."), with
 *   only `format` and `rule` next to it; "" if they can
 * @property {string} format
 * @property {string} rule
 * @property {string} scaleFormat
 * @property {Exact} tensorScale
 * @property {number} blockSize
 * @property {Block[]} blocks
 * @property {string} rms  of all blocks
 * @property {string} worst
 */
