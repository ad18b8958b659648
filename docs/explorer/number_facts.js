/* Contents of the Number view: a number's formula from its fields, its facts, its
 * neighbors. */
"use strict";

explorer.numberFacts = (() => {
    const { h, s } = explorer.dom;
    const { KINDS, minus, short, valueText, powerOfTwo } = explorer.wording;

    /** Typed input that is a number. @typedef {Parsed & {rounded: Rounded}} Read */

    /** Descriptions of the codes without a power of two. @type {Object<string, string>} */
    const WITHOUT_POWER = {
        zero: "All bits of exponent and mantissa are 0: zero.",
        inf: "This code means infinity.",
        nan: "This code means NaN (not a number).",
    };

    /** "+1 x 2^(4 - 7) x 1.625", each factor in its field's color.
     * @param {Format} format @param {Value} value @returns {HTMLElement} */
    function formula(format, value) {
        if (value.power === null) {
            return h("p", { class: "formula" }, WITHOUT_POWER[value.kind]);
        }
        const subnormal = value.kind === "subnormal";
        const stored = subnormal ? 1 : value.exponentField;
        const factors = [
            value.sign && h("span", { class: "field sign" }, value.negative ? minus("-1") : "+1"),
            h("span", { class: "field exponent" }, "2",
                h("sup", {}, minus(`${stored} - ${format.bias}`))),
            value.mantissa && h("span", { class: "field mantissa" }, value.significand),
        ].filter(Boolean);
        return h("p", { class: "formula" },
            factors.flatMap((factor, i) => (i ? [" \u00d7 ", factor] : [factor])),
            ` = ${valueText(value)}`,
            subnormal && h("span", { class: "hint" }, " All bits of the exponent are 0: "
                + "a subnormal number, whose significand begins with 0."));
    }

    /** @param {Read} parsed @returns {HTMLElement} */
    function facts(parsed) {
        const { value } = parsed.rounded;
        /** @type {[string, any][]} */
        const rows = [
            ["Input, exact", parsed.isCode ? null : parsed.exact && minus(parsed.exact.decimal)],
            ["Stored, exact", value.exact && minus(value.exact.decimal)],
            ["m \u00d7 2\u207f", value.exact && powerOfTwo(value.exact.power)],
            ["Hexadecimal", value.exact && minus(value.exact.hex)],
            ["Code", `${value.hex}, in bits ${value.binary}`],
            ["Kind", KINDS[value.kind]],
            ["Outcome", !parsed.isCode && explorer.wording.outcome(parsed.rounded)],
            ["Spacing (ulp)", value.ulp && [powerOfTwo(value.ulp.power), " = ",
                minus(value.ulp.decimal)]],
        ];
        return explorer.tables.factList(rows);
    }

    const SIDE = 72;  // pixels outside the neighbors
    const AXIS = 62;

    /** Return the position of the exact value: -1 at the neighbor below, 0 at the number, 1
     * at the neighbor above; null if the value is exact or a neighbor is missing.
     * @param {Rounded} rounded @param {Neighbors} neighbors @returns {number | null} */
    function placeOf({ error }, { gapBelow, gapAbove }) {
        const gap = error && (error.negative ? gapAbove : gapBelow);
        if (!gap || error.power === "0") {
            return null;
        }
        const part = Math.min(1, Math.abs(error.number / gap.number));
        return error.negative ? part : -part;
    }

    /** Return a short string of a value, for which there is room. @param {Value} value */
    const nearly = (value) => (value.exact && value.text.length > 12 ? short(value.exact)
        : valueText(value));

    /** Draw a number between its neighbors, and the position of the typed number.
     * @param {Read} parsed @param {Neighbors} neighbors @param {number} width
     * @returns {SVGElement} */
    function between(parsed, neighbors, width) {
        const { value } = parsed.rounded;
        const middle = width / 2;
        const lower = width < 420 ? 44 : 0;  // so that labels do not touch each other
        const right = width - SIDE;
        const tick = (/** @type {number} */ x, /** @type {Value | null} */ at,
            /** @type {string} */ kind, down = 0) => at && s("g", { class: kind },
            s("line", { x1: x, x2: x, y1: AXIS - 14, y2: AXIS + 14 + down }),
            s("text", { x, y: AXIS + 34 + down }, nearly(at)),
            s("text", { x, y: AXIS + 54 + down, class: "code" }, at.hex));
        const part = placeOf(parsed.rounded, neighbors);
        const typed = part === null ? null : middle + part * (middle - SIDE);
        const text = `Below: ${neighbors.below ? valueText(neighbors.below) : "none"}; above: ${
            neighbors.above ? valueText(neighbors.above) : "none"}`;
        return s("svg", { viewBox: `0 0 ${width} ${124 + lower}`, role: "img", class: "between" },
            s("title", {}, `${valueText(value)} and its neighbors`), s("desc", {}, text),
            s("line", { class: "axis", x1: neighbors.below ? 0 : middle,
                x2: neighbors.above ? width : middle, y1: AXIS, y2: AXIS }),
            tick(SIDE, neighbors.below, "near"), tick(right, neighbors.above, "near"),
            tick(middle, value, "held", lower),
            typed !== null && s("g", { class: "typed" },
                s("path", { d: `M${typed} ${AXIS - 4} l-7 -14 h14 z` }),
                s("text", { x: typed, y: AXIS - 28 }, "typed")));
    }

    /** Make buttons that go to the neighbors.
     * @param {Neighbors} neighbors @param {(value: Value) => void} chosen
     * @returns {HTMLElement} */
    function steps(neighbors, chosen) {
        const step = (/** @type {string} */ name, /** @type {Value | null} */ to, /** @type {string} */ key) =>
            explorer.controls.button(name, () => to && chosen(to),
                { disabled: !to, "data-key": `step-${key}` });
        return explorer.controls.group("Neighbors", [
            step("\u2190 Number below", neighbors.below, "below"),
            step("Number above \u2192", neighbors.above, "above")]);
    }

    return { formula, facts, between, steps };
})();
