/* Values and outcomes as strings. */
"use strict";

explorer.wording = (() => {
    const { h } = explorer.dom;

    /** @type {Object<string, string>} */
    const ROUNDINGS = {
        ties_to_even: "to nearest, ties to even",
        ties_to_away: "to nearest, ties away from zero",
        toward_zero: "toward zero",
        toward_positive: "up, toward +Inf",
        toward_negative: "down, toward -Inf",
        to_odd: "to odd, if the result is inexact",
        stochastic: "at random, more often to the closer one",
    };
    /** @type {Object<string, string>} */
    const KINDS = {
        zero: "zero", subnormal: "subnormal", normal: "normal", inf: "infinity", nan: "NaN",
    };
    /** @type {Object<string, string>} */
    const SIGNS = { "inf": "Inf", "-inf": "-Inf", "nan": "NaN", "-nan": "-NaN" };

    /** Replace hyphens by minus signs, which are as wide as a plus. @param {string} text */
    const minus = (text) => text.replace(/-/g, "\u2212");

    /** @param {{text: string}} value */
    const valueText = (value) => minus(SIGNS[value.text] ?? value.text);

    /** Return a value as a string for functions of arithmetic: a decimal if it is short.
     * @param {Value} value */
    function exactText({ exact, text }) {
        return exact === null ? text : exact.decimal.length <= 24 ? exact.decimal : exact.text;
    }

    /** Return at most six digits of an exact value. @param {Exact} exact */
    const short = (exact) => minus(exact.short).replace("~", "\u2248 ");

    const RAISED = "\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079";
    /** Return "2^-6" with a raised exponent, without markup. @param {number} exponent */
    const raisedText = (exponent) => `2${String(exponent)
        .replace("-", "\u207b").replace(/\d/g, (digit) => RAISED[Number(digit)])}`;

    /** Separate the thousands of a count: "522,239". @param {string} count */
    const grouped = (count) => count.replace(/\B(?=(\d{3})+$)/g, ",");

    /** Show "-3 * 2^-5" with a raised exponent.
     * @param {string} power  of an exact value */
    function powerOfTwo(power) {
        const [, factor, exponent] = /^(-?\d+) \* 2\^(-?\d+)$/.exec(power) ?? [];
        return factor === undefined ? minus(power)
            : [minus(factor), " \u00d7 2", h("sup", {}, minus(exponent))];
    }

    /** @param {number} exponent */
    const twoTo = (exponent) => ["2", h("sup", {}, minus(String(exponent)))];

    /** Return a number short enough for a cell or a tick of an axis; it may be inexact.
     * @param {number} x @param {number} [digits]  unless x is an integer */
    function brief(x, digits = 6) {
        if (Number.isNaN(x)) {
            return "NaN";
        }
        if (!Number.isFinite(x)) {
            return minus(x < 0 ? "-Inf" : "Inf");
        }
        if (Object.is(x, -0)) {
            return minus("-0");
        }
        const size = Math.abs(x);
        const text = size !== 0 && (size >= 1e6 || size < 1e-3)
            ? x.toExponential(2).replace(/\.?0+e/, "e").replace("e+", "e")
            : String(Number.isInteger(x) ? x : Number(x.toPrecision(digits)));
        return minus(text);
    }

    /** Return the outcome of a rounding with its error: "exact", "rounded, subnormal:
     * 0.0016 (0.2 ulp)", "overflow to NaN".
     * @param {Rounded} rounded */
    const outcome = ({ outcome: words, error, ulps }) => (error === null || error.power === "0"
        ? words : `${words}: ${short(error)} (${ulps} ulp)`);

    return { ROUNDINGS, KINDS, minus, valueText, exactText, short, raisedText, grouped, powerOfTwo, twoTo, brief, outcome };
})();
