/* The arithmetic of the page: calls of the C that core.js carries, compiled to
 * WebAssembly. JavaScript hands over codes and texts and reads back JSON; it computes
 * nothing. arithmetic_types.js says what the types are.
 *
 * `arithmetic.ready` is a promise; all else may be called when it is fulfilled.
 * Functions throw an Error for what no caller should ask (an unknown format, a code of
 * too many bits); `parse` and `quantize`, which take what people type, return `error`.
 */
"use strict";

const arithmetic = (() => {
    /** @type {any} exports of the module */
    let c;
    /** @type {any} tables of the package, and words of C's structs */
    const data = core.data;

    // -- memory ----------------------------------------------------------------------

    const encoder = new TextEncoder();
    const decoder = new TextDecoder();

    /** @param {string} text @returns {number} its bytes, now in the module's input */
    function put(text) {
        const bytes = encoder.encode(text);
        if (bytes.length > c.input_room()) {
            throw new Error(`${bytes.length} characters; ${c.input_room()} are the most`);
        }
        new Uint8Array(c.memory.buffer, c.input(), bytes.length).set(bytes);
        return bytes.length;
    }

    /** Texts, a line each. @param {readonly string[]} texts */
    const putLines = (texts) =>
        put(texts.map((text) => text.replaceAll("\n", " ")).join("\n"));

    /** What the module has written. @param {number} length @returns {any} */
    function take(length) {
        const bytes = new Uint8Array(c.memory.buffer, c.output(), length);
        const text = decoder.decode(bytes);
        const answer = TEXTS.test(text) ? JSON.parse(text, revive) : JSON.parse(text);
        if (answer.failure) {
            throw new Error(answer.failure);
        }
        return answer;
    }

    /** JSON has no bigint, NaN, or Inf: codes of float64 and such a `number` are texts. */
    const TEXTS = /"(code|number)":"/;

    /** @param {string} key @param {any} x */
    function revive(key, x) {
        if (typeof x !== "string") {
            return x;
        }
        return key === "code" ? BigInt(x) : key === "number" ? SPECIAL[x] : x;
    }

    /** @type {Object<string, number>} */
    const SPECIAL = { nan: NaN, inf: Infinity, "-inf": -Infinity };

    // -- names -----------------------------------------------------------------------

    /** @param {readonly string[]} names @param {string} name @param {string} what */
    function indexOf(names, name, what) {
        const index = names.indexOf(name);
        if (index < 0) {
            throw new Error(`unknown ${what} ${name}; known are ${names.join(", ")}`);
        }
        return index;
    }

    /** @type {string[]} */
    const names = data.names.map((/** @type {any} */ row) => row.name);
    /** @type {string[]} */
    const blockNames = data.blockFormats.map((/** @type {any} */ row) => row.name);
    /** @param {string} name */
    const formatIndex = (name) => indexOf(names, name, "format");
    /** @param {Rounding} name */
    const roundingIndex = (name) => indexOf(data.roundings, name, "rounding");
    /** @param {Overflow} name */
    const overflowIndex = (name) => indexOf(data.overflows, name, "overflow");

    // -- lists of codes --------------------------------------------------------------

    /** Codes, one after the other, in the module's list `which`.
     * @param {number} which @param {readonly Code[]} codes */
    function list(which, codes) {
        if (codes.length > c.list_room()) {
            throw new Error(`${codes.length} numbers; ${c.list_room()} are the most`);
        }
        const there = new BigUint64Array(c.memory.buffer, c.list(which), codes.length);
        codes.forEach((code, i) => (there[i] = BigInt(code)));
        return codes.length;
    }

    /** Words of a struct of C, in which null is an exponent that nothing has.
     * @param {readonly (number | null)[]} words @param {Code} last */
    const putWords = (words, last) =>
        list(2, [...words.map((word) => word ?? c.no_exponent()), last]);

    const self = {
        /** Fulfilled when everything below may be used; rejected where WebAssembly is
         * missing. @type {Promise<void>} */
        ready: Promise.resolve(),

        /** Compiler and digest of the C in use. @type {{compiler: string, digest: string}} */
        built: { compiler: core.compiler, digest: core.digest },

        // -- tables ------------------------------------------------------------------

        /** The 13 formats of the package, then float16, float32, float64.
         * @type {Format[]} */
        formats: [],
        /** @type {BlockFormat[]} */
        blockFormats: [],
        /** @type {string[]} of blocks: what `quantize` may be told */
        scaleFormats: data.scaleFormats,
        /** @type {Device[]} */
        devices: data.devices,
        /** @type {Model[]} */
        models: data.models,
        /** @type {ScaledModel[]} */
        scaledModels: data.scaledModels,
        /** @type {Rounding[]} */
        roundings: data.roundings,
        /** @type {Overflow[]} */
        overflows: data.overflows,

        /** Facts of a format by its name, short name, or alias, in any case.
         * @param {string} name @returns {Format} @throws {Error} for an unknown one */
        format(name) {
            return self.formatNamed(name) ?? self.formats[formatIndex(name)];
        },

        /** The same, undefined for an unknown one. @param {string} name */
        formatNamed(name) {
            const small = name.toLowerCase();
            return self.formats.find(
                (f) => f.name === small || f.short === small || f.aliases.includes(small));
        },

        // -- numbers -----------------------------------------------------------------

        /** Read what a person typed: a decimal of up to 4,000 characters, a fraction, a
         * hexadecimal float, inf, nan (with a sign or without, in any case), or a code:
         * "0x7E", the item as it lies in memory (of tf32: 32 bits, the low 13 of which
         * do not count), or "0b1111110", up to `bits` bits of a code, the first of them
         * may be missing. Underscores between digits of a code are ignored.
         * @param {string} text
         * @param {string} format  what it is rounded to, or what the code is of
         * @param {Rounding} [rounding] @param {Overflow} [overflow]
         * @returns {Parsed} */
        parse(text, format, rounding = "ties_to_even", overflow = "ieee") {
            return take(c.parse(formatIndex(format), roundingIndex(rounding),
                overflowIndex(overflow), put(text)));
        },

        /** The number that a code is.
         * @param {string} format @param {Code} code @returns {Value} */
        describe(format, code) {
            return take(c.describe(formatIndex(format), BigInt(code)));
        },

        /** All numbers of a format of up to 8 bits, by code.
         * @param {string} format @returns {Value[]} */
        values(format) {
            const { bits, codes } = self.format(format);
            if (bits > 8) {
                throw new Error(`${format} has ${codes} codes; 256 are the most here`);
            }
            return Array.from({ length: codes }, (_, code) => self.describe(format, code));
        },

        /** @param {string} format @param {Code} code @returns {Neighbors} */
        neighbors(format, code) {
            return take(c.neighbors(formatIndex(format), BigInt(code)));
        },

        /** Numbers of a format in an interval, if they are no more than `most` (2000 at
         * most). @param {string} format @param {string} low @param {string} high
         * @param {number} [most] @returns {Between} */
        between(format, low, high, most = 2000) {
            return take(c.between(formatIndex(format), most, putLines([low, high])));
        },

        /** How many numbers a format has in each power of two.
         * @param {string} format @returns {Binade[]} ascending */
        binades(format) {
            return take(c.binades(formatIndex(format)));
        },

        // -- rounding ----------------------------------------------------------------

        /** A value rounded once.
         * @param {string} text  as `parse` takes it, but no code
         * @param {string} format @param {Rounding} [rounding] @param {Overflow} [overflow]
         * @param {bigint} [draw]  of "stochastic": uniform in [0, 2^64)
         * @returns {Rounded} */
        round(text, format, rounding = "ties_to_even", overflow = "ieee", draw = 0n) {
            return take(c.round(formatIndex(format), roundingIndex(rounding),
                overflowIndex(overflow), draw, put(text)));
        },

        /** A value rounded in all seven ways.
         * @param {string} text @param {string} format @param {Overflow} [overflow]
         * @returns {Roundings} */
        allRoundings(text, format, overflow = "ieee") {
            const found = take(c.all_roundings(formatIndex(format), overflowIndex(overflow),
                put(text)));
            for (const row of found.rows) {
                row.rounding = self.roundings[row.rounding];
            }
            return found;
        },

        /** A number of one format as one of another, and back again by the same rounding.
         * @param {string} from @param {Code} code @param {string} to
         * @param {Rounding} [rounding] @param {Overflow} [overflow] @param {bigint} [draw]
         * @returns {RoundTrip} */
        cast(from, code, to, rounding = "ties_to_even", overflow = "ieee", draw = 0n) {
            return take(c.cast(formatIndex(from), BigInt(code), formatIndex(to),
                roundingIndex(rounding), overflowIndex(overflow), draw));
        },

        /** The same to every format, in their order.
         * @param {string} from @param {Code} code
         * @param {Rounding} [rounding] @param {Overflow} [overflow] @returns {RoundTrip[]} */
        casts(from, code, rounding = "ties_to_even", overflow = "ieee") {
            return names.map((to) => self.cast(from, code, to, rounding, overflow));
        },

        /** A value through several formats, one after the other, and to the last at once.
         * @param {string} text @param {readonly string[]} formats  1 to 16
         * @param {Rounding} [rounding]  not "stochastic" @param {Overflow} [overflow]
         * @returns {Chain} */
        chain(text, formats, rounding = "ties_to_even", overflow = "ieee") {
            const count = list(0, formats.map(formatIndex));
            return take(c.chain(count, roundingIndex(rounding), overflowIndex(overflow),
                put(text)));
        },

        /** Two numbers of a format added, or multiplied, and rounded once.
         * @param {"add" | "multiply"} what @param {string} format
         * @param {Code} a @param {Code} b
         * @param {Rounding} [rounding]  not "stochastic" @param {Overflow} [overflow]
         * @returns {Operation} */
        operate(what, format, a, b, rounding = "ties_to_even", overflow = "ieee") {
            const which = indexOf(["add", "multiply"], what, "operation");
            return take(c.operate(which, formatIndex(format), BigInt(a), BigInt(b),
                roundingIndex(rounding), overflowIndex(overflow)));
        },

        /** A float64 of JavaScript (a draw, a place on the screen) as the text of its
         * exact value. @param {number} x @returns {string} */
        textOf(x) {
            const bits = new DataView(new ArrayBuffer(8));
            bits.setFloat64(0, x);
            const value = self.describe("float64", bits.getBigUint64(0));
            return value.exact ? value.exact.text : value.text;
        },

        // -- tensor cores ------------------------------------------------------------

        /** The model of an instruction, or undefined.
         * @param {string} device @param {string} instruction @param {string} a
         * @param {string} b @param {string} accumulator */
        model(device, instruction, a, b, accumulator = "float32") {
            return self.models.find((m) => m.device === device && m.a === a && m.b === b &&
                m.instruction === instruction && m.accumulator === accumulator);
        },

        /** c + the products of two vectors as an instruction computes it, step by step.
         * @param {Model} model  one of `models`
         * @param {readonly Code[]} a  of model.a; 1024 at most
         * @param {readonly Code[]} b  of model.b, as many
         * @param {Code} [accumulator]  of model.accumulator
         * @param {number} [promoteEvery]  as td.tensor_core.matmul has it; 0: never
         * @returns {Dot} */
        dot(model, a, b, accumulator = 0, promoteEvery = 0) {
            if (a.length !== b.length) {
                throw new Error(`a has ${a.length} numbers and b ${b.length}`);
            }
            list(0, a);
            list(1, b);
            putWords(data.modelWords[model.index], accumulator);
            return take(c.dot(formatIndex(model.a), formatIndex(model.b), a.length,
                promoteEvery));
        },

        /** The same of a block-scaled instruction.
         * @param {ScaledModel} model  one of `scaledModels`
         * @param {readonly Code[]} a @param {readonly Code[]} b
         * @param {readonly Code[]} scalesA  codes of model.scale, one for each
         *   model.blockSize numbers or what is left of them @param {readonly Code[]} scalesB
         * @param {Code} [accumulator]  a float32's @returns {Dot} */
        scaledDot(model, a, b, scalesA, scalesB, accumulator = 0) {
            const blocks = Math.ceil(a.length / model.blockSize);
            if (a.length !== b.length) {
                throw new Error(`a has ${a.length} numbers and b ${b.length}`);
            }
            if (scalesA.length !== blocks || scalesB.length !== blocks) {
                throw new Error(`${blocks} scales are needed for each operand`);
            }
            list(0, a);
            list(1, b);
            putWords(data.scaledWords[model.index], accumulator);
            list(3, scalesA);
            list(4, scalesB);
            return take(c.scaled_dot(formatIndex(model.a), formatIndex(model.b), a.length));
        },

        // -- blocks ------------------------------------------------------------------

        /** Values to blocks: scales, codes, what they are worth, errors.
         * @param {readonly string[]} values  1 to 1024 texts of values, as for `round`
         * @param {string} format  a name of `blockFormats`
         * @param {{rule?: string, scaleFormat?: string, blockSize?: number,
         *   rounding?: Rounding, overflow?: "raise" | "saturate"}} [options]  what is left
         *   out is the format's own; rounding may not be "stochastic"
         * @returns {Quantized} */
        quantize(values, format, options = {}) {
            const index = indexOf(blockNames, format, "block format");
            const row = self.blockFormats[index];
            const { rule = row.rule, scaleFormat = row.scaleFormat, blockSize = row.blockSize,
                rounding = "ties_to_even", overflow = "raise" } = options;
            indexOf(row.rules, rule, "rule");
            const scale = scaleFormat === null
                ? -1 : indexOf(self.scaleFormats, scaleFormat, "scale format");
            const [element, residual, , poisons] = data.blockWords[index];
            list(2, [element, residual, scale, blockSize, indexOf(data.rules, rule, "rule"),
                roundingIndex(rounding), poisons,
                indexOf(["raise", "saturate"], overflow, "overflow")]);
            return { format, rule, ...take(c.quantize(values.length, putLines(values))) };
        },
    };

    // -- start -----------------------------------------------------------------------

    /** @param {{instance: any}} made */
    function start(made) {
        c = made.instance.exports;
        self.formats = take(c.formats());
        self.formats.forEach((format, i) =>
            Object.assign(format, data.names[i], { codes: 2 ** format.bits }));
        for (const row of data.blockFormats) {
            const max = self.parse(String(row.max), "float64").exact;
            self.blockFormats.push({ ...row, max });
        }
    }
    const bytes = Uint8Array.from(atob(core.wasm), (character) => character.charCodeAt(0));
    self.ready = Promise.resolve().then(() => WebAssembly.instantiate(bytes)).then(start);
    return self;
})();
