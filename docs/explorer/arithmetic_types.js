/* What the functions of arithmetic.js take and return. Comments alone: the page does not
 * load this file; editors and type checkers read it.
 *
 * Three rules for all of them:
 *  - A code is right-aligned: bits of sign, exponent and mantissa and nothing else. It is
 *    a number, of float64 a bigint. (`hex` is the item as it lies in memory, which for
 *    tf32 is the code shifted left by 13.)
 *  - An exact value is a text, and every function that takes a value takes such a text:
 *    "0.1", "1e-40", "1/3", "0x1.8p-3", "inf", "nan". `Exact.text` is always one.
 *  - `number` is the nearest float64, to draw with. Nothing is computed from it.
 */

/** @typedef {number | bigint} Code  a bigint for float64 alone */

/** @typedef {"ties_to_even" | "ties_to_away" | "toward_zero" | "toward_positive" |
 *    "toward_negative" | "to_odd" | "stochastic"} Rounding  as td.quantize has them */

/** @typedef {"ieee" | "saturate"} Overflow */

/** @typedef {"overflow" | "underflow" | "invalid" | "inexact"} Flag
 *    the first three are what NumPy reports of a cast of this package; "inexact": a finite
 *    value has become another number, Inf, or NaN */

/** A real number, exactly.
 * @typedef {Object} Exact
 * @property {string} text  the same value for any function here that takes one
 * @property {string} decimal  all its digits: "0.0009765625", "1.5e-45"; of a fraction
 *   whose decimals do not end, 40 of them and "..."
 * @property {string} short  at most six significant digits, "~" before it if rounded
 * @property {boolean} negative
 * @property {string} power  an odd integer times a power of two, "3 * 2^-5"; "" if it is
 *   none (0.1), "0" of zero
 * @property {string} hex  "0x1.8p-4"; "" as above
 * @property {number} number
 */

/** Facts of a format of numbers.
 * @typedef {Object} Format
 * @property {string} name  "float8_e4m3fn"
 * @property {string} short  "e4m3fn", "bf16", "fp16"
 * @property {string[]} aliases  other names that td.formats takes
 * @property {boolean} ours  a dtype of this package; not: float16, float32, float64
 * @property {number} bits  of a code
 * @property {number} storageBits  an element takes in memory
 * @property {number} unusedLowBits  of an item: 13 of tf32
 * @property {number} exponentBits
 * @property {number} mantissaBits
 * @property {number} bias
 * @property {boolean} signed
 * @property {boolean} infinity
 * @property {boolean} nan
 * @property {boolean} zero
 * @property {boolean} negativeZero
 * @property {boolean} subnormals
 * @property {number} codes  how many there are: 2^bits
 * @property {Value} max  the greatest finite number
 * @property {Value} min  the least: -max, or the smallest of a format without sign
 * @property {Value} smallestNormal
 * @property {Value} smallest  the smallest above zero
 * @property {Exact} eps  from 1 to the next number
 */

/** @typedef {"zero" | "subnormal" | "normal" | "inf" | "nan"} Kind */

/** One number of a format.
 * @typedef {Object} Value
 * @property {string} format  its name
 * @property {Code} code
 * @property {string} hex  the item in memory, "0x7E"
 * @property {string} binary  all bits of the code, "01111110"
 * @property {string} sign  its bits: "0", "1", or "" of a format without sign
 * @property {string} exponent  "1111"
 * @property {string} mantissa  "110"
 * @property {Kind} kind
 * @property {boolean} negative  whether the sign is set, also of zero, Inf and NaN
 * @property {string} text  what to show: "448", "-0", "inf", "-inf", "nan"; of more than
 *   17 significant digits these alone, rounded
 * @property {number} exponentField  the exponent's bits as an integer
 * @property {number | null} power  of a finite number other than zero, the exponent of
 *   2 in significand * 2^power: field - bias, of subnormals that of the least normal
 * @property {string} significand  "1.75", "0.125" of a subnormal number; "" of Inf and NaN
 * @property {Exact | null} exact  null of Inf and NaN
 * @property {Exact | null} ulp  the spacing of numbers of its exponent; null of Inf, NaN
 * @property {number} number  NaN, Infinity and -0 among them
 */

/** A value rounded to a format.
 * @typedef {Object} Rounded
 * @property {Value} value
 * @property {Flag[]} flags
 * @property {string} outcome  in the words of `tf32dtype inspect`: "exact", "rounded,
 *   subnormal", "saturated"; docs/how_to/terminal.md has all
 * @property {Exact | null} error  value - exact; null if either is not finite
 * @property {string} relative  |error| / |exact|, "1.2e-3"; "" without an error, or of 0
 * @property {string} ulps  |error| in spacings of the format at the exact value, "0.25"
 */

/** What was typed.
 * @typedef {Object} Parsed
 * @property {string} error  why it is no number, and what is one; "" if it is
 * @property {boolean} isCode  0x7E or 0b01111110
 * @property {string} text  what to give to functions that take a value; "" if error
 * @property {Exact | null} exact  null of Inf, NaN, and error
 * @property {Rounded | null} rounded  to the format; of a code that code; null if error
 */

/** @typedef {Object} Neighbors
 * @property {Value | null} below  the next finite number below; null: there is none
 * @property {Value | null} above
 * @property {Exact | null} gapBelow  how far it is
 * @property {Exact | null} gapAbove
 */

/** Numbers of a format between two values, both included, in ascending order.
 * @typedef {Object} Between
 * @property {string} count  how many there are, in decimals (float64 has many)
 * @property {{code: Code, kind: Kind, number: number}[]} values  all of them, one -0 or
 *   +0 for both; empty if they are more than were asked for
 */

/** Finite numbers above zero whose exponents are equal.
 * @typedef {Object} Binade
 * @property {number} power  numbers in [2^power, 2^(power + 1))
 * @property {string} numbers  how many, in decimals
 * @property {boolean} subnormal  whether these are the format's subnormal numbers, which
 *   share their exponent with no other row here: power is that of the greatest of them,
 *   and the row has all of them
 * @property {Exact} ulp
 */

/** All seven roundings of a value.
 * @typedef {Object} Roundings
 * @property {Exact | null} exact
 * @property {(Rounded & {rounding: Rounding})[]} rows  the six that draw nothing
 * @property {{down: Rounded, up: Rounded, probability: number, chance: string}} stochastic
 *   `down` is the outcome toward zero, `up` the one away from zero; `probability` is that
 *   of `up`, `chance` the same in up to 40 digits. Where both are equal, as where the value
 *   is exact, it is 0
 */

/** A cast of one number, and what the result is as a number of the first format again.
 * @typedef {Rounded & {back: Value, same: boolean}} RoundTrip
 */

/** @typedef {Object} Chain
 * @property {Exact | null} exact  of what came in
 * @property {Rounded[]} steps  each cast by itself: its error is against the one before
 * @property {Rounded} direct  to the last format at once
 * @property {boolean} differs  whether that is another code than the chain's
 */

/** A row of digits of a sum or product, all rows of one operation equally long.
 * @typedef {Object} Digits
 * @property {boolean} negative
 * @property {string} bits  of the magnitude, the last one counting 2^unit
 * @property {Exact} exact
 */

/** add and multiply, step by step.
 * @typedef {Object} Operation
 * @property {Value} a
 * @property {Value} b
 * @property {string} special  why there are no digits: "Inf - Inf", "NaN", "Inf times 0";
 *   "" if there are some. Then the next six are null
 * @property {number | null} unit  exponent of the last digit of `rows` and `exact`
 * @property {{a: Digits, b: Digits} | null} rows  the operands: of an addition aligned
 *   to one unit, of a product their significands as integers
 * @property {{a: number, b: number} | null} units  exponents of the last digits of rows
 * @property {Digits | null} result  the exact sum or product
 * @property {number | null} last  exponent of the last place that the format keeps
 * @property {{kept: string, guard: string, round: string, sticky: string, rest: string,
 *   up: boolean, tie: boolean} | null} rounding
 *   digits of the exact result as far as the format keeps them; the next bit, the one
 *   after it, and whether any after that is set; all that is not kept. `up`: the kept
 *   part grows by one in magnitude
 * @property {Rounded} rounded
 */

// -- tensor cores ---------------------------------------------------------------------

/** @typedef {Object} Device
 * @property {string} name  "H100"
 * @property {string} architecture  "Hopper, sm_90"
 * @property {string[]} aliases
 * @property {string} board
 * @property {Object<string, number>} peak  dense 10^12 operations a second by format
 * @property {string[]} instructions  what GEMM libraries use first
 */

/** An instruction with its formats: a row of td.tensor_core's models.
 * @typedef {Object} Model
 * @property {number} index  its place in `models`
 * @property {string} device
 * @property {string} instruction
 * @property {string} a  format of the left operand
 * @property {string} b
 * @property {"float32" | "float16"} accumulator
 * @property {string} name  "H100 wgmma float16 -> float32"
 * @property {number} depth  products of an MMA group
 * @property {number} instructionDepth  k of an instruction
 * @property {number} fraction  bits kept below the greatest exponent
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
 * @property {number} index  its place in `scaledModels`
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

/** What a group aligns: a product, a sum of 16 products, or the accumulator.
 * @typedef {Object} Term
 * @property {number[]} ks  which k; empty: the accumulator
 * @property {Exact} exact
 * @property {number | null} exponent  that it is aligned by; null: it is zero
 * @property {Exact} kept
 * @property {string} keptUnits  how often 2^unit is in it, "-0x600000"
 * @property {Exact | null} cut  what is cut off; null: nothing
 */

/** @typedef {Object} SumRounding
 * @property {string} how  "toward zero" or "to nearest"
 * @property {boolean} up  the magnitude grew
 * @property {boolean} tie
 * @property {boolean} overflow  to Inf
 * @property {Exact | null} off  what was cut off, or added if `up`, with the sum's sign;
 *   null: exact, or overflow
 */

/** An MMA group.
 * @typedef {Object} Group
 * @property {"group"} kind
 * @property {number[]} ks
 * @property {Value} accumulator  before it
 * @property {string[]} special  why the result is Inf or NaN: "k 3: a is NaN". Then there
 *   are no terms, and all that follows but `result` is null
 * @property {Term[]} terms  the accumulator first
 * @property {number | null} greatest  exponent; null: all is zero
 * @property {string[]} sources  what has it: "c", "k 0", "the floor"
 * @property {number | null} unit  exponent of the last bit kept
 * @property {string | null} totalUnits  the sum in units, hexadecimal
 * @property {Exact | null} total
 * @property {SumRounding | null} rounding
 * @property {Value} result  the next group's accumulator
 */

/** An addition to the accumulator, to nearest, ties to even: of emulated instructions,
 * or of a promotion.
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
 * @property {string} rule  its own
 * @property {string[]} rules  all that it may have
 * @property {number} bitsPerValue
 * @property {Exact} max  greatest element
 * @property {boolean} poisons  a NaN or Inf makes the whole block NaN
 */

/** One number of a block.
 * @typedef {Object} BlockElement
 * @property {Exact | null} x  as float32, as it is quantized; null of Inf and NaN
 * @property {string} given  that as a text: "-1.5", "nan"
 * @property {number} code
 * @property {string} hex
 * @property {string} binary
 * @property {string} element  what the code is by itself: "-1.5", "nan"
 * @property {number | null} residualCode
 * @property {string | null} residual
 * @property {string} value  as float32, what dequantize gives
 * @property {number} number  that, to draw
 * @property {Exact | null} exact  that; null of Inf and NaN
 * @property {Exact | null} error  value - what was given; null if either is not finite
 * @property {string} outcome  as of a Rounded; "NaN: its scale" beside NaN and Inf
 */

/** @typedef {Object} BlockScale
 * @property {number} code
 * @property {string} hex
 * @property {Exact | null} worth  by itself; null: NaN
 * @property {Exact | null} scale  times the tensor's, as float32: S, or R of a residual
 */

/** @typedef {Object} Block
 * @property {BlockScale} scale
 * @property {BlockScale | null} residualScale
 * @property {BlockElement[]} elements  as many as values came in
 * @property {string} amax  the greatest finite magnitude
 * @property {string} rms  root of the mean squared error, "0.0012"; "" if not finite
 * @property {string} worst  greatest error in magnitude
 */

/** @typedef {Object} Quantized
 * @property {string} error  why it cannot be done ("x[3] is nan: ..."); "" if it can; if
 *   not, format and rule alone are there beside it
 * @property {string} format
 * @property {string} rule
 * @property {string} scaleFormat
 * @property {Exact} tensorScale
 * @property {number} blockSize
 * @property {Block[]} blocks
 * @property {string} rms  of all blocks
 * @property {string} worst
 */
