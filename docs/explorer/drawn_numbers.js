/* Random numbers as strings of a format's numbers, and the buttons that draw them. */
"use strict";

explorer.drawnNumbers = (() => {
    const COUNTS = ["4", "8", "16", "32", "64"];

    /** Return a normal number of mean 0 and deviation 1, by Box and Muller. */
    const normal = () => Math.sqrt(-2 * Math.log(1 - Math.random()))
        * Math.cos(2 * Math.PI * Math.random());

    /** @param {number} low @param {number} high  the largest result */
    const integer = (low, high) => low + Math.floor(Math.random() * (high - low + 1));

    /** Return a normal number times a random power of two from half of the format's range
     * of exponents, so that products stay in range.
     * @param {Format} format */
    const wide = (format) => normal() * 2 ** integer(
        Math.ceil((format.smallestNormal.power ?? 0) / 2), Math.floor((format.max.power ?? 0) / 2));

    /** @template T @param {T[]} list @returns {T[]} */
    function shuffled(list) {
        const mixed = [...list];
        for (let i = mixed.length - 1; i > 0; i--) {
            const j = integer(0, i);
            [mixed[i], mixed[j]] = [mixed[j], mixed[i]];
        }
        return mixed;
    }

    /** @param {number} count @param {() => any} draw */
    const times = (count, draw) => Array.from({ length: count }, draw);

    /** @param {number} x @param {string} format
     * @returns {string} the nearest number of it */
    const textIn = (x, format) => explorer.wording.exactText(
        arithmetic.round(arithmetic.textOf(x), format, "ties_to_even", "saturate").value);

    /** Return pairs (a, b) whose products cancel, except for a small rest.
     * @param {number} count @param {Format} a @param {Format} b @returns {number[][]} */
    function canceling(count, a, b) {
        const couples = times(Math.floor((count - 1) / 2), () => [wide(a), wide(b)]);
        const rest = times(count - 2 * couples.length, () => [normal() / 8, normal() / 8]);
        return shuffled([...couples, ...couples.map(([x, y]) => [-x, y]), ...rest]);
    }

    /** Return normal numbers, one of them far larger.
     * @param {number} count @returns {number[]} */
    const withOutlier = (count) => shuffled([...times(count - 1, normal),
        (Math.random() < 0.5 ? -1 : 1) * (15 + 10 * Math.random())]);

    /** Return the keys of a view with such controls. */
    const keys = () => ({
        count: { initial: "16", allowed: (/** @type {string} */ n) => COUNTS.includes(n) },
    });

    /** Make a picker of the count, and buttons that draw numbers.
     * @param {string} label @param {[string, () => void][]} buttons
     * @returns {{element: HTMLElement, show: (count: string) => void}} */
    function controls(label, buttons) {
        const count = explorer.controls.picker(label, COUNTS.map((n) => ({ value: n, text: n })),
            (n) => explorer.shell.choose({ count: n }));
        const element = explorer.dom.h("div", { class: "controls drawing-tools" }, count.element,
            explorer.controls.group("Random numbers",
                buttons.map(([text, press]) => explorer.controls.button(text, press))));
        return { element, show: count.show };
    }

    return { normal, wide, canceling, withOutlier, times, textIn, keys, controls };
})();
