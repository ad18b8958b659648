/* Tables of the Number view: the seven roundings, and the number in every format. */
"use strict";

explorer.numberTables = (() => {
    const { h } = explorer.dom;
    const { ROUNDINGS, valueText, outcome } = explorer.wording;

    /** Show a value with its code and a link to the Number view.
     * @param {Value} value */
    function shown(value) {
        return [h("a", { href: explorer.shell.link("number", { format: value.format, x: value.hex }) },
            valueText(value)), " ", h("span", { class: "code hint" }, value.hex)];
    }

    const SAME = "the same";

    /** Show a rounded value, and its outcome below. @param {Rounded} rounded */
    const withLoss = (rounded) => [shown(rounded.value), h("br"),
        h("span", { class: "hint" }, outcome(rounded))];

    /** Make a table of all roundings of the typed value, by both overflow rules.
     * @param {string} text  of a value @param {Format} format @returns {HTMLElement} */
    function roundings(text, format) {
        const ieee = arithmetic.allRoundings(text, format.name, "ieee");
        const saturate = arithmetic.allRoundings(text, format.name, "saturate");
        const rows = [
            ...ieee.rows.map((row, i) => ({ rounding: row.rounding,
                cells: [shown(row.value), outcome(row), row.value.code
                    === saturate.rows[i].value.code ? SAME : shown(saturate.rows[i].value)] })),
            { rounding: "stochastic", cells: [random(ieee.stochastic), "",
                ieee.stochastic.up.value.code === saturate.stochastic.up.value.code ? SAME
                    : random(saturate.stochastic)] },
        ];
        return explorer.tables.table(`Seven roundings to ${format.name}`, [
            { title: "Rounding", cell: ({ rounding }) => [h("span", { class: "code" }, rounding),
                h("br"), h("span", { class: "hint" }, ROUNDINGS[rounding])] },
            { title: "Result", cell: ({ cells }) => cells[0] },
            { title: "Outcome", cell: ({ cells }) => cells[1] },
            { title: "If overflow saturates", cell: ({ cells }) => cells[2] },
        ], rows, { stacks: true });
    }

    /** Show both outcomes of the stochastic rounding, with their probabilities.
     * @param {Roundings["stochastic"]} stochastic */
    function random({ down, up, probability }) {
        const percent = (/** @type {number} */ part) => `${Number((100 * part).toPrecision(3))} %: `;
        return probability === 0 ? shown(down.value)
            : [percent(1 - probability), shown(down.value), h("br"), percent(probability), shown(up.value)];
    }

    /** Make a table of the typed value rounded to every format, and of its number in
     * `format` cast to each format and back.
     * @param {Parsed & {rounded: Rounded}} parsed @param {Format} format
     * @returns {HTMLElement} */
    function everywhere(parsed, format) {
        const { value } = parsed.rounded;
        const rows = arithmetic.casts(format.name, value.code).map((cast) => ({ cast,
            direct: parsed.isCode ? null : arithmetic.round(parsed.text, cast.value.format) }));
        const columns = [
            { title: "Format", cell: (/** @type {any} */ { cast }) =>
                h("a", { href: explorer.shell.link("number", { format: cast.value.format,
                    x: parsed.text }) }, cast.value.format) },
            ...parsed.isCode ? [] : [{ title: "Input rounded to this format",
                cell: (/** @type {any} */ { direct }) => withLoss(direct) }],
            { title: `${valueText(value)} of ${format.short}, cast to this format`,
                cell: (/** @type {any} */ { cast }) => withLoss(cast) },
            { title: "Cast back", cell: (/** @type {any} */ { cast }) =>
                (cast.same ? SAME : shown(cast.back)) },
        ];
        return explorer.tables.table("Rounded to every format, and cast back", columns, rows,
            { stacks: true, className: ({ cast }) => (cast.same ? "" : "changed") });
    }

    return { roundings, everywhere };
})();
