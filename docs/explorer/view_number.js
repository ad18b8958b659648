/* The Number view: everything about one number of one format. */
"use strict";

explorer.shell.register({
    name: "number",
    title: "Number",
    summary: "Type a number, or click its bits, and see how a format stores it.",
    keys: {
        format: { initial: "float8_e4m3fn", allowed: explorer.controls.isFormat(),
            full: explorer.controls.fullName },
        x: { initial: "0.1" },
    },
    build(root) {
        const { h, fill } = explorer.dom;
        const { valueText, exactText, minus } = explorer.wording;
        const { formula, facts, between, steps } = explorer.numberFacts;
        const { roundings, everywhere } = explorer.numberTables;

        /** The number that is shown. @type {Parsed | null} */
        let parsed = null;
        const picker = explorer.controls.formatPicker("Format", (format) =>
            // Keep the number, not the code, which is another number in another format.
            explorer.shell.choose({ format, ...parsed?.isCode && parsed.rounded && { x: exactText(parsed.rounded.value) } }));
        const input = explorer.controls.input("Number or code",
            (x) => explorer.shell.choose({ x }, { step: true }),
            "3.14159, 1e-40, 1/3, 0x1.8p-3, inf, nan; a code: 0x7E, 0b01111110");
        const specials = h("div");
        const headline = h("p", { class: "headline" });
        const bits = h("div");
        const meaning = h("div");
        const known = h("div");
        const near = h("div");
        const drawNear = explorer.drawing(near);
        const nearSteps = h("div");
        const tables = h("div", { class: "stack" });
        const results = h("div", { class: "stack" },
            h("section", { class: "card" }, headline, bits, meaning),
            h("div", { class: "columns" },
                h("section", { class: "card" }, h("h2", {}, "Facts"), known),
                h("section", { class: "card" }, h("h2", {}, "Neighbors"), near, nearSteps)),
            tables);
        root.append(h("div", { class: "controls" }, picker.element, input.element),
            specials, results);

        const show = (/** @type {Value} */ value, step = false) =>
            explorer.shell.choose({ x: value.hex }, { step });

        /** Make buttons of the special numbers of a format. @param {Format} format */
        function special(format) {
            /** @type {[string, string | false][]} */
            const names = [
                ["0", format.zero && "0"],
                [minus("-0"), format.negativeZero && "-0"],
                ["smallest", exactText(format.smallest)],
                ["smallest normal", format.subnormals && exactText(format.smallestNormal)],
                ["1", "1"],
                ["1 + eps", format.mantissaBits > 0 && afterOne(format)],
                ["largest", exactText(format.max)],
                ["Inf", format.infinity && "inf"],
                ["NaN", format.nan && "nan"],
            ];
            return explorer.controls.group("Special values", names.filter(([, x]) => x)
                .map(([name, x]) => explorer.controls.button(name,
                    () => explorer.shell.choose({ x: /** @type {string} */ (x) }))));
        }

        /** Return the number after 1 as a string. @param {Format} format */
        function afterOne(format) {
            const one = arithmetic.round("1", format.name).value;
            const { above } = arithmetic.neighbors(format.name, one.code);
            return above !== null && exactText(above);
        }

        return (state) => {
            const format = arithmetic.format(state.format);
            parsed = arithmetic.parse(state.x, format.name);
            picker.show(format.name);
            input.show(state.x, parsed.error);
            fill(specials, special(format));
            results.hidden = parsed.rounded === null;
            if (parsed.rounded === null) {
                return;
            }
            const read = { ...parsed, rounded: parsed.rounded };
            const { value } = read.rounded;
            const neighbors = arithmetic.neighbors(format.name, value.code);
            const step = (/** @type {boolean} */ up) => {
                const next = up ? neighbors.above : neighbors.below;
                if (next) {
                    show(next, true);
                }
            };
            const result = `${valueText(value)} in ${format.name}`;
            fill(headline, parsed.isCode ? `${state.x} is ` : `${state.x.trim()} becomes `,
                h("strong", {}, valueText(value)), ` in ${format.name}`);
            fill(bits, explorer.bits.keys(value,
                (binary) => explorer.shell.choose({ x: `0b${binary}` }), step));
            fill(meaning, formula(format, value));
            fill(known, facts(read));
            drawNear((width) => between(read, neighbors, width));
            fill(nearSteps, steps(neighbors, (to) => show(to, true)));
            fill(tables, roundings(parsed.text, format), everywhere(read, format));
            explorer.shell.say(result);
        };
    },
});
