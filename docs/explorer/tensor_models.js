/* Instructions of tensor cores: which is picked, which are like it, what one computes. */
"use strict";

explorer.tensorModels = (() => {
    /** @typedef {Model | ScaledModel} AnyModel */
    /** What comes in, all but the scales of the models' formats.
     * @typedef {{a: Value[], b: Value[], c: Value, scalesA: Value[], scalesB: Value[]}} Operands */

    /** @returns {AnyModel[]} */
    const all = () => [...arithmetic.models, ...arithmetic.scaledModels];

    /** @param {AnyModel} model @returns {model is ScaledModel} */
    const isScaled = (model) => "scale" in model;

    /** @param {string} name @returns {AnyModel | undefined} */
    const named = (name) => all().find((model) => model.name === name);

    /** Formats of what comes in, as a text. @param {AnyModel} model */
    function formats(model) {
        const pair = model.a === model.b ? model.a : `${model.a} \u00d7 ${model.b}`;
        return isScaled(model) ? `${pair}, scales ${model.scale} of ${model.blockSize}` : pair;
    }

    /** What is picked one after the other: the picker's label, and what a model has there.
     * @type {{label: string, of: (model: AnyModel) => string}[]} */
    const LEVELS = [
        { label: "Device", of: ({ device }) => device },
        { label: "Instruction", of: ({ instruction }) => instruction },
        { label: "Formats of a \u00d7 b", of: formats },
        { label: "Format of c and the sum", of: ({ accumulator }) => accumulator },
    ];

    /** What can be picked at a level, if those before it stay.
     * @param {AnyModel} model @param {number} level @returns {string[]} */
    function choices(model, level) {
        const open = all().filter((other) =>
            LEVELS.slice(0, level).every(({ of }) => of(other) === of(model)));
        return [...new Set(open.map(LEVELS[level].of))];
    }

    /** The model that has another choice at a level, and is else as near as there is one:
     * in those before it, then in formats, accumulator, instruction.
     * @param {AnyModel} model @param {number} level @param {string} choice */
    function changed(model, level, choice) {
        const weight = (/** @type {number} */ i) => (i < level ? 100 : [0, 1, 4, 2][i]);
        const nearness = (/** @type {AnyModel} */ other) => LEVELS.reduce((sum, { of }, i) =>
            sum + (of(other) === of(model) ? weight(i) : 0), 0);
        return all().filter((other) => LEVELS[level].of(other) === choice)
            .sort((x, y) => nearness(y) - nearness(x))[0];
    }

    /** Those that take and return the same formats, this one among them.
     * @param {AnyModel} model */
    const alike = (model) => all().filter((other) => formats(other) === formats(model)
        && other.accumulator === model.accumulator);

    /** The format that codes of a model's scales are typed in: ue4m3 is e4m3fn without the
     * sign. @param {ScaledModel} model */
    const scaleFormat = ({ scale }) => (scale === "ue4m3" ? "float8_e4m3fn" : scale);

    /** How many scales each operand needs. @param {ScaledModel} model @param {number} length */
    const scaleCount = ({ blockSize }, length) => Math.ceil(length / blockSize);

    /** @param {Value[]} values */
    const codes = (values) => values.map(({ code }) => code);

    /** Whether sums can be promoted: added in float32 after some k each, as code around the
     * instruction does. @param {AnyModel} model @returns {model is Model} */
    const canPromote = (model) => !isScaled(model) && model.accumulator === "float32";

    /** Why a model cannot promote after so many k, "" for never; "" if it can.
     * @param {AnyModel} model @param {string} every */
    function promotionError(model, every) {
        if (!canPromote(model) || every.trim() === "") {
            return "";
        }
        const depth = model.instructionDepth;
        return /^\d{1,6}$/.test(every.trim()) && Number(every) > 0 && Number(every) % depth === 0 ? ""
            : `a positive multiple of ${depth} is wanted, the products of an instruction`;
    }

    /** @param {AnyModel} model @param {Operands} operands
     * @param {string} promoteEvery  so many k; "": never @returns {Dot} */
    function compute(model, { a, b, c, scalesA, scalesB }, promoteEvery) {
        return isScaled(model)
            ? arithmetic.scaledDot(model, codes(a), codes(b), codes(scalesA), codes(scalesB), c.code)
            : arithmetic.dot(model, codes(a), codes(b), c.code,
                canPromote(model) ? Number(promoteEvery) : 0);
    }

    return { LEVELS, named, isScaled, formats, choices, changed, alike, scaleFormat, scaleCount,
        canPromote, promotionError, compute };
})();
