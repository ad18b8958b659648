/* The Number view: one number of one format, all there is to see of it. */
"use strict";

explorer.register({
    name: "number",
    title: "Number",
    summary: "Type a number, or click its bits, and see what a format makes of it.",
    keys: {
        format: { initial: "float8_e4m3fn", allowed: explorer.controls.isFormat() },
        x: { initial: "0.1" },
    },
    build(root) {
        const { h, fill } = explorer.dom;
        const { valueText, minus } = explorer.wording;
        const { formula, facts, between } = explorer.numberFacts;
        const { roundings, everywhere } = explorer.numberTables;

        /** What is shown. @type {any} */
        let parsed = null;
        const picker = explorer.controls.formatPicker("Format", (format) =>
            // A code means another number there: the number stays, not the code.
            explorer.choose({ format, ...parsed?.isCode && { x: parsed.text } }));
        const input = explorer.controls.input("Number or code",
            (x) => explorer.choose({ x }, { step: true }),
            "3.14159, 1e-40, 1/3, 0x1.8p-3, inf, nan; a code: 0x7E, 0b01111110");
        const specials = h("div");
        const headline = h("p", { class: "headline" });
        const bits = h("div");
        const meaning = h("div");
        const known = h("div");
        const near = h("div");
        const tables = h("div", { class: "stack" });
        const results = h("div", { class: "stack" },
            h("section", { class: "card" }, headline, bits, meaning),
            h("div", { class: "columns" },
                h("section", { class: "card" }, h("h2", {}, "Facts"), known),
                h("section", { class: "card" }, h("h2", {}, "Neighbours"), near)),
            tables);
        root.append(h("div", { class: "controls" }, picker.element, input.element),
            specials, results);

        const show = (/** @type {any} */ value, step = false) =>
            explorer.choose({ x: value.hex }, { step });

        /** Buttons of the numbers that a format is known by. @param {any} format */
        function special(format) {
            /** @type {[string, string | false][]} */
            const names = [
                ["0", format.zero && "0"],
                [minus("-0"), format.negativeZero && "-0"],
                ["smallest", format.smallest.exact.text],
                ["smallest normal", format.subnormals && format.smallestNormal.exact.text],
                ["1", "1"],
                ["1 + eps", format.mantissaBits > 0
                    && arithmetic.neighbours(format.name, one(format).code).above?.exact.text],
                ["greatest", format.max.exact.text],
                ["Inf", format.infinity && "inf"],
                ["NaN", format.nan && "nan"],
            ];
            return explorer.controls.group("Special values", names.filter(([, x]) => x)
                .map(([name, x]) => explorer.controls.button(name,
                    () => explorer.choose({ x: /** @type {string} */ (x) }))));
        }

        const one = (/** @type {any} */ format) => arithmetic.round("1", format.name).value;

        return (state) => {
            const format = arithmetic.format(state.format);
            parsed = arithmetic.parse(state.x, format.name);
            picker.show(format.name);
            input.show(state.x, parsed.error);
            fill(specials, special(format));
            results.hidden = parsed.error !== "";
            if (parsed.error) {
                return;
            }
            const { value } = parsed.rounded;
            const neighbours = arithmetic.neighbours(format.name, value.code);
            const step = (/** @type {boolean} */ up) => {
                const next = up ? neighbours.above : neighbours.below;
                if (next) {
                    show(next, true);
                }
            };
            const result = `${valueText(value)} in ${format.name}`;
            fill(headline, parsed.isCode ? `${state.x} is ` : `${state.x.trim()} becomes `,
                h("strong", {}, valueText(value)), ` in ${format.name}`);
            fill(bits, explorer.bits.keys(value,
                (binary) => show(arithmetic.parse(`0b${binary}`, format.name).rounded?.value), step));
            fill(meaning, formula(format, value));
            fill(known, facts(parsed, neighbours));
            fill(near, between(parsed, neighbours,
                (to) => show(to, true)));
            fill(tables, roundings(parsed.text, format), everywhere(parsed, format));
            explorer.say(result);
        };
    },
});
