/* Make lists of facts, and tables with a caption and headers in a frame. On a narrow
 * screen, tables of text stack: each row is a block, with each cell under its title. Tables
 * of figures scroll sideways, and keep the row header in sight. Tables that sort, which may
 * have many rows, also scroll down. */
"use strict";

/** @typedef {Object} Column
 * @property {string} title
 * @property {(row: any) => any} cell  children of the cell
 * @property {string} [name]  in the address; with it, the table sorts by this column
 * @property {(a: any, b: any) => number} [order]  of rows
 * @property {string} [kind]  "figure" (to the right) or "code"
 */

explorer.tables = (() => {
    const { h } = explorer.dom;

    /** @typedef {Object} TableOptions
     * @property {(row: any) => string} [className]  of a row
     * @property {{by: string, chosen: (by: string) => void}} [sort]  by "value", or by
     *   "-value" for descending order
     * @property {boolean} [stacks]  on a narrow screen
     */

    /** @param {string} caption @param {readonly Column[]} columns  the first one names
     *   the row
     * @param {readonly any[]} rows @param {TableOptions} [options]
     * @returns {HTMLElement} */
    function table(caption, columns, rows, { className = () => "", sort, stacks } = {}) {
        const by = sort?.by.replace(/^-/, "");
        const down = sort?.by.startsWith("-") ?? false;
        const sorted = columns.find((column) => column.name && column.name === by);
        const ordered = sorted?.order ? [...rows].sort(sorted.order) : [...rows];
        if (sorted && down) {
            ordered.reverse();
        }
        const header = (/** @type {Column} */ column) => {
            const here = column === sorted;
            const direction = here ? (down ? "descending" : "ascending") : null;
            return h("th", { scope: "col", class: column.kind, "aria-sort": direction },
                sort && column.name ? h("button", { type: "button", class: "sort",
                    "data-key": `sort-${column.name}`,
                    onclick: () => sort.chosen(here && !down ? `-${column.name}` : `${column.name}`),
                }, column.title, h("span", { class: "arrow", "aria-hidden": "true" },
                    here ? (down ? "\u2193" : "\u2191") : "\u2195")) : column.title);
        };
        const kind = sort ? "frame long" : stacks ? "frame stacks" : "frame";
        return h("div", { class: kind, tabindex: 0, role: "region", "aria-label": caption },
            h("table", {},
                h("caption", {}, caption),
                h("thead", {}, h("tr", {}, columns.map(header))),
                h("tbody", {}, ordered.map((row) => h("tr", { class: className(row) },
                    columns.map((column, i) => (i === 0
                        ? h("th", { scope: "row", class: column.kind }, column.cell(row))
                        : h("td", { class: column.kind, "data-title": column.title },
                            column.cell(row)))))))));
    }

    /** Make a list of facts, without the empty ones.
     * @param {any[][]} rows  pairs of a name and a fact @returns {HTMLElement} */
    const factList = (rows) => h("dl", { class: "facts" }, rows.filter(([, fact]) => fact)
        .map(([name, fact]) => h("div", {}, h("dt", {}, name), h("dd", {}, fact))));

    return { table, factList };
})();
