/* Draw a block: each number of the input and the stored number; below, the errors as bars,
 * on their own scale. */
"use strict";

explorer.blockChart = (() => {
    const { s } = explorer.dom;
    const { brief, short } = explorer.wording;

    const LEFT = 74;  // pixels for the values at the axes
    const TOP = 26;
    const TALL = 130;  // height of each chart
    const GAP = 44;
    const BELOW = 22;
    const WIDEST = 72;

    /** Return the height of a number, from -1 to 1, which is the edge of the picture.
     * @type {(x: number, largest: number) => number} */
    const share = (x, greatest) => Math.max(-1, Math.min(1, greatest === 0 ? 0 : x / greatest));

    /** @param {BlockElement} e */
    const isSaturated = (e) => e.outcome === "saturated";

    /** @param {Block} block @param {number} first */
    function inWords({ elements, amax, worst }, first) {
        const saturated = elements.flatMap((e, i) => (isSaturated(e) ? [first + i] : []));
        return `${elements.length} numbers, largest magnitude ${amax}; largest error ${
            worst || "not finite"}; ${saturated.length ? `saturated: ${saturated.join(", ")}`
            : "none saturated"}. The table lists each number.`;
    }

    /** @param {Block} block @param {number} first  index of its first number
     * @param {number} width */
    function draw(block, first, width) {
        const { elements } = block;
        const finite = elements.filter(({ x, exact }) => x && exact);
        const greatest = (/** @type {number[]} */ all) => all.reduce((m, x) => Math.max(m, Math.abs(x)), 0);
        const high = greatest(finite.flatMap(({ x, number }) => [x?.number ?? 0, number]));
        const far = greatest(finite.map(({ error }) => error?.number ?? 0));
        const each = Math.min(WIDEST, (width - LEFT) / elements.length);
        const right = LEFT + each * elements.length;
        const values = TOP + TALL / 2;
        const errors = TOP + TALL + GAP + TALL / 2;
        const y = (/** @type {number} */ x) => values - share(x, high) * TALL / 2;
        const bar = (/** @type {number} */ x, /** @type {number} */ most,
            /** @type {number} */ zero, /** @type {number} */ left, /** @type {number} */ wide,
            /** @type {string} */ name) => {
            const tall = Math.abs(share(x, most)) * TALL / 2;
            return s("rect", { class: name, x: left, width: wide, height: tall,
                y: x < 0 ? zero : zero - tall });
        };
        const one = (/** @type {BlockElement} */ e, /** @type {number} */ i) => {
            const left = LEFT + i * each;
            const name = isSaturated(e) ? " saturated" : "";
            return !e.x || !e.exact || !e.error
                ? s("text", { class: "lost", x: left + each / 2, y: values + 4 }, "?")
                : s("g", {}, s("title", {}, `Number ${first + i}: input ${short(e.x)}, stored ${
                    short(e.exact)}, error ${short(e.error)}; ${e.outcome}`),
                bar(e.number, high, values, left + each * 0.15, each * 0.7, `held${name}`),
                s("line", { class: "given", x1: left + each * 0.02, x2: left + each * 0.98,
                    y1: y(e.x.number), y2: y(e.x.number) }),
                bar(e.error.number, far, errors, left + each * 0.15, each * 0.7, `error${name}`));
        };
        const axis = (/** @type {number} */ zero, /** @type {number} */ most) => [
            s("line", { class: "axis", x1: LEFT, x2: right, y1: zero, y2: zero }),
            [most, 0, -most].filter((x, i) => i === 1 || most > 0).map((x) => s("text",
                { class: "end", x: LEFT - 6, y: zero - share(x, most) * TALL / 2 + 4 }, brief(x, 4)))];
        const every = [1, 2, 4, 8, 16, 32].find((n) => n * each > 24) ?? 64;
        const height = errors + TALL / 2 + BELOW;
        return s("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", class: "block-chart" },
            s("title", {}, "Values and errors"), s("desc", {}, inWords(block, first)),
            s("text", { class: "part", x: LEFT, y: 14 },
                "stored values as bars, input as lines"),
            s("text", { class: "part", x: LEFT, y: TOP + TALL + GAP - 12 },
                "error: stored \u2212 input"),
            elements.map(one), axis(values, high), axis(errors, far),
            elements.map((_, i) => i % every === 0 && s("text", { class: "place",
                x: LEFT + (i + 0.5) * each, y: height - 4 }, first + i)));
    }

    return { draw };
})();
