/* The Block view: numbers with a common scale, which each rule finds in a different way. */
"use strict";

(() => {
    const { h, fill } = explorer.dom;
    const { minus, short } = explorer.wording;
    const { rules, elements, scaleText, errorText, saturatedIn, RULES } = explorer.blockTables;
    const { factList } = explorer.tables;
    const drawn = explorer.drawnNumbers;

    const OUTLIER = "0.4, -1.2, 0.9, 0.1, -0.3, 2.1, -0.7, 0.05, 1.6, -2.4, 0.6, -0.15, 14.5, -0.9, "
        + "0.25, 1.1";
    const SIZES = ["16", "32", "64", "128"];
    /** The treatment of NaN and Inf. @type {Object<string, string>} */
    const SPECIAL = { raise: "rejected, or the block becomes NaN", saturate: "Inf saturates" };

    /** @param {readonly string[]} names */
    const oneOf = (names) => (/** @type {string} */ name) => name === "" || names.includes(name);

    /** @param {string} name @returns {BlockFormat} */
    const formatNamed = (name) =>
        /** @type {BlockFormat} */ (arithmetic.blockFormats.find((row) => row.name === name));

    /** @param {Object<string, string>} state @param {string} rule */
    const options = ({ scaleFormat, blockSize, rounding, special }, rule) => ({
        rule, rounding: /** @type {Rounding} */ (rounding),
        overflow: /** @type {"raise" | "saturate"} */ (special),
        ...scaleFormat && { scaleFormat },
        ...blockSize && { blockSize: Number(blockSize) },
    });

    /** @param {BlockFormat} format @param {Quantized} found */
    const about = (format, found) => h("section", { class: "card" }, h("h2", {}, format.name),
        factList([
            ["Elements", `${format.element}, ${format.elementBits} bits; maximum ${
                short(format.max)}`],
            ...format.residual ? [["Second level", format.residual]] : [],
            ["Scales", found.scaleFormat],
            ["Scale of the tensor", short(found.tensorScale)],
            ["Block", `${found.blockSize} numbers`],
            ["Bits per number", format.bitsPerValue],
            ["NaN and Inf", format.poisons ? "make their block NaN" : "are rejected"],
        ]));

    /** Show the result. RMS is the root of the mean squared error.
     * @param {Quantized} found */
    const outcome = (found) => h("section", { class: "card" },
        h("h2", {}, `By the rule \u201c${found.rule}\u201d`),
        h("p", { class: "headline" }, "RMS error ",
            h("strong", {}, errorText(found.rms))),
        factList([["Largest error", errorText(found.worst)],
            ["Saturated", saturatedIn(found) || "none"],
            ["The rule", RULES[found.rule]]]));

    /** @param {BlockScale} scale */
    const scaleFact = (scale) => [scaleText(scale), scale.worth && scale.scale
        && scale.worth.text !== scale.scale.text && h("span", { class: "hint" },
        ` = ${short(scale.worth)}, times the scale of the tensor`)];

    /** @param {Block} block @param {BlockFormat} format @param {number} number
     * @param {number} first */
    function card(block, format, number, first) {
        const place = h("div");
        explorer.drawing(place)((width) => explorer.blockChart.draw(block, first, width));
        const last = first + block.elements.length - 1;
        const name = `Block ${number}: numbers ${first} to ${last}`;
        return h("section", { class: "card block-card" }, h("h2", {}, name),
            factList([
                ["Scale", scaleFact(block.scale)],
                ...block.residualScale
                    ? [["Scale of the residual", scaleFact(block.residualScale)]] : [],
                ["Largest magnitude", minus(block.amax)],
                ["RMS error", errorText(block.rms)],
                ["Largest error", errorText(block.worst)],
            ]), place, elements(block, format, first, `Numbers of block ${number}`));
    }

    explorer.shell.register({
        name: "block",
        title: "Block",
        summary: "Store numbers with a common scale and a few bits each: see the scale that each "
            + "rule finds, the codes, and the errors.",
        keys: {
            block: { initial: "mxfp4", allowed: (name) => formatNamed(name) !== undefined },
            rule: { initial: "", allowed: oneOf(Object.keys(RULES)) },
            values: { initial: OUTLIER },
            scaleFormat: { initial: "", allowed: (name) => oneOf(arithmetic.scaleFormats)(name) },
            blockSize: { initial: "", allowed: oneOf(SIZES) },
            rounding: explorer.roundingControls.keys().rounding,
            special: { initial: "raise", allowed: (name) => name in SPECIAL },
            ...drawn.keys(),
        },
        build(root) {
            /** @type {Object<string, string>} */
            let shown = {};
            const chooser = (/** @type {string} */ key) => (/** @type {string} */ value) =>
                explorer.shell.choose({ [key]: value });
            const own = { value: "", text: "default" };
            const same = (/** @type {readonly string[]} */ names) =>
                names.map((value) => ({ value, text: value }));
            const { picker, argumentPicker } = explorer.controls;
            const pickers = {
                block: picker("Block format", arithmetic.blockFormats.map(({ name, bitsPerValue }) =>
                    ({ value: name, text: `${name} (${bitsPerValue} bits)` })), chooser("block")),
                rule: picker("Rule", [own, ...same(Object.keys(RULES))], chooser("rule")),
                scaleFormat: picker("Format of scales", [own, ...same(arithmetic.scaleFormats)],
                    chooser("scaleFormat")),
                blockSize: picker("Block size", [own, ...same(SIZES)], chooser("blockSize")),
                rounding: explorer.roundingControls.roundingPicker(),
                special: argumentPicker("NaN and Inf", SPECIAL, chooser("special")),
            };
            const input = explorer.controls.input("Numbers",
                (values) => explorer.shell.choose({ values }, { step: true }),
                "1 to 64 with spaces or commas between them, rounded to float32; or float32 codes");
            input.element.classList.add("wide");
            const use = (/** @type {number[]} */ numbers) => explorer.shell.choose({
                values: explorer.numberList.write(numbers.map((x) => drawn.textIn(x, "float16"))) });
            const count = () => Number(shown.count);
            const half = () => arithmetic.format("float16");
            const tools = drawn.controls("How many", [
                ["Normal", () => use(drawn.times(count(), drawn.normal))],
                ["With an outlier", () => use(drawn.withOutlier(count()))],
                ["Wide exponents", () => use(drawn.times(count(), () => drawn.wide(half())))],
            ]);
            const note = h("p", { class: "hint" });
            const results = h("div", { class: "stack" });
            root.append(
                h("div", { class: "controls" }, Object.values(pickers).map(({ element }) => element)),
                h("div", { class: "controls" }, input.element), tools.element, note, results);

            return (state) => {
                shown = state;
                const format = formatNamed(state.block);
                const known = state.rule === "" || format.rules.includes(state.rule);
                const rule = known && state.rule ? state.rule : format.rule;
                Object.entries(pickers).forEach(([key, { show }]) => show(state[key]));
                tools.show(state.count);
                fill(note, !known && `${format.name} has no rule ${state.rule}; its default, ${
                    format.rule}, is used.`);
                note.hidden = known;
                const given = explorer.numberList.read(state.values, "float32");
                const texts = given.numbers.map(({ text }) => text);
                const found = given.error ? null
                    : arithmetic.quantize(texts, format.name, options(state, rule));
                input.show(state.values, given.error || found?.error,
                    given.error ? given.wrong : format.name);
                results.hidden = !found || found.error !== "";
                if (!found || found.error) {
                    return;
                }
                const all = format.rules.map((name) => (name === rule ? found
                    : arithmetic.quantize(texts, format.name, options(state, name))))
                    .filter(({ error }) => error === "");
                fill(results,
                    h("div", { class: "columns" }, outcome(found), about(format, found)),
                    rules(all, rule, (name) => explorer.shell.link("block",
                        { ...state, rule: name })),
                    found.blocks.map((block, i) => card(block, format, i + 1, i * found.blockSize)));
                explorer.shell.say(`${format.name} by ${rule}: RMS error ${errorText(found.rms)}`);
            };
        },
    });
})();
