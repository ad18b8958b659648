/* Steps of the Tensor core view: each MMA group as a picture and a table, and additions. */
"use strict";

explorer.tensorSteps = (() => {
    const { h } = explorer.dom;
    const { valueText, minus, short, powerOfTwo, twoTo } = explorer.wording;
    const { termName, kText } = explorer.tensorPicture;

    /** "Group 2: k 8–15". @param {Group} group @param {number} number */
    const title = ({ ks }, number) =>
        `Group ${number}: ${ks.length ? kText(ks) : "no products are left"}`;

    /** Show a value as an integer times a power of two, otherwise as a decimal.
     * @param {Exact} exact */
    const exactly = (exact) => (exact.power ? powerOfTwo(exact.power) : minus(exact.decimal));

    /** @param {SumRounding} rounding @param {string} format */
    function roundingText({ how, up, tie, overflow, off }, format) {
        return overflow ? `Rounded ${how} to ${format}: it overflows to infinity.`
            : off === null ? `The sum is a value of ${format}: nothing is rounded.`
                : [`Rounded ${how} to ${format}: `, tie ? "a tie; " : "",
                    exactly(off), up ? " is added." : " is dropped."];
    }

    /** @param {string} name @param {Value} value */
    const outcome = (name, value) => h("p", { class: "outcome" }, `${name}: `,
        h("strong", {}, valueText(value)), " ", h("span", { class: "code" }, value.hex), " ",
        explorer.bits.line(value));

    /** Make a table of the terms of a group: exact values and kept bits.
     * @param {Group} group @param {Value[]} a @param {Value[]} b @param {number} number */
    function table({ terms, unit, totalUnits, total, accumulator }, a, b, number) {
        /** @type {{term: Term | null}[]} */
        const rows = [...terms.map((term) => ({ term })), { term: null }];
        const single = (/** @type {Term} */ { ks }) => ks.length === 1;
        /** @param {(term: Term) => any} of @param {any} [sum] */
        const cell = (of, sum = "") => (/** @type {{term: Term | null}} */ { term }) =>
            (term ? of(term) : sum);
        return explorer.tables.table(`Terms of group ${number}`, [
            { title: "Term", cell: cell(({ ks }) => termName(ks), "sum") },
            { title: "a", kind: "figure", cell: cell((term) =>
                single(term) && valueText(a[term.ks[0]])) },
            { title: "b", kind: "figure", cell: cell((term) =>
                single(term) && valueText(b[term.ks[0]])) },
            { title: "a \u00d7 b, or c", kind: "figure", cell: cell((term) =>
                (term.ks.length ? short(term.exact) : valueText(accumulator)),
            total && short(total)) },
            { title: "exact", cell: cell(({ exact }) => exactly(exact), total && exactly(total)) },
            { title: "exponent", kind: "figure", cell: cell(({ exponent }) =>
                (exponent === null ? "none" : minus(String(exponent)))) },
            { title: unit === null ? "kept" : `kept, in units of ${
                explorer.wording.raisedText(unit)}`, kind: "figure code",
            cell: cell(({ keptUnits }) => minus(keptUnits), minus(totalUnits ?? "")) },
            { title: "truncated", cell: cell(({ cut }) => (cut ? exactly(cut) : "")) },
        ], rows, { className: ({ term }) => (term === null ? "total" : term.cut ? "cut" : "") });
    }

    /** @param {Group} group */
    function alignment({ greatest, sources, unit, terms }) {
        const cut = terms.filter((term) => term.cut).length;
        return greatest === null || unit === null ? h("p", {}, "All terms are zero.")
            : h("p", {}, "All terms are aligned to the largest exponent, ", twoTo(greatest), `, of ${
                sources.join(", ")}. The last kept bit is `, twoTo(unit), "; ",
            cut === 0 ? "no term has bits below it." : [h("strong", {},
                `${cut} ${cut === 1 ? "term loses" : "terms lose"} bits below it`),
            ", hatched in the picture."]);
    }

    /** @param {Group} group @param {Value[]} a @param {Value[]} b @param {number} number
     * @returns {HTMLElement} */
    function group(group, a, b, number) {
        const place = h("div");
        if (group.greatest !== null) {
            explorer.drawing(place)((width) => explorer.tensorPicture.draw(group, width));
        }
        return h("section", { class: "card group-card" }, h("h2", {}, title(group, number)),
            group.special.length ? [h("p", {}, "The result is Inf or NaN, so nothing is aligned:"),
                h("ul", {}, group.special.map((reason) => h("li", {}, reason)))]
                : [alignment(group), place, table(group, a, b, number)],
            group.rounding && h("p", {}, roundingText(group.rounding, group.result.format)),
            outcome("Result of the group", group.result));
    }

    /** @param {Addition} addition @returns {HTMLElement} */
    function addition({ sum, accumulator, rounding, promotes, result }) {
        return h("section", { class: "card group-card" },
            h("h2", {}, promotes ? "Promotion: a separate addition" : "Addition of the accumulator"),
            h("p", {}, `${valueText(accumulator)} + ${valueText(sum)}`),
            rounding && h("p", {}, roundingText(rounding, result.format)),
            outcome("Result", result));
    }

    /** Make the steps of a dot product, in their order.
     * @param {Dot} dot @param {Value[]} a @param {Value[]} b @returns {HTMLElement[]} */
    function steps(dot, a, b) {
        let number = 0;
        return dot.steps.map((step) => (step.kind === "group"
            ? group(step, a, b, ++number) : addition(step)));
    }

    return { steps, exactly };
})();
