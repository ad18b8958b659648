/* The arithmetic of the page: calls of the C code that core.js contains, compiled to
 * WebAssembly. JavaScript passes codes and strings and reads JSON back; it computes
 * nothing. arithmetic_types.js describes the types.
 *
 * `arithmetic.ready` is a promise. Call the other functions only after it is fulfilled.
 * Functions throw an Error for arguments that are faults of the caller (an unknown format,
 * a code of too many bits). `parse` and `quantize`, which take typed input, return `error`.
 */
"use strict";

const arithmetic = (() => {
    /** @type {any} exports of the module */
    let c;
    /** @type {any} tables of the package, and members of C's structs */
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

    /** Put strings into the input, one per line. @param {readonly string[]} texts */
    const putLines = (texts) =>
        put(texts.map((text) => text.replaceAll("\n", " ")).join("\n"));

    /** Read the answer that the module has written.
     * @param {number} length @returns {any} */
    function take(length) {
        const bytes = new Uint8Array(c.memory.buffer, c.output(), length);
        const text = decoder.decode(bytes);
        const answer = TEXTS.test(text) ? JSON.parse(text, revive) : JSON.parse(text);
        if (answer.failure) {
            throw new Error(answer.failure);
        }
        return answer;
    }

    /** JSON has no bigint, NaN or Inf: codes of float64 and such a `number` are strings. */
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

    /** Write codes into the module's list `which`, and return their number.
     * @param {number} which @param {readonly Code[]} codes */
    function list(which, codes) {
        if (codes.length > c.list_room()) {
            throw new Error(`${codes.length} numbers; ${c.list_room()} are the most`);
        }
        const there = new BigUint64Array(c.memory.buffer, c.list(which), codes.length);
        codes.forEach((code, i) => (there[i] = BigInt(code)));
        return codes.length;
    }

    /** Write the members of a C struct into list 2, with no_exponent() for null.
     * @param {readonly (number | null)[]} words @param {Code} last */
    const putWords = (words, last) =>
        list(2, [...words.map((word) => word ?? c.no_exponent()), last]);

    const self = {
        /** Fulfilled when the members below can be used; rejected if WebAssembly is
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
        /** @type {string[]} formats of the scales of blocks, for `quantize` */
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

        /** Find a format by its name, short name, or alias, in any case.
         * @param {string} name @returns {Format} @throws {Error} for an unknown one */
        format(name) {
            return self.formatNamed(name) ?? self.formats[formatIndex(name)];
        },

        /** Find a format as `format`; undefined if it is unknown. @param {string} name */
        formatNamed(name) {
            const small = name.toLowerCase();
            return self.formats.find(
                (f) => f.name === small || f.short === small || f.aliases.includes(small));
        },

        // -- numbers -----------------------------------------------------------------

        /** Read typed input: a decimal of up to 4,000 characters, a fraction, a hexadecimal
         * float, inf, nan (with or without a sign, in any case), or a code. A code is
         * "0x7E", the item as it is stored in memory (for tf32, 32 bits, of which the low
         * 13 do not count), or "0b1111110", up to `bits` bits of a code, in which leading
         * bits may be missing. Underscores between digits of a code are ignored.
         * @param {string} text
         * @param {string} format  that the number is rounded to, or that the code is of
         * @param {Rounding} [rounding] @param {Overflow} [overflow]
         * @returns {Parsed} */
        parse(text, format, rounding = "ties_to_even", overflow = "ieee") {
            return take(c.parse(formatIndex(format), roundingIndex(rounding),
                overflowIndex(overflow), put(text)));
        },

        /** Return the number of a code.
         * @param {string} format @param {Code} code @returns {Value} */
        describe(format, code) {
            return take(c.describe(formatIndex(format), BigInt(code)));
        },

        /** Return all numbers of a format of up to 8 bits, by code.
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

        /** Return the numbers of a format in an interval, if there are at most `most` (at
         * most 2000). @param {string} format @param {string} low @param {string} high
         * @param {number} [most] @returns {Between} */
        between(format, low, high, most = 2000) {
            return take(c.between(formatIndex(format), most, putLines([low, high])));
        },

        /** Return the number of values that a format has in each binade.
         * @param {string} format @returns {Binade[]} ascending */
        binades(format) {
            return take(c.binades(formatIndex(format)));
        },

        // -- rounding ----------------------------------------------------------------

        /** Round a value once.
         * @param {string} text  a value as `parse` takes it, not a code
         * @param {string} format @param {Rounding} [rounding] @param {Overflow} [overflow]
         * @param {bigint} [draw]  of "stochastic": uniform in [0, 2^64)
         * @returns {Rounded} */
        round(text, format, rounding = "ties_to_even", overflow = "ieee", draw = 0n) {
            return take(c.round(formatIndex(format), roundingIndex(rounding),
                overflowIndex(overflow), draw, put(text)));
        },

        /** Round a value by all seven roundings.
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

        /** Cast a number to another format, and back by the same rounding.
         * @param {string} from @param {Code} code @param {string} to
         * @param {Rounding} [rounding] @param {Overflow} [overflow] @param {bigint} [draw]
         * @returns {RoundTrip} */
        cast(from, code, to, rounding = "ties_to_even", overflow = "ieee", draw = 0n) {
            return take(c.cast(formatIndex(from), BigInt(code), formatIndex(to),
                roundingIndex(rounding), overflowIndex(overflow), draw));
        },

        /** Cast a number to every format and back, in the order of `formats`.
         * @param {string} from @param {Code} code @param {Rounding} [rounding]
         * @param {Overflow} [overflow] @returns {RoundTrip[]} */
        casts(from, code, rounding = "ties_to_even", overflow = "ieee") {
            return names.map((to) => self.cast(from, code, to, rounding, overflow));
        },

        /** Cast a value through several formats, and directly to the last of them.
         * @param {string} text @param {readonly string[]} formats  1 to 16
         * @param {Rounding} [rounding]  not "stochastic" @param {Overflow} [overflow]
         * @returns {Chain} */
        chain(text, formats, rounding = "ties_to_even", overflow = "ieee") {
            const count = list(0, formats.map(formatIndex));
            return take(c.chain(count, roundingIndex(rounding), overflowIndex(overflow),
                put(text)));
        },

        /** Add or multiply two numbers of a format, and round once.
         * @param {"add" | "multiply"} what @param {string} format
         * @param {Code} a @param {Code} b
         * @param {Rounding} [rounding]  not "stochastic" @param {Overflow} [overflow]
         * @returns {Operation} */
        operate(what, format, a, b, rounding = "ties_to_even", overflow = "ieee") {
            const which = indexOf(["add", "multiply"], what, "operation");
            return take(c.operate(which, formatIndex(format), BigInt(a), BigInt(b),
                roundingIndex(rounding), overflowIndex(overflow)));
        },

        /** Return the exact value of a JavaScript number (a random number, a position on
         * the screen) as a string.
         * @param {number} x @returns {string} */
        textOf(x) {
            const bits = new DataView(new ArrayBuffer(8));
            bits.setFloat64(0, x);
            const value = self.describe("float64", bits.getBigUint64(0));
            return value.exact ? value.exact.text : value.text;
        },

        // -- tensor cores ------------------------------------------------------------

        /** Find the model of an instruction, or undefined.
         * @param {string} device @param {string} instruction @param {string} a
         * @param {string} b @param {string} accumulator */
        model(device, instruction, a, b, accumulator = "float32") {
            return self.models.find((m) => m.device === device && m.a === a && m.b === b &&
                m.instruction === instruction && m.accumulator === accumulator);
        },

        /** Compute c + the dot product of two vectors as an instruction does, step by step.
         * @param {Model} model  one of `models`
         * @param {readonly Code[]} a  codes of model.a, at most 1024
         * @param {readonly Code[]} b  codes of model.b, as many as a
         * @param {Code} [accumulator]  c, a code of model.accumulator
         * @param {number} [promoteEvery]  as in td.tensor_core.matmul; 0: never
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

        /** Compute c + a dot product as a block-scaled instruction does.
         * @param {ScaledModel} model  one of `scaledModels`
         * @param {readonly Code[]} a @param {readonly Code[]} b
         * @param {readonly Code[]} scalesA  codes of model.scale, one for each
         *   model.blockSize numbers; the last block may be shorter
         * @param {readonly Code[]} scalesB
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

        /** Quantize values to blocks: scales, codes, their values, errors.
         * @param {readonly string[]} values  1 to 1024 values, as for `round`
         * @param {string} format  a name of `blockFormats`
         * @param {{rule?: string, scaleFormat?: string, blockSize?: number,
         *   rounding?: Rounding, overflow?: "raise" | "saturate"}} [options]  missing ones
         *   are the format's own; rounding must not be "stochastic"
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
