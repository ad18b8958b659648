/* Of the Number view: how a number's fields make its value, its facts, its neighbours. */
"use strict";

explorer.numberFacts = (() => {
    const { h, s } = explorer.dom;
    const { KINDS, minus, short, valueText, powerOfTwo } = explorer.wording;

    /** What was typed, and is a number. @typedef {Parsed & {rounded: Rounded}} Read */

    /** What the codes without a power of two are. @type {Object<string, string>} */
    const WITHOUT_POWER = {
        zero: "All bits of exponent and mantissa are 0: zero.",
        inf: "This code stands for infinity.",
        nan: "This code stands for no number (NaN).",
    };

    /** "+1 x 2^(4 - 7) x 1.625", each factor in its field's colour.
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
            subnormal && h("span", { class: "hint" }, " The exponent's bits are all 0: "
                + "a subnormal number, whose significand begins with 0."));
    }

    /** @param {Read} parsed @returns {HTMLElement} */
    function facts(parsed) {
        const { value } = parsed.rounded;
        /** @type {[string, any][]} */
        const rows = [
            ["Typed, exactly", parsed.isCode ? null : parsed.exact && minus(parsed.exact.decimal)],
            ["Held, exactly", value.exact && minus(value.exact.decimal)],
            ["m \u00d7 2\u207f", value.exact && powerOfTwo(value.exact.power)],
            ["Hexadecimal", value.exact && minus(value.exact.hex)],
            ["Code", `${value.hex}, in bits ${value.binary}`],
            ["Kind", KINDS[value.kind]],
            ["Lost by rounding", !parsed.isCode && explorer.wording.outcome(parsed.rounded)],
            ["Spacing here (ulp)", value.ulp && [powerOfTwo(value.ulp.power),
                ` = ${short(value.ulp)}`]],
        ];
        return h("dl", { class: "facts" }, rows.filter(([, fact]) => fact).map(([name, fact]) =>
            h("div", {}, h("dt", {}, name), h("dd", {}, fact))));
    }

    const WIDTH = 640;
    const LEFT = 90;
    const MIDDLE = WIDTH / 2;
    const RIGHT = WIDTH - LEFT;
    const AXIS = 62;

    /** Where the exact value lies between the number and its neighbours.
     * @param {Rounded} rounded @param {Neighbours} neighbours @returns {number | null} */
    function placeOf({ error }, { gapBelow, gapAbove }) {
        const gap = error && (error.negative ? gapAbove : gapBelow);
        if (!gap || error.power === "0") {
            return null;
        }
        const part = Math.min(1, Math.abs(error.number / gap.number));
        return MIDDLE + (error.negative ? part : -part) * (MIDDLE - LEFT);
    }

    /** What there is room for. @param {Value} value */
    const nearly = (value) => (value.exact && value.text.length > 12 ? short(value.exact)
        : valueText(value));

    /** The number between its neighbours, and where the typed one lies.
     * @param {Read} parsed @param {Neighbours} neighbours
     * @param {(value: Value) => void} chosen  a neighbour @returns {HTMLElement} */
    function between(parsed, neighbours, chosen) {
        const { value } = parsed.rounded;
        const tick = (/** @type {number} */ x, /** @type {Value | null} */ at, /** @type {string} */ kind) =>
            at && s("g", { class: kind },
                s("line", { x1: x, x2: x, y1: AXIS - 14, y2: AXIS + 14 }),
                s("text", { x, y: AXIS + 34 }, nearly(at)),
                s("text", { x, y: AXIS + 54, class: "code" }, at.hex));
        const typed = placeOf(parsed.rounded, neighbours);
        const title = `${valueText(value)} and its neighbours`;
        const text = `Below: ${neighbours.below ? valueText(neighbours.below) : "none"}; above: ${
            neighbours.above ? valueText(neighbours.above) : "none"}`;
        const picture = s("svg", { viewBox: `0 0 ${WIDTH} 130`, role: "img", class: "between" },
            s("title", {}, title), s("desc", {}, text),
            s("line", { class: "axis", x1: neighbours.below ? LEFT - 60 : MIDDLE,
                x2: neighbours.above ? RIGHT + 60 : MIDDLE, y1: AXIS, y2: AXIS }),
            tick(LEFT, neighbours.below, "near"), tick(RIGHT, neighbours.above, "near"),
            tick(MIDDLE, value, "held"),
            typed !== null && s("g", { class: "typed" },
                s("path", { d: `M${typed} ${AXIS - 4} l-7 -14 h14 z` }),
                s("text", { x: typed, y: AXIS - 28 }, "typed")));
        const step = (/** @type {string} */ name, /** @type {Value | null} */ to, /** @type {string} */ key) =>
            explorer.controls.button(name, () => to && chosen(to),
                { disabled: !to, "data-key": `step-${key}` });
        return h("div", {}, picture, explorer.controls.group("Neighbours", [
            step("\u2190 Number below", neighbours.below, "below"),
            step("Number above \u2192", neighbours.above, "above")]));
    }

    return { formula, facts, between };
})();
