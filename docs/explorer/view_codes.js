/* The Codes view: all numbers of a format of at most 8 bits, as a grid and as a table. */
"use strict";

(() => {
    const { h, fill } = explorer.dom;
    const { KINDS, brief, valueText, powerOfTwo, twoTo } = explorer.wording;

    /** @param {Format} format */
    const small = (format) => format.bits <= 8;

    /** Order values ascending, with NaN at the end as in NumPy, and equal values by code.
     * @param {Value} a @param {Value} b */
    const byValue = (a, b) => Number(Number.isNaN(a.number)) - Number(Number.isNaN(b.number))
        || (a.number === b.number || Number.isNaN(a.number) ? byCode(a, b)
            : a.number < b.number ? -1 : 1);
    /** @param {Value} a @param {Value} b */
    const byCode = (a, b) => Number(a.code) - Number(b.code);
    /** @param {Value} a @param {Value} b */
    const byKind = (a, b) => ORDER.indexOf(a.kind) - ORDER.indexOf(b.kind) || byCode(a, b);
    const ORDER = Object.keys(KINDS);

    /** @param {Value} value */
    const number = (value) => explorer.shell.link("number", { format: value.format, x: value.hex });

    /** Columns of a table of values. @type {Column[]} */
    const COLUMNS = [
        { title: "Code", name: "code", order: byCode, kind: "code",
            cell: (/** @type {Value} */ value) => h("a", { href: number(value) }, value.hex) },
        { title: "Bits", cell: explorer.bits.line },
        { title: "Value", name: "value", order: byValue, kind: "figure", cell: valueText },
        { title: "m \u00d7 2\u207f", cell: (value) =>
            (value.exact ? powerOfTwo(value.exact.power) : "") },
        { title: "Spacing (ulp)", cell: (value) =>
            (value.ulp ? powerOfTwo(value.ulp.power) : "") },
        { title: "Kind", name: "kind", order: byKind,
            cell: (/** @type {Value} */ value) => KINDS[value.kind] },
    ];
    const SORTS = COLUMNS.flatMap(({ name }) => (name ? [name, `-${name}`] : []));

    /** Return a short value for a cell of the grid. @param {Value} value */
    function short(value) {
        return value.mantissa === "" && value.power !== null ? twoTo(value.power)
            : brief(value.number, 3);
    }

    /** Make the grid of all codes, 16 per row: rows by the first hexadecimal digit, columns
     * by the last.
     * @param {Format} format @param {Value[]} values @returns {HTMLElement} */
    function grid(format, values) {
        const digits = [..."0123456789ABCDEF"];
        const rows = digits.slice(0, values.length / 16);
        const cell = (/** @type {Value} */ value) => h("td", { class: value.kind },
            h("a", { href: number(value), "data-key": `code-${value.code}`,
                tabindex: value.code === 0 ? 0 : -1, title: `${value.hex}: ${valueText(value)}`,
                "aria-label": `${value.hex}: ${valueText(value)}, ${KINDS[value.kind]}` },
            short(value)));
        const table = h("table", { class: "codes" },
            h("caption", {}, `All ${values.length} codes of ${format.name}`,
                format.mantissaBits > 0
                && h("span", { class: "hint" }, "Fractions are shown with three significant digits.")),
            h("thead", {}, h("tr", {}, h("td"), digits.map((digit) =>
                h("th", { scope: "col", class: "code" }, `_${digit}`)))),
            h("tbody", {}, rows.map((digit, row) => h("tr", {},
                h("th", { scope: "row", class: "code" }, `0x${digit}_`),
                values.slice(16 * row, 16 * row + 16).map(cell)))));
        table.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) =>
            walk(table, event));
        return h("div", { class: "frame" }, table);
    }

    /** Move from code to code by arrow keys. @param {HTMLElement} table
     * @param {KeyboardEvent} event */
    function walk(table, event) {
        /** @type {HTMLElement[]} */
        const cells = [...table.querySelectorAll("a")];
        const at = cells.indexOf(/** @type {any} */ (document.activeElement));
        const to = { ArrowLeft: at - 1, ArrowRight: at + 1, ArrowUp: at - 16, ArrowDown: at + 16,
            Home: 0, End: cells.length - 1 }[event.key];
        if (to === undefined || at < 0) {
            return;
        }
        event.preventDefault();
        if (cells[to]) {
            cells[at].tabIndex = -1;
            cells[to].tabIndex = 0;
            cells[to].focus();
        }
    }

    explorer.shell.register({
        name: "codes",
        title: "Codes",
        summary: "All numbers that a format of at most 8 bits has. Click a number to see its "
            + "details. In the grid, arrow keys go from code to code.",
        keys: {
            format: { initial: "float8_e4m3fn", allowed: explorer.controls.isFormat(small),
                full: explorer.controls.fullName },
            sort: { initial: "code", allowed: (by) => SORTS.includes(by) },
        },
        build(root) {
            const picker = explorer.controls.formatPicker("Format",
                (format) => explorer.shell.choose({ format }), small);
            const codes = h("div");
            const table = h("div");
            const legend = h("ul", { class: "legend", "aria-label": "Colors of the grid" });
            root.append(h("div", { class: "controls" }, picker.element), codes, legend, table);
            /** The format that is drawn. */
            let drawn = "";

            return (state) => {
                const format = arithmetic.format(state.format);
                const values = arithmetic.values(format.name);
                picker.show(format.name);
                if (drawn !== format.name) {
                    drawn = format.name;
                    fill(codes, grid(format, values));
                    fill(legend, ORDER.filter((kind) => values.some((value) => value.kind === kind))
                        .map((kind) => h("li", { class: kind }, KINDS[kind])));
                    explorer.shell.say(`${values.length} codes of ${format.name}`);
                }
                fill(table, explorer.tables.table("As a table", COLUMNS, values, { sort: {
                    by: state.sort, chosen: (/** @type {string} */ sort) =>
                        explorer.shell.choose({ sort }) } }));
            };
        },
    });
})();
