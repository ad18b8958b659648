/* Tables of the Block view: a comparison of the rules, and the numbers of a block. */
"use strict";

explorer.blockTables = (() => {
    const { h } = explorer.dom;
    const { minus, short, brief, valueText } = explorer.wording;

    /** How a rule finds the scale from A, the largest magnitude.
     * @type {Object<string, string>} */
    const RULES = {
        amax: "The smallest scale for which A does not saturate.",
        floor: "2 to the power of e(A) - e(M), the exponents of A and of M; a scale format with "
            + "a mantissa takes the scale nearest to A / M. Larger numbers saturate.",
        even: "Like floor, after A is rounded to the element's bits.",
        nf: "Like amax, with three standard deviations instead of A if the block looks normally "
            + "distributed.",
        mse: "Tries a few scales and takes the scale with the smallest squared error.",
        published: "The rule of the first publication of TCFP.",
    };

    /** "0.5 (0x7E)". @param {BlockScale} scale */
    const scaleText = ({ scale, hex }) => [scale ? short(scale) : "NaN",
        h("span", { class: "hint code" }, ` ${hex}`)];

    /** @param {string} error  of a block: "" if it is not finite */
    const errorText = (error) => (error === "" ? "not finite" : minus(error));

    /** @param {Quantized} found */
    const saturatedIn = ({ blocks }) => blocks.reduce((count, { elements }) =>
        count + elements.filter(({ outcome }) => outcome === "saturated").length, 0);

    /** @param {Quantized[]} all  one for each rule @param {string} chosen
     * @param {(rule: string) => string} link  returns the address that chooses a rule */
    function rules(all, chosen, link) {
        const MOST = 4;
        const scales = (/** @type {Quantized} */ { blocks }) => [
            blocks.slice(0, MOST).map(({ scale }, i) => [i ? ", " : "", scaleText(scale)]),
            blocks.length > MOST && ", \u2026"];
        return explorer.tables.table("The rules compared", [
            { title: "Rule", cell: ({ rule }) => (rule === chosen ? rule
                : h("a", { href: link(rule) }, rule)) },
            { title: all.some(({ blocks }) => blocks.length > 1) ? "Scales of the blocks" : "Scale",
                cell: scales },
            { title: "RMS error", kind: "figure",
                cell: ({ rms }) => errorText(rms) },
            { title: "Largest error", kind: "figure", cell: ({ worst }) => errorText(worst) },
            { title: "Saturated", kind: "figure", cell: saturatedIn },
            { title: "How it finds the scale (A: largest magnitude, M: largest element)", kind: "words", cell: ({ rule }) => RULES[rule] },
        ], all, { stacks: true, className: ({ rule }) => (rule === chosen ? "this" : "") });
    }

    /** Show the bits of an element, colored if its format is one of `arithmetic.formats`.
     * @param {string} element @param {number} code @param {string} binary */
    function bits(element, code, binary) {
        const format = arithmetic.formats.find(({ name }) => name === element);
        return format ? explorer.bits.line(arithmetic.describe(element, code))
            : h("span", { class: "code" }, binary);
    }

    /** @param {Block} block @param {BlockFormat} format @param {number} first  index of its
     *   first number @param {string} caption */
    function elements(block, format, first, caption) {
        /** @type {Column[]} */
        const second = format.residual === null ? [] : [
            { title: "Residual", kind: "figure", cell: ({ e }) => valueText({ text: e.residual }) }];
        return explorer.tables.table(caption, [
            { title: "Number", cell: ({ at }) => at },
            { title: "Input", kind: "figure", cell: ({ e }) => (e.x ? brief(e.x.number) : valueText({ text: e.given })) },
            { title: "Code", kind: "code", cell: ({ e }) => e.hex },
            { title: "Bits", cell: ({ e }) => bits(format.element, e.code, e.binary) },
            { title: "Element", kind: "figure", cell: ({ e }) => valueText({ text: e.element }) },
            ...second,
            { title: "Stored", kind: "figure", cell: ({ e }) =>
                (e.exact ? brief(e.number) : valueText({ text: e.value })) },
            { title: "Error", kind: "figure", cell: ({ e }) =>
                (e.error ? brief(e.error.number) : "not finite") },
            { title: "Outcome", cell: ({ e }) => e.outcome },
        ], block.elements.map((e, i) => ({ e, at: first + i })),
        { className: ({ e }) => (e.outcome === "saturated" ? "saturated" : "") });
    }

    return { RULES, rules, elements, scaleText, errorText, saturatedIn };
})();
