/* Draw an interval of the number line with the numbers of one format, or of two formats.
 *
 * Each number of a binade is a tick if its numbers are far enough apart; otherwise the
 * binade is a band, which is darker if it is denser. Coordinates are float64; the numbers
 * come from arithmetic.js.
 */
"use strict";

explorer.numberLine = (() => {
    const { s } = explorer.dom;
    const { brief, minus } = explorer.wording;
    const APART = 4;  // the fewest pixels between numbers that are ticks
    const LETTER = 7.2;  // the approximate width of a letter in pixels
    const AXIS = 104;  // the upper format's line
    const GAP = 40;  // between the lines, for the decimal axis
    const HEIGHT = { one: 158, two: 250 };

    /** @typedef {{from: number, to: number}} Stretch */

    /** Return functions from numbers and lengths to pixels. They compute with halves,
     * because the width of the widest interval overflows.
     * @param {Stretch} stretch @param {number} width */
    function scale({ from, to }, width) {
        const half = to / 2 - from / 2;
        return {
            place: (/** @type {number} */ x) =>
                Math.max(-width, Math.min(2 * width, ((x / 2 - from / 2) / half) * width)),
            length: (/** @type {number} */ x) => (x / 2 / half) * width,
        };
    }

    /** Binades of formats, computed once for each. @type {Map<string, Binade[]>} */
    const binades = new Map();

    /** @param {Format} format @returns {any[]} largest first */
    function binadesOf(format) {
        const known = binades.get(format.name) ?? arithmetic.binades(format.name).reverse();
        binades.set(format.name, known);
        return known;
    }

    /** Return the magnitude from which on numbers are drawn one by one.
     * @param {Format} format @param {(x: number) => number} length  in pixels */
    function singleFrom(format, length) {
        let least = Infinity;
        for (const { power, subnormal, ulp } of binadesOf(format)) {
            if (length(ulp.number) < APART) {
                break;
            }
            least = subnormal ? 0 : 2 ** power;
        }
        // Without subnormal numbers, no number is below the smallest power.
        return least <= format.smallest.number ? 0 : least;
    }

    /** Return the numbers to draw one by one.
     * @param {Format} format @param {Stretch} stretch
     * @param {number} least  the smallest magnitude @returns {any[]} */
    function singles(format, { from, to }, least) {
        const numbers = (/** @type {number} */ low, /** @type {number} */ high) =>
            (low <= high ? arithmetic.between(format.name, arithmetic.textOf(low),
                arithmetic.textOf(high)).values : []);
        if (least === 0) {
            return numbers(from, to);
        }
        return least === Infinity ? []
            : [...numbers(from, Math.min(to, -least)), ...numbers(Math.max(from, least), to)];
    }

    /** Draw bands instead of close numbers. @param {Format} format @param {number} least
     * @param {any} scales @param {number} width @param {number} top @returns {Element[]} */
    function bands(format, least, { place, length }, width, top) {
        const signs = format.signed ? [1, -1] : [1];
        /** @type {Element[]} */
        const drawn = [];
        for (const { power, subnormal, ulp } of binadesOf(format)) {
            const low = subnormal ? 0 : 2 ** power;
            const high = subnormal ? format.smallestNormal.number
                : Math.min(2 ** power * 2, format.max.number);
            if (low >= least) {
                continue;
            }
            const rest = length(high) < 1;  // the other binades fill less than one pixel
            const dark = Math.max(0.25, Math.min(0.9, 1 - length(ulp.number) / APART));
            for (const sign of signs) {
                const ends = [place(sign * (rest ? 0 : low)), place(sign * high)];
                const left = Math.max(0, Math.min(...ends));
                const wide = Math.min(width, Math.max(...ends)) - left;
                if (wide > 0) {
                    drawn.push(s("rect", { class: `band ${subnormal ? "subnormal" : ""}`, x: left,
                        y: top, width: Math.max(1, wide), height: 24, "fill-opacity": dark }));
                }
            }
            if (rest) {
                break;
            }
        }
        return drawn;
    }

    /** Return whether there is room for every tick's number.
     * @param {{x: number, number: number}[]} ticks  ascending */
    const haveRoom = (ticks) => ticks.every(({ x, number }, i) => i === 0
        || x - ticks[i - 1].x > LETTER * 0.5
            * (brief(number).length + brief(ticks[i - 1].number).length) + 8);

    /** @param {number} x */
    const isPower = (x) => Number.isInteger(Math.log2(Math.abs(x)));

    /** Draw the regions out of the format's range.
     * @param {Format} format @param {any} scales @param {number} width
     * @param {number} top @returns {Element[]} */
    function beyond(format, { place }, width, top) {
        const region = (/** @type {number} */ left, /** @type {number} */ right,
            /** @type {string} */ text) => right - left > 0.5 && s("g", { class: "beyond" },
            s("rect", { x: left, y: top, width: right - left, height: 34 }),
            right - left > text.length * 7 && s("text", { x: (left + right) / 2, y: top + 21 }, text));
        const become = (/** @type {string} */ x) => {
            const [ieee, saturated] = arithmetic.overflows.map((overflow) =>
                brief(arithmetic.round(x, format.name, "ties_to_even", overflow).value.number));
            return ieee === saturated ? `out of range: ${ieee}`
                : `out of range: ${ieee}, or ${saturated} if saturated`;
        };
        const limit = (/** @type {number} */ x) => Math.max(0, Math.min(width, place(x)));
        return [
            region(limit(format.max.number), width, become("inf")),
            region(0, limit(format.min.number), become("-inf")),
        ].filter(Boolean);
    }

    /** Draw one format's line. @param {Format} format @param {Stretch} stretch
     * @param {number} width @param {boolean} upper  ticks go up, otherwise down
     * @param {Value | undefined} held  the marked number, rounded to the format */
    function track(format, stretch, width, upper, held) {
        const scales = scale(stretch, width);
        const line = upper ? AXIS : AXIS + GAP;
        const up = upper ? -1 : 1;
        const top = (/** @type {number} */ height) => (upper ? line - height : line);
        const least = singleFrom(format, scales.length);
        const ticks = singles(format, stretch, least).map((value) => ({ ...value,
            x: scales.place(value.number) }));
        const named = haveRoom(ticks);
        const tall = (/** @type {number} */ x) => (x === 0 ? 34 : isPower(x) ? 30 : 22);
        const edge = format.subnormals ? format.smallestNormal.number : 0;
        const low = Math.max(0, scales.place(-edge));
        const high = Math.min(width, scales.place(edge));
        const shownSubnormals = edge && high - low > 2;
        return s("g", { class: "track" },
            beyond(format, scales, width, top(34)),
            shownSubnormals && s("rect", { class: "subnormals", x: low, y: top(34),
                width: high - low, height: 34 }),
            bands(format, least, scales, width, top(24)),
            ticks.map((tick) => s("line", { class: `tick ${tick.kind}`, x1: tick.x, x2: tick.x,
                y1: line, y2: line + up * tall(tick.number) })),
            named && ticks.map((tick) => s("text", { x: tick.x, y: upper ? line - 42 : line + 52 },
                brief(tick.number))),
            held && Number.isFinite(held.number) && inside(scales.place(held.number), width)
                && s("circle", { class: "held", cx: scales.place(held.number), cy: line, r: 6 }),
            s("text", { class: "format", x: 0, y: upper ? 18 : AXIS + GAP + 92 }, format.name),
            shownSubnormals && s("text", { class: "subnormals", x: width, y: upper ? 18
                : AXIS + GAP + 92 }, `subnormal: below ${brief(edge)}`));
    }

    const inside = (/** @type {number} */ x, /** @type {number} */ width) => x >= 0 && x <= width;

    /** Draw the decimal axis. @param {Stretch} stretch @param {number} width
     * @param {boolean} two  there are two formats */
    function axis(stretch, width, two) {
        const { place } = scale(stretch, width);
        const room = Math.max(2, Math.floor(width / 110));
        const least = (stretch.to / 2 - stretch.from / 2) / room * 2;
        const power = 10 ** Math.floor(Math.log10(least));
        const step = [1, 2, 5, 10].map((n) => n * power).find((x) => x >= least) ?? least;
        /** @type {Element[]} */
        const marks = [];
        for (let n = Math.ceil(stretch.from / step); n * step <= stretch.to && marks.length < 40; n++) {
            const text = minus(String(Number((n * step).toPrecision(12))).replace("e+", "e"));
            const x = place(n * step);
            const half = text.length * LETTER / 2;
            marks.push(s("line", { x1: x, x2: x, y1: AXIS, y2: AXIS + 6 }));
            if (x > half - 12 && x < width - half + 12) {
                marks.push(s("text", { x, y: AXIS + 25 }, text));
            }
        }
        return s("g", { class: "axis" }, s("line", { x1: 0, x2: width, y1: AXIS, y2: AXIS }),
            two && s("line", { x1: 0, x2: width, y1: AXIS + GAP, y2: AXIS + GAP }), marks);
    }

    /** @param {Format[]} formats  one or two @param {Stretch} stretch
     * @param {Value[]} held  the marked number, rounded to each format
     * @param {number | null} mark  the marked number @param {string} text  a description
     * @param {number} width @returns {SVGElement} */
    function draw(formats, stretch, held, mark, text, width) {
        const two = formats.length > 1;
        const height = two ? HEIGHT.two : HEIGHT.one;
        const x = mark === null || !Number.isFinite(mark) ? -1 : scale(stretch, width).place(mark);
        return s("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", class: "number-line" },
            s("title", {}, `Number line of ${formats.map((format) => format.name).join(" and ")}`),
            s("desc", {}, text),
            formats.map((format, i) => track(format, stretch, width, i === 0, held[i])),
            axis(stretch, width, two),
            inside(x, width) && s("line", { class: "mark", x1: x, x2: x, y1: 30,
                y2: two ? height - 36 : AXIS + 8 }));
    }

    return { draw };
})();
