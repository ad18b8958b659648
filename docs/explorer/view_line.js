/* The Number line view: the numbers of a format, above those of another format. */
"use strict";

explorer.shell.register({
    name: "line",
    title: "Number line",
    summary: "See the numbers of a format, the distances between them, and their range. "
        + "Zoom with the wheel, two fingers, or + and -; click to mark a number.",
    keys: {
        format: { initial: "float8_e4m3fn", allowed: explorer.controls.isFormat(),
            full: explorer.controls.fullName },
        other: { initial: "float8_e5m2",
            allowed: (name) => name === "" || explorer.controls.isFormat()(name),
            full: explorer.controls.fullName },
        x: { initial: "0.1" },
        from: { initial: "-2", allowed: (text) => text !== "" && Number.isFinite(Number(text)) },
        to: { initial: "2", allowed: (text) => text !== "" && Number.isFinite(Number(text)) },
    },
    build(root) {
        const { h, fill } = explorer.dom;
        const { button, group } = explorer.controls;
        const { brief, exactText, grouped, valueText, minus } = explorer.wording;
        const LIMIT = Number.MAX_VALUE;
        /** The drawn state.
         * @type {{format: Format, parsed: Parsed, from: number, to: number}} */
        let now;

        const choose = (/** @type {Object<string, string>} */ changes) =>
            explorer.shell.choose(changes, { step: true });
        const format = explorer.controls.formatPicker("Format", (name) =>
            explorer.shell.choose({ format: name, ...now.parsed.isCode && now.parsed.rounded
                && { x: exactText(now.parsed.rounded.value) } }));
        const other = explorer.controls.formatPicker("Second format", (name) =>
            explorer.shell.choose({ other: name }), undefined, "no other format");
        const input = explorer.controls.input("Marked number", (x) => choose({ x }),
            "a decimal, a fraction, or a code of the format");

        // -- the interval: positions on the screen, for which float64 is enough ------

        /** Return whether float64 can draw an interval, which must be wide enough and
         * ascending.
         * @param {number} low @param {number} high */
        function drawable(low, high) {
            const least = Math.max(1e-300, Math.max(Math.abs(low), Math.abs(high)) * 2 ** -40);
            return high / 2 - low / 2 > least / 2;
        }

        /** @param {number} from @param {number} to @param {boolean} [step] */
        function look(from, to, step = true) {
            const [low, high] = [Math.max(-LIMIT, from), Math.min(LIMIT, to)];
            if (drawable(low, high)) {
                explorer.shell.choose({ from: rounded(low), to: rounded(high) }, { step });
            }
        }

        /** Return x with enough digits for the narrowest interval, unless they round to
         * Inf.
         * @param {number} x */
        function rounded(x) {
            const short = Number(x.toPrecision(15));
            return String(Number.isFinite(short) ? short : x);
        }

        const wide = () => now.to / 2 - now.from / 2;
        const placeOf = (/** @type {number} */ at) => now.from + wide() * at + wide() * at;
        const gestures = {
            zoom: (/** @type {number} */ factor, /** @type {number} */ at) => {
                const center = placeOf(at);
                const half = wide() * factor;
                look(center - half * at - half * at, center + half * (1 - at) + half * (1 - at));
            },
            pan: (/** @type {number} */ part) => {
                const shift = wide() * part * 2;
                if (now.from + shift >= -LIMIT && now.to + shift <= LIMIT) {
                    look(now.from + shift, now.to + shift);
                }
            },
            pick: (/** @type {number} */ at) => {
                const { value } = arithmetic.round(arithmetic.textOf(placeOf(at)), now.format.name,
                    "ties_to_even", "saturate");
                choose({ x: exactText(value) });
            },
            step: (/** @type {boolean} */ up) => {
                const value = now.parsed.rounded?.value;
                const { below, above } = value ? arithmetic.neighbors(now.format.name, value.code)
                    : { below: null, above: null };
                const next = up ? above : below;
                if (next) {
                    choose({ x: exactText(next) });
                    keepInSight(next.number);
                }
            },
            all: () => look(now.format.min.number * (now.format.signed ? 1.15 : 1),
                now.format.max.number * 1.15),
        };

        /** @param {number} x  the marked number */
        function keepInSight(x) {
            if (x < now.from || x > now.to) {
                look(x - wide(), x + wide());
            }
        }

        /** Intervals that have a name. @type {[string, () => void][]} */
        const stretches = [
            ["All", gestures.all],
            [minus("-2 to 2"), () => look(-2, 2, false)],
            ["Subnormal numbers", () => look(-3 * now.format.smallestNormal.number,
                3 * now.format.smallestNormal.number, false)],
            ["Around the mark", () => {
                const value = now.parsed.rounded?.value;
                const half = (value?.ulp ?? now.format.eps).number * 12;
                if (value && Number.isFinite(value.number)) {
                    look(value.number - half, value.number + half, false);
                }
            }],
            ["Upper end", () => look(now.format.max.number * 0.4,
                now.format.max.number * 1.25, false)],
        ];
        const place = h("div", { class: "line-place", tabindex: 0, role: "group",
            "aria-label": "Number line: arrows go to the next number, plus and minus zoom, "
                + "page up and down move, home shows all" });
        explorer.gestures(place, gestures);
        const drawLine = explorer.drawing(place);
        const marked = h("p", { class: "marked" });
        const chart = h("div");
        const drawChart = explorer.drawing(chart);
        const counts = h("ul", { class: "hint plain" });

        root.append(
            h("div", { class: "controls" }, format.element, other.element, input.element),
            h("section", { class: "card" },
                h("div", { class: "line-tools" },
                    group("Zoom", [
                        button("\u2212", () => gestures.zoom(2, 0.5), { "aria-label": "Zoom out" }),
                        button("+", () => gestures.zoom(0.5, 0.5), { "aria-label": "Zoom in" }),
                        button("\u2190", () => gestures.pan(-0.5), { "aria-label": "Move left" }),
                        button("\u2192", () => gestures.pan(0.5), { "aria-label": "Move right" })]),
                    group("Intervals", stretches.map(([name, go]) => button(name, go)))),
                place, marked),
            h("section", { class: "card" },
                h("h2", {}, "Numbers in each power of two"),
                h("p", { class: "hint" }, "Each doubling of the count makes a bar one step "
                    + "higher. Subnormal numbers, which share one spacing, are one bar."),
                chart, counts));

        /** Show the marked number in each format.
         * @param {string} shown @param {Format[]} formats @param {Value[]} held */
        const inWords = (shown, formats, held) => formats.flatMap((one, i) => [i ? ", and " : "",
            h("a", { href: explorer.shell.link("number", { format: one.name, x: shown }) },
                valueText(held[i])), ` in ${one.name}`]);

        return (state) => {
            const formats = [state.format, state.other].filter(Boolean).map(arithmetic.format);
            const parsed = arithmetic.parse(state.x, state.format);
            const [from, to] = [Number(state.from), Number(state.to)];
            const drawn = drawable(from, to);
            now = { format: formats[0], parsed, ...drawn ? { from, to } : { from: -2, to: 2 } };
            format.show(state.format);
            other.show(state.other);
            input.show(state.x, parsed.error);

            const held = parsed.error ? [] : formats.map((one) =>
                arithmetic.round(parsed.text, one.name).value);
            const counted = formats.map((one) => `${grouped(arithmetic.between(one.name,
                arithmetic.textOf(now.from), arithmetic.textOf(now.to), 0).count)} of ${one.name}`);
            const text = `Numbers from ${brief(now.from)} to ${brief(now.to)}: ${counted.join(", ")}`;
            const mark = parsed.exact?.number ?? null;
            drawLine((width) => explorer.numberLine.draw(formats, now, held, mark, text, width));
            fill(marked, !drawn && [`The interval from ${state.from} to ${state.to} cannot be drawn; `
                + "another interval is shown.", h("br")],
            h("span", { class: "hint" }, text, "."), h("br"),
                parsed.error ? "" : [`${state.x.trim()} becomes `, inWords(parsed.text, formats, held)]);
            drawChart((width) => explorer.binadeChart.draw(formats, width));
            fill(counts, formats.map((one) => h("li", {},
                explorer.binadeChart.inWords(one, arithmetic.binades(one.name)))));
            explorer.shell.say(text);
        };
    },
});
