/* The Cast chain view: a value through several formats, and directly to the last one. */
"use strict";

(() => {
    const { h, fill } = explorer.dom;
    const { valueText, outcome } = explorer.wording;
    const MOST = 5;
    const NONE = "These formats have no such value next to 1.";

    /** @param {string} text  of the address: "float64,float16,float8_e4m3fn" */
    const namesOf = (text) => text.split(",");

    /** @param {string} text */
    function allowed(text) {
        const names = namesOf(text);
        return names.length >= 2 && names.length <= MOST
            && names.every(explorer.controls.isFormat());
    }

    /** Return a value that one cast rounds up from 1 and the chain rounds down to 1: just
     * above the tie between 1 and the next number of the last format, and nearer to the
     * tie than to any other number of a format before. Return "" if these formats have no
     * such value.
     * @param {string[]} names @param {Object<string, string>} state @returns {string} */
    function doubleRounding(names, { rounding, overflow }) {
        const code = (/** @type {Exact} */ exact, /** @type {string} */ part) => {
            const of = (/** @type {string} */ text) => arithmetic.round(text, "float64").value.code;
            return arithmetic.operate("multiply", "float64", of(exact.text), of(part)).rounded.value.code;
        };
        const add = (/** @type {Code} */ a, /** @type {Code} */ b) =>
            arithmetic.operate("add", "float64", a, b).rounded.value;
        const last = arithmetic.format(names[names.length - 1]);
        const one = arithmetic.round("1", "float64").value.code;
        const tie = add(one, code(last.eps, "0.5"));
        const finer = names.slice(0, -1).reverse()
            .filter((name) => arithmetic.format(name).mantissaBits > last.mantissaBits);
        for (const name of finer) {
            const above = add(tie.code, code(arithmetic.format(name).eps, "0.25"));
            if (above.exact && arithmetic.chain(above.exact.text, names,
                /** @type {Rounding} */ (rounding), /** @type {Overflow} */ (overflow)).differs) {
                return above.exact.decimal;
            }
        }
        return "";
    }

    /** Show the step to a format: the value, its bits, its outcome.
     * @param {Rounded} rounded @param {string} [note] @returns {HTMLElement[]} */
    function step({ value, ...rest }, note = "") {
        const link = explorer.shell.link("number", { format: value.format, x: value.hex });
        return [
            h("p", { class: "step-name" }, value.format),
            h("p", { class: "step-value" }, h("a", { href: link }, valueText(value))),
            h("p", { class: "step-bits" }, explorer.bits.line(value)),
            h("p", { class: "hint" }, "Outcome: ", outcome({ value, ...rest })),
            note && h("p", { class: "hint" }, note),
        ].filter(Boolean);
    }

    /** Return whether a value is in the middle of two numbers of a format.
     * @param {string} text @param {string} format */
    const isTie = (text, format) =>
        arithmetic.allRoundings(text, format).stochastic.chance === "0.5";

    /** Return a note for each step that was a tie.
     * @param {string} text @param {Chain} chain */
    function notes(text, chain) {
        const before = [text, ...chain.steps.map(({ value }) => explorer.wording.exactText(value))];
        return chain.steps.map(({ value }, i) => (isTie(before[i], value.format)
            ? `${i ? valueText(chain.steps[i - 1].value) : "The input"} is a tie here: it is `
                + "in the middle between two numbers." : ""));
    }

    /** @param {Chain} chain @returns {HTMLElement} */
    function verdict(chain) {
        const last = chain.steps[chain.steps.length - 1];
        const through = valueText(last.value);
        const once = valueText(chain.direct.value);
        if (!chain.differs) {
            return h("p", { class: "verdict" }, `One cast gives the same: ${once}.`);
        }
        // If the last cast changes nothing, only an earlier cast causes the difference.
        const again = chain.steps[chain.steps.length - 2].value.text !== last.value.text;
        return h("p", { class: "verdict differs" },
            h("strong", {}, again ? "Double rounding. " : "Rounded earlier. "),
            `The chain gives ${through}; one cast gives ${once}.`);
    }

    explorer.shell.register({
        name: "chain",
        title: "Cast chain",
        summary: "Cast a value from format to format, and see where rounding twice gives "
            + "a different number than rounding once.",
        keys: {
            chain: { initial: "float64,float16,float8_e4m3fn", allowed,
                full: (text) => namesOf(text).map(explorer.controls.fullName).join(",") },
            // Above the tie between 1 and 1.125, and nearer to it than to the next float16.
            x: { initial: "1.062744140625" },
            ...explorer.roundingControls.keys(),
        },
        build(root) {
            /** @type {string[]} */
            let names = [];
            /** @type {Object<string, string>} */
            let shown = {};
            const input = explorer.controls.input("Number",
                (x) => explorer.shell.choose({ x }, { step: true }),
                "3.14159, 1e-40, 1/3, 0x1.8p-3, inf, nan");
            const replaced = (/** @type {number} */ at, /** @type {string} */ name) => {
                const next = [...names];
                next[at] = name;
                explorer.shell.choose({ chain: next.filter(Boolean).join(",") });
            };
            const pickers = Array.from({ length: MOST }, (_, i) =>
                explorer.controls.formatPicker(i ? `Then (${i + 1})` : "First (1)",
                    (name) => replaced(i, name), () => true, i < 2 ? "" : "no more"));
            const rounding = explorer.roundingControls.controls();
            const message = h("p", { class: "hint" });
            const example = explorer.controls.button("Find a number that differs", () => {
                const x = doubleRounding(names, shown);
                explorer.shell.say(x || NONE);
                if (x) {
                    explorer.shell.choose({ x });
                } else {
                    fill(message, NONE);
                }
            });
            const results = h("div", { class: "stack" });
            root.append(
                h("div", { class: "controls" }, input.element),
                h("div", { class: "controls" }, pickers.map(({ element }) => element)),
                h("div", { class: "controls" }, rounding.elements),
                explorer.controls.group("Examples", [example]), message, results);

            return (state) => {
                names = namesOf(state.chain);
                shown = state;
                pickers.forEach((picker, i) => {
                    picker.show(names[i] ?? "");
                    picker.element.hidden = i > names.length;
                });
                rounding.show(state);
                fill(message);
                const parsed = arithmetic.parse(state.x, names[0]);
                input.show(state.x, parsed.error);
                results.hidden = parsed.error !== "";
                if (parsed.error) {
                    return;
                }
                const chain = arithmetic.chain(parsed.text, names,
                    /** @type {Rounding} */ (state.rounding),
                    /** @type {Overflow} */ (state.overflow));
                const noted = notes(parsed.text, chain);
                fill(results, verdict(chain), h("div", { class: "columns" },
                    h("section", { class: "card" }, h("h2", {}, "Through the chain"),
                        h("ol", { class: "steps" }, chain.steps.map((rounded, i) =>
                            h("li", {}, step(rounded, noted[i]))))),
                    h("section", { class: "card" }, h("h2", {}, "In one cast"),
                        h("ol", { class: "steps" }, h("li", {}, step(chain.direct))))));
                explorer.shell.say(results.firstElementChild?.textContent ?? "");
            };
        },
    });
})();
