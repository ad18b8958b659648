/* The Tensor core view: a dot product as an instruction and as other instructions compute
 * it. */
"use strict";

(() => {
    const { h, fill } = explorer.dom;
    const { valueText, short, minus } = explorer.wording;
    const { LEVELS, named, isScaled, choices, changed, alike, scaleFormat, scaleCount, canPromote,
        promotionError, compute } =
        explorer.tensorModels;
    const { factList } = explorer.tables;
    const drawn = explorer.drawnNumbers;
    /** @typedef {Model | ScaledModel} AnyModel */

    const MODEL = "H100 wgmma float16 -> float32";
    /** Three products that show how many bits are kept below the largest exponent. */
    const EXAMPLE = { left: "1, 0x1p-12, -1", right: "1, 0x1p-13, 1", c: "0" };

    /** Read the typed operands.
     * @param {AnyModel} model @param {Object<string, string>} state */
    function read(model, state) {
        const scales = (/** @type {string} */ text) => (isScaled(model)
            ? explorer.numberList.read(text, scaleFormat(model))
            : { numbers: [], error: "", wrong: "" });
        return {
            left: explorer.numberList.read(state.left, model.a),
            right: explorer.numberList.read(state.right, model.b),
            c: arithmetic.parse(state.c, model.accumulator),
            scalesLeft: scales(state.scalesLeft),
            scalesRight: scales(state.scalesRight),
        };
    }

    /** Return `count` scales: the last given scale is repeated.
     * @param {Value[]} scales @param {number} count */
    const filledUp = (scales, count) => Array.from({ length: count }, (_, i) =>
        scales[Math.min(i, scales.length - 1)]);

    /** Replace codes by numbers if another model has other formats.
     * @param {AnyModel} from @param {AnyModel} to @param {Object<string, string>} state */
    function carried(from, to, state) {
        const { left, right, c } = read(from, state);
        return {
            ...from.a !== to.a && { left: explorer.numberList.withoutCodes(left, state.left) },
            ...from.b !== to.b && { right: explorer.numberList.withoutCodes(right, state.right) },
            ...from.accumulator !== to.accumulator && c.isCode && c.rounded
                && { c: explorer.wording.exactText(c.rounded.value) },
        };
    }

    /** @param {AnyModel} model @returns {[string, any][]} */
    function facts(model) {
        /** @type {[string, any][]} */
        const some = isScaled(model) ? [
            ["Products in one term", model.group],
            ["Sum", `toward zero to ${model.accumulator}`],
        ] : [
            ["Products of an instruction", model.instructionDepth],
            ["Sum", `${explorer.wording.ROUNDINGS[model.rounding]}; ${model.kept} fraction bits`],
            ["Accumulator", model.emulated ? "added separately, after the sum" : "in the same sum"],
        ];
        return [
            ["Products of a group", model.depth],
            ["Bits below the largest exponent", model.fraction],
            ...some,
            ["Evidence", `${model.verified}: ${model.verifiedText}`],
        ];
    }

    /** Return all digits if they are few. @param {Exact} exact */
    const digits = (exact) => (exact.decimal.length <= 24 ? minus(exact.decimal) : short(exact));

    /** Return a short value; the code next to it is exact. @param {Value} value */
    const glance = (value) => (value.exact ? short(value.exact) : valueText(value));

    /** @param {Exact | null} error */
    const errorText = (error) => (error === null ? "not finite"
        : error.power === "0" ? "0, exact" : short(error));

    /** @param {AnyModel} model @param {Dot} dot @param {number} length */
    const result = (model, { result: value, exact, error }, length) => h("section", { class: "card" },
        h("h2", {}, `On the ${model.device}`),
        h("p", { class: "headline" }, `c and ${length} ${length === 1 ? "product" : "products"}: `,
            h("strong", {}, glance(value))),
        h("p", { class: "step-bits" }, h("a", { href: explorer.shell.link("number",
            { format: value.format, x: value.hex }), class: "code" }, value.hex), " ",
        explorer.bits.line(value)),
        factList([["Result", value.exact ? [digits(value.exact), value.kind !== "zero" && [" = ",
            explorer.tensorSteps.exactly(value.exact)]] : valueText(value)],
        ["Exact sum", exact ? [digits(exact), exact.power !== "0" && [" = ",
            explorer.tensorSteps.exactly(exact)]] : "Inf or NaN"],
        ["Error", errorText(error)]]));

    /** @param {AnyModel} model @param {any} operands @param {Object<string, string>} state */
    function others(model, operands, state) {
        const { promoteEvery } = state;
        const own = compute(model, operands, promoteEvery).result.code;
        const rows = alike(model).filter((other) => promotionError(other, promoteEvery) === "")
            .map((other) => ({ other, dot: compute(other, operands, promoteEvery) }));
        const same = (/** @type {{dot: Dot}} */ { dot }) => dot.result.code === own;
        return explorer.tables.table(`The same numbers on every device that has these formats${
            canPromote(model) && promoteEvery.trim() ? ", with the same promotion" : ""}`, [
            { title: "Device and instruction", cell: ({ other }) => (other === model
                ? `${other.device} ${other.instruction}` : h("a", {
                    href: explorer.shell.link("tensor", { ...state, model: other.name }) },
                `${other.device} ${other.instruction}`)) },
            { title: "Result", kind: "figure", cell: ({ dot }) => glance(dot.result) },
            { title: "Code", kind: "code", cell: ({ dot }) => dot.result.hex },
            { title: "Error", kind: "figure", cell: ({ dot }) => errorText(dot.error) },
            { title: "Compared with this model", cell: (row) => (row.other === model ? "this model"
                : same(row) ? "the same" : h("strong", { class: "error" }, "differs")) },
            { title: "Group", kind: "figure", cell: ({ other }) => other.depth },
            { title: "Bits kept", kind: "figure", cell: ({ other }) => other.fraction },
            { title: "Evidence", cell: ({ other }) => other.verified },
        ], rows, { stacks: true, className: ({ other }) => (other === model ? "this" : "") });
    }

    explorer.shell.register({
        name: "tensor",
        title: "Tensor core",
        summary: "Multiply and add a few pairs as a tensor core does. See the aligned products, the "
            + "truncated bits, the sum, its rounding, and the results of other devices.",
        keys: {
            model: { initial: MODEL, allowed: (name) => named(name) !== undefined },
            left: { initial: EXAMPLE.left },
            right: { initial: EXAMPLE.right },
            c: { initial: EXAMPLE.c },
            promoteEvery: { initial: "" },
            scalesLeft: { initial: "1" },
            scalesRight: { initial: "1" },
            ...drawn.keys(),
        },
        build(root) {
            /** @type {Object<string, string>} */
            let shown = {};
            let model = /** @type {AnyModel} */ (named(MODEL));
            const typed = (/** @type {string} */ key) => (/** @type {string} */ text) =>
                explorer.shell.choose({ [key]: text }, { step: true });
            const some = "1 to 64 numbers or codes with spaces or commas between them";
            const left = explorer.controls.input("a", typed("left"), some);
            const right = explorer.controls.input("b", typed("right"), "As many as in a");
            const c = explorer.controls.input("c", typed("c"), "The initial value of the sum");
            const promotion = explorer.controls.input("Promote every", typed("promoteEvery"),
                "This many products are summed from 0, then added in float32; empty: never");
            const scalesLeft = explorer.controls.input("Scales of a", typed("scalesLeft"),
                "One scale per block; the last scale is repeated");
            const scalesRight = explorer.controls.input("Scales of b", typed("scalesRight"),
                "As for a");
            const scales = h("div", { class: "controls" }, scalesLeft.element, scalesRight.element);
            /** @param {number[][]} pairs */
            const use = (pairs) => explorer.shell.choose({
                left: explorer.numberList.write(pairs.map(([x]) => drawn.textIn(x, model.a))),
                right: explorer.numberList.write(pairs.map(([, y]) => drawn.textIn(y, model.b))),
            });
            const count = () => Number(shown.count);
            const [a, b] = [() => arithmetic.format(model.a), () => arithmetic.format(model.b)];
            const tools = drawn.controls("Pairs", [
                ["Normal", () => use(drawn.times(count(), () => [drawn.normal(), drawn.normal()]))],
                ["Wide exponents", () => use(drawn.times(count(), () =>
                    [drawn.wide(a()), drawn.wide(b())]))],
                ["Canceling", () => use(drawn.canceling(count(), a(), b()))],
            ]);
            const example = explorer.controls.button("Where H100 and A100 differ", () =>
                explorer.shell.choose({ model: MODEL, ...EXAMPLE }));
            tools.element.append(explorer.controls.group("Examples", [example]));
            const pickers = h("div", { class: "controls" });
            const results = h("div", { class: "stack" });
            [left, right].forEach(({ element }) => element.classList.add("wide"));
            root.append(pickers, h("div", { class: "controls" }, left.element, right.element,
                c.element, promotion.element), scales, tools.element, results);

            const drawPickers = () => fill(pickers, LEVELS.map(({ label, of }, level) => {
                const picker = explorer.controls.picker(label,
                    choices(model, level).map((value) => ({ value, text: value })), (choice) => {
                        const next = changed(model, level, choice);
                        explorer.shell.choose({ model: next.name, ...carried(model, next, shown) });
                    });
                picker.element.querySelector("select")?.setAttribute("data-key", `level-${level}`);
                picker.show(of(model));
                return picker.element;
            }));

            return (state) => {
                shown = state;
                const picked = /** @type {AnyModel} */ (named(state.model));
                if (picked !== model || !pickers.firstChild) {
                    model = picked;
                    drawPickers();
                }
                const given = read(model, state);
                const length = given.left.numbers.length;
                const unequal = length && given.right.numbers.length
                    && length !== given.right.numbers.length;
                left.show(state.left, given.left.error, given.left.wrong);
                right.show(state.right, unequal ? `a has ${length}` : given.right.error,
                    unequal ? `${given.right.numbers.length} numbers` : given.right.wrong);
                c.show(state.c, given.c.error);
                scales.hidden = !isScaled(model);
                const unpromoted = promotionError(model, state.promoteEvery);
                promotion.element.hidden = !canPromote(model);
                promotion.show(state.promoteEvery, unpromoted);
                scalesLeft.show(state.scalesLeft, given.scalesLeft.error, given.scalesLeft.wrong);
                scalesRight.show(state.scalesRight, given.scalesRight.error, given.scalesRight.wrong);
                tools.show(state.count);
                const { values } = explorer.numberList;
                const blocks = isScaled(model) ? scaleCount(model, length) : 0;
                const bad = unequal || unpromoted || !given.c.rounded || Object.values(given).some((x) => x.error);
                results.hidden = Boolean(bad);
                if (bad || !given.c.rounded) {
                    return;
                }
                const operands = {
                    a: values(given.left), b: values(given.right), c: given.c.rounded.value,
                    scalesA: filledUp(values(given.scalesLeft), blocks),
                    scalesB: filledUp(values(given.scalesRight), blocks),
                };
                const dot = compute(model, operands, state.promoteEvery);
                fill(results,
                    h("div", { class: "columns" }, result(model, dot, length),
                        h("section", { class: "card" }, h("h2", {}, "How it adds"),
                            factList(facts(model)))),
                    explorer.tensorSteps.steps(dot, operands.a, operands.b),
                    others(model, operands, state));
                explorer.shell.say(`${model.device}: ${valueText(dot.result)}; error ${
                    errorText(dot.error)}`);
            };
        },
    });
})();
