/* The Add and multiply view: two numbers of a format, aligned, added or multiplied,
 * rounded. */
"use strict";

(() => {
    const { h, fill } = explorer.dom;
    const { valueText, minus, short, powerOfTwo, twoTo, outcome } = explorer.wording;
    /** @type {Object<string, {text: string, sign: string}>} */
    const OPERATIONS = {
        add: { text: "Add", sign: "+" },
        multiply: { text: "Multiply", sign: "\u00d7" },
    };

    /** Divide the bits of the exact result: the bits that the format keeps, the guard bit,
     * the round bit, and the sticky bits.
     * @param {string} bits @param {number} lost  the number of bits that are not kept
     * @returns {{part: string, bits: string}[]} */
    function parts(bits, lost) {
        const at = bits.length - lost;
        return [
            { part: "kept", bits: bits.slice(0, at) },
            { part: "guard", bits: bits.slice(at, at + 1) },
            { part: "round", bits: bits.slice(at + 1, at + 2) },
            { part: "sticky", bits: bits.slice(at + 2) },
        ].filter((group) => group.bits);
    }

    /** Return all digits of a value if they are few. @param {Exact} exact */
    const digitsOf = (exact) => (exact.decimal.length <= 20 ? minus(exact.decimal) : short(exact));

    /** Make a row of the drawing: a sign, digits, their meaning.
     * @param {string} sign @param {any} digits @param {any} meaning
     * @param {string} [name] */
    const row = (sign, digits, meaning, name = "") => h("tr", { class: name },
        h("th", { scope: "row" }, sign), h("td", { class: "code digits" }, digits),
        h("td", {}, meaning));

    /** @param {Operation} operation @param {string} what */
    function drawing(operation, what) {
        const { rows, result, rounding } = operation;
        if (rows === null || result === null || rounding === null) {
            return null;
        }
        const width = Math.max(rows.a.bits.length, rows.b.bits.length, result.bits.length,
            rounding.kept.length + rounding.rest.length);
        const pad = (/** @type {string} */ bits) => bits.padStart(width, "\u2007");
        const signed = (/** @type {boolean} */ negative) => minus(negative ? "-" : "+");
        const operand = (/** @type {Digits} */ digits, /** @type {number} */ unit) =>
            [digitsOf(digits.exact), h("span", { class: "hint" }, " last digit ", twoTo(unit))];
        const { kept, rest } = rounding;
        const exact = (kept + rest).padStart(width, "\u2007");
        return h("div", { class: "frame", tabindex: 0, role: "region", "aria-label": "Step by step" },
            h("table", { class: "sum" }, h("caption", {}, what === "add"
                ? "Aligned, added, rounded" : "Multiplied as integers, rounded"),
            h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Sign"),
                h("th", { scope: "col" }, "Digits"), h("th", { scope: "col" }, "Value"))),
            h("tbody", {},
                row(signed(rows.a.negative), pad(rows.a.bits), operand(rows.a, operation.units?.a ?? 0)),
                row(what === "add" ? signed(rows.b.negative) : `\u00d7 ${signed(rows.b.negative)}`,
                    pad(rows.b.bits), operand(rows.b, operation.units?.b ?? 0)),
                row(`= ${signed(result.negative)}`, parts(exact, rest.length).map((group) =>
                    h("span", { class: `digit-${group.part}` }, group.bits)),
                [digitsOf(result.exact), h("span", { class: "hint" }, " before rounding")], "total"))));
    }

    /** Explain the rounding in words. @param {Operation} operation
     * @param {string} rounding @returns {any[]} */
    function reasons(operation, rounding) {
        const { rounding: how, last } = operation;
        if (how === null || last === null) {
            return [];
        }
        const exact = how.rest === "" || !how.rest.includes("1");
        return [
            h("p", {}, "The format keeps digits down to ", twoTo(last), ". The digits below it decide the rounding:"),
            h("ul", { class: "legend digits-legend" },
                h("li", { class: "digit-guard" }, `guard ${how.guard}: the first digit`),
                h("li", { class: "digit-round" }, `round ${how.round}: the second digit`),
                h("li", { class: "digit-sticky" }, `sticky ${how.sticky}: 1 if any other digit is 1`)),
            h("p", {}, exact ? "Nothing is lost: the result is exact."
                : [how.tie ? "It is a tie, in the middle between two numbers. " : "",
                    `Rounded ${explorer.wording.ROUNDINGS[rounding]}: the digits that are kept `,
                    how.up ? "increase by one in the last place." : "stay as they are."]),
        ];
    }

    explorer.shell.register({
        name: "arithmetic",
        title: "Add and multiply",
        summary: "Two numbers of a format: their digits aligned, the exact result, and how it is "
            + "rounded back to the format.",
        keys: {
            format: { initial: "float8_e4m3fn", allowed: explorer.controls.isFormat(),
                full: explorer.controls.fullName },
            what: { initial: "add", allowed: (name) => name in OPERATIONS },
            a: { initial: "1.5" },
            b: { initial: "0.0625" },
            ...explorer.roundingControls.keys(),
        },
        build(root) {
            const picker = explorer.controls.formatPicker("Format",
                (format) => explorer.shell.choose({ format }));
            const what = explorer.controls.picker("Operation",
                Object.entries(OPERATIONS).map(([value, { text }]) => ({ value, text })),
                (value) => explorer.shell.choose({ what: value }));
            const hint = "1.5, 1/3, 0x1.8p-3; a code: 0x7E";
            const a = explorer.controls.input("First number",
                (text) => explorer.shell.choose({ a: text }, { step: true }), hint);
            const b = explorer.controls.input("Second number",
                (text) => explorer.shell.choose({ b: text }, { step: true }), hint);
            const rounding = explorer.roundingControls.controls();
            const operands = h("div", { class: "columns" });
            const steps = h("div");
            const result = h("section", { class: "card" });
            const results = h("div", { class: "stack" }, operands, steps, result);
            root.append(h("div", { class: "controls" }, picker.element, what.element),
                h("div", { class: "controls" }, a.element, b.element),
                h("div", { class: "controls" }, rounding.elements), results);

            /** @param {string} title @param {Parsed} parsed */
            const operand = (title, { rounded, isCode, exact }) => rounded && h("section",
                { class: "card" }, h("h2", {}, title),
                h("p", { class: "step-value" }, h("a", { href: explorer.shell.link("number",
                    { format: rounded.value.format, x: rounded.value.hex }) },
                valueText(rounded.value))),
                h("p", { class: "step-bits" }, explorer.bits.line(rounded.value)),
                rounded.value.exact && h("p", {}, powerOfTwo(rounded.value.exact.power)),
                !isCode && rounded.flags.includes("inexact") && h("p", { class: "hint" },
                    `Typed: ${exact ? digitsOf(exact) : ""}; ${outcome(rounded)}`));

            return (state) => {
                picker.show(state.format);
                what.show(state.what);
                rounding.show(state);
                const parsed = [arithmetic.parse(state.a, state.format),
                    arithmetic.parse(state.b, state.format)];
                a.show(state.a, parsed[0].error);
                b.show(state.b, parsed[1].error);
                const [left, right] = parsed.map(({ rounded }) => rounded?.value);
                results.hidden = !left || !right;
                if (!left || !right) {
                    return;
                }
                const operation = arithmetic.operate(/** @type {"add" | "multiply"} */ (state.what),
                    state.format, left.code, right.code, /** @type {Rounding} */ (state.rounding),
                    /** @type {Overflow} */ (state.overflow));
                const { rounded } = operation;
                const line = `${valueText(left)} ${OPERATIONS[state.what].sign} ${
                    valueText(right)} = ${valueText(rounded.value)}`;
                fill(operands, operand("First", parsed[0]), operand("Second", parsed[1]));
                fill(steps, operation.special
                    ? h("p", { class: "verdict" }, `There are no digits to align: ${operation.special}.`)
                    : drawing(operation, state.what));
                fill(result, h("h2", {}, "Result"), h("p", { class: "headline" }, `${
                    valueText(left)} ${OPERATIONS[state.what].sign} ${valueText(right)} = `,
                h("strong", {}, valueText(rounded.value))),
                h("p", { class: "step-bits" }, explorer.bits.line(rounded.value)),
                reasons(operation, state.rounding),
                h("p", { class: "hint" }, "Outcome: ", outcome(rounded)));
                explorer.shell.say(line);
            };
        },
    });
})();
