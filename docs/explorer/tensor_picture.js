/* Draw a sum of a tensor core: each term's bits on one axis of powers of two, and the bits
 * below the last bit that is kept. */
"use strict";

explorer.tensorPicture = (() => {
    const { s } = explorer.dom;
    const { minus, raisedText } = explorer.wording;

    const LEFT = 62;  // pixels for the names of rows
    const TOP = 42;  // for the two marks
    const ROW = 22;
    const BELOW = 26;  // for the powers
    const WIDEST = 30;  // the largest width of a bit
    const LEGIBLE = 11;  // the smallest width of a bit with a digit
    /** The number of bits drawn below the last one kept; lower terms are only named. */
    const DEEP = 16;

    /** A row: name, sign, bits, and the power of the last bit; zero has no bits.
     * @typedef {{name: string, negative: boolean, bits: string, low: number,
     *   kind: string}} Row */

    /** "k 3", "k 0–15", "k 0–1, 4–5". @param {readonly number[]} ks */
    function kText(ks) {
        const starts = ks.filter((k, i) => i === 0 || k !== ks[i - 1] + 1);
        const runs = starts.map((first, i) => {
            const last = ks[(i + 1 < starts.length ? ks.indexOf(starts[i + 1]) : ks.length) - 1];
            return first === last ? `${first}` : `${first}\u2013${last}`;
        });
        return `k ${runs.join(", ")}`;
    }

    /** Return the name of a term; without products, the accumulator.
     * @param {readonly number[]} ks */
    const termName = (ks) => (ks.length === 0 ? "c" : kText(ks));

    /** @param {string} name @param {Exact} exact @param {string} [kind] @returns {Row} */
    function row(name, exact, kind = "term") {
        const [, odd, power] = /^-?(\d+) \* 2\^(-?\d+)$/.exec(exact.power) ?? [];
        return { name, kind, negative: exact.negative, low: Number(power ?? 0),
            bits: odd === undefined ? "" : BigInt(odd).toString(2) };
    }

    /** @param {Row} row */
    const high = ({ low, bits }) => low + bits.length - 1;

    /** @param {Group} group @returns {Row[]} */
    const rows = ({ terms, total, result }) => [
        ...terms.map(({ ks, exact }) => row(termName(ks), exact)),
        ...total ? [row("sum", total, "total")] : [],
        ...result.exact ? [row("result", result.exact, "total")] : [],
    ];

    /** Describe the picture in words. @param {Group} group */
    function inWords({ terms, greatest, unit }) {
        const cut = terms.filter((term) => term.cut).map(({ ks }) => termName(ks));
        return `The largest exponent is ${greatest}. ${cut.length
            ? `${cut.join(", ")}: bits below 2^${unit} are truncated`
            : `No term has bits below 2^${unit}`}. The table shows the same terms.`;
    }

    let count = 0;

    /** @param {Group} group  with a term that is not zero @param {number} width */
    function draw(group, width) {
        const unit = group.unit ?? 0;
        const greatest = group.greatest ?? 0;
        const all = rows(group);
        const some = all.filter(({ bits }) => bits);
        const top = Math.max(greatest, ...some.map(high));
        const bottom = Math.max(Math.min(unit - 1, ...some.map(({ low }) => low)), unit - DEEP);
        const cell = Math.min(WIDEST, (width - LEFT - 4) / (top - bottom + 1));
        const x = (/** @type {number} */ power) => LEFT + (top - power) * cell;
        const height = TOP + ROW * all.length + BELOW;
        const end = height - BELOW;
        const legible = cell >= LEGIBLE;
        const hatch = `hatch-${++count}`;

        const bit = (/** @type {string} */ digit, /** @type {number} */ power,
            /** @type {number} */ y, /** @type {string} */ kind) => {
            const cut = kind === "term" && power < unit;
            const name = `${digit === "1" ? "one" : "zero"}${cut ? " cut" : ""} ${kind}`;
            const gap = cell > 4 ? 1 : 0.3;
            return [
                s("rect", { class: name, x: x(power), y: y + 2, width: cell - gap, height: ROW - 5,
                    ...cut && digit === "1" && { style: `fill: url(#${hatch})` } }),
                legible && s("text", { class: cut ? "digit cut" : "digit", x: x(power) + (cell - gap) / 2,
                    y: y + 15 }, digit),
            ];
        };
        const line = (/** @type {Row} */ one, /** @type {number} */ i) => {
            const y = TOP + ROW * i;
            const deep = one.bits && one.low < bottom;
            return [
                one.kind === "total" && all[i - 1]?.kind === "term"
                    && s("line", { class: "rule", x1: 0, x2: x(bottom - 1), y1: y, y2: y }),
                s("text", { class: "row-name", x: 0, y: y + 15 },
                    `${one.name}${one.bits && one.negative ? " \u2212" : ""}`),
                one.kind === "term" && s("rect", { class: "window", x: x(greatest), y: y + 2,
                    width: x(unit - 1) - x(greatest), height: ROW - 5 }),
                !one.bits && s("text", { class: "note", x: x(greatest) + 5, y: y + 15 }, "0"),
                [...one.bits].map((digit, at) => {
                    const power = high(one) - at;
                    return power >= bottom && bit(digit, power, y, one.kind);
                }),
                deep && s("text", { class: "deep", x: x(bottom - 1) - 3, y: y + 15 },
                    high(one) >= bottom ? "\u2192" : (unit - bottom) * cell > 130
                    ? `from ${raisedText(high(one))} down \u2192` : `${raisedText(high(one))} \u2192`),
            ];
        };
        const every = [1, 2, 4, 5, 8, 10, 16, 20].find((n) => n * cell > 46) ?? 32;
        const ticks = [];
        for (let power = Math.floor(top / every) * every; power >= bottom; power -= every) {
            if (x(power) + cell / 2 < width - 14) {
                ticks.push(s("text", { class: "tick", x: x(power) + cell / 2, y: end + 18 },
                    raisedText(power)));
            }
        }
        return s("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", class: legible ? "sum-picture legible" : "sum-picture" },
            s("title", {}, "Terms aligned to one axis of powers of two"),
            s("desc", {}, minus(inWords(group))),
            s("defs", {}, s("pattern", { id: hatch, class: "hatch", width: 5, height: 5,
                patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
            s("rect", { width: 5, height: 5 }), s("line", { x1: 1, x2: 1, y1: 0, y2: 5 }))),
            s("rect", { class: "below", x: x(unit - 1), y: TOP - 4, width: (unit - bottom) * cell,
                height: end - TOP + 4 }),
            s("line", { class: "mark", x1: x(greatest), x2: x(greatest), y1: 18, y2: end }),
            s("text", { class: "mark-name", x: Math.min(x(greatest), width - 175), y: 12 },
                `largest exponent: ${raisedText(greatest)}`),
            s("line", { class: "mark unit", x1: x(unit - 1), x2: x(unit - 1), y1: 36, y2: end }),
            s("text", { class: "mark-name unit", x: x(unit - 1), y: 32 },
                `last kept bit: ${raisedText(unit)}`),
            all.map(line), ticks);
    }

    return { draw, termName, kText };
})();
