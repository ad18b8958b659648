/* Draw the count of a format's numbers in each binade as bars; a second format's
 * mirrored. */
"use strict";

explorer.binadeChart = (() => {
    const { s } = explorer.dom;
    const { grouped, minus, raisedText } = explorer.wording;
    const TALL = 96;  // pixels of the highest bar
    const TOP = 26;
    const AXIS = 26;  // for the powers, between the bars

    /** Return a bar's height in steps: 1 for one number, and 1 more for each doubling.
     * @param {Binade} binade */
    const steps = ({ numbers }) => Math.log2(Number(numbers)) + 1;

    /** "8 in each power of two from 2^-6 to 2^8; 7 subnormal". @param {Format} format
     * @param {Binade[]} binades */
    function inWords(format, binades) {
        const normal = binades.filter(({ subnormal }) => !subnormal);
        const few = binades.find(({ subnormal }) => subnormal);
        const most = normal[0].numbers;
        const last = normal[normal.length - 1];
        const [low, high] = [normal[0], last].map(({ power }) => raisedText(power));
        return `${format.name}: ${grouped(most)} in each power of two from ${low} to ${high}${
            last.numbers === most ? "" : ` (${grouped(last.numbers)} in the last)`}${
            few ? `; ${grouped(few.numbers)} subnormal` : "; no subnormal numbers"}`;
    }

    /** @param {Format[]} formats  one or two @param {number} width @returns {SVGElement} */
    function draw(formats, width) {
        const all = formats.map((format) => arithmetic.binades(format.name));
        const powers = all.flat().map(({ power }) => power);
        const first = Math.min(...powers);
        const count = Math.max(...powers) - first + 1;
        const high = Math.max(...all.flat().map(steps));
        const each = width / count;
        const middle = TOP + TALL;
        const height = formats.length > 1 ? middle + AXIS + TALL + TOP : middle + AXIS;
        const bars = (/** @type {Binade[]} */ binades, /** @type {boolean} */ upper) =>
            binades.map((binade) => {
                const tall = (steps(binade) / high) * TALL;
                return s("rect", { class: binade.subnormal ? "bar subnormal" : "bar",
                    x: (binade.power - first) * each, width: Math.max(0.7, each * 0.82), height: tall,
                    y: upper ? middle - tall : middle + AXIS });
            });
        const every = [1, 2, 4, 5, 8, 16, 32, 64, 128, 256, 512].find((n) => n * each > 44) ?? 1024;
        const labels = [];
        for (let power = Math.ceil(first / every) * every; power < first + count; power += every) {
            const x = (power - first + 0.41) * each;
            if (x > 16 && x < width - 16) {
                labels.push(s("text", { x, y: middle + 18 }, "2",
                    s("tspan", { dy: -5, class: "power" }, minus(String(power)))));
            }
        }
        return s("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", class: "binades" },
            s("title", {}, "Numbers in each power of two"),
            s("desc", {}, all.map((binades, i) => inWords(formats[i], binades)).join(". ")),
            all.map((binades, i) => bars(binades, i === 0)), labels,
            formats.map((format, i) => s("text", { class: "format", x: 0,
                y: i === 0 ? 16 : height - 6 }, format.name)));
    }

    return { draw, inWords };
})();
