/* Random numbers, as texts of what they are in a format, and the buttons that draw them. */
"use strict";

explorer.drawnNumbers = (() => {
    const COUNTS = ["4", "8", "16", "32", "64"];

    /** Of mean 0 and deviation 1 (Box and Muller). */
    const normal = () => Math.sqrt(-2 * Math.log(1 - Math.random()))
        * Math.cos(2 * Math.PI * Math.random());

    /** @param {number} low @param {number} high  both can come */
    const integer = (low, high) => low + Math.floor(Math.random() * (high - low + 1));

    /** With exponents from all over half of a format's, so that products stay inside.
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

    /** @param {number} x @param {string} format @returns {string} of the nearest number */
    const textIn = (x, format) => explorer.wording.exactText(
        arithmetic.round(arithmetic.textOf(x), format, "ties_to_even", "saturate").value);

    /** Pairs (a, b) of which most cancel, and what is left is small.
     * @param {number} count @param {Format} a @param {Format} b @returns {number[][]} */
    function canceling(count, a, b) {
        const couples = times(Math.floor((count - 1) / 2), () => [wide(a), wide(b)]);
        const rest = times(count - 2 * couples.length, () => [normal() / 8, normal() / 8]);
        return shuffled([...couples, ...couples.map(([x, y]) => [-x, y]), ...rest]);
    }

    /** Normal ones, and one far greater. @param {number} count @returns {number[]} */
    const withOutlier = (count) => shuffled([...times(count - 1, normal),
        (Math.random() < 0.5 ? -1 : 1) * (15 + 10 * Math.random())]);

    /** What a view puts into its keys. */
    const keys = () => ({
        count: { initial: "16", allowed: (/** @type {string} */ n) => COUNTS.includes(n) },
    });

    /** How many, and buttons that draw.
     * @param {string} label @param {[string, () => void][]} buttons
     * @returns {{element: HTMLElement, show: (count: string) => void}} */
    function controls(label, buttons) {
        const count = explorer.controls.picker(label, COUNTS.map((n) => ({ value: n, text: n })),
            (n) => explorer.shell.choose({ count: n }));
        const element = explorer.dom.h("div", { class: "controls drawing-tools" }, count.element,
            explorer.controls.group("Draw at random",
                buttons.map(([text, press]) => explorer.controls.button(text, press))));
        return { element, show: count.show };
    }

    return { normal, wide, canceling, withOutlier, times, textIn, keys, controls };
})();
