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

    /** What the module has written. @param {number} length @returns {any} */
    function take(length) {
        const bytes = new Uint8Array(c.memory.buffer, c.output(), length);
        const answer = JSON.parse(decoder.decode(bytes), revive);
        if (answer.failure) {
            throw new Error(answer.failure);
        }
        return answer;
    }

    /** JSON has no bigint, NaN, or Inf: codes of float64 and all `number` are texts.
     * @param {string} key @param {any} x */
    function revive(key, x) {
        if (typeof x !== "string") {
            return x;
        }
        if (key === "code") {
            return BigInt(x);
        }
        return key === "number" || key === "probability" ? numberOf(x) : x;
    }

    /** @param {string} text @returns {number} */
    function numberOf(text) {
        const sign = text.startsWith("-") ? -1 : 1;
        return text.endsWith("nan") ? NaN : text.endsWith("inf") ? sign * Infinity : Number(text);
    }

    // -- names -----------------------------------------------------------------------

    /** @param {readonly string[]} names @param {string} name @param {string} what */
    function indexOf(names, name, what) {
        const index = names.indexOf(name);
        if (index < 0) {
            throw new Error(`unknown ${what} ${name}; known are ${names.join(", ")}`);
        }
        return index;
    }

    return {};
})();
