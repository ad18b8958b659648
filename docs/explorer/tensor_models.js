/* Models of tensor core instructions: choose one, find similar ones, compute with one. */
"use strict";

explorer.tensorModels = (() => {
    /** @typedef {Model | ScaledModel} AnyModel */
    /** Operands in the model's formats, and codes of scales in scaleFormat.
     * @typedef {{a: Value[], b: Value[], c: Value, scalesA: Value[], scalesB: Value[]}}
     *   Operands */

    /** @returns {AnyModel[]} */
    const all = () => [...arithmetic.models, ...arithmetic.scaledModels];

    /** @param {AnyModel} model @returns {model is ScaledModel} */
    const isScaled = (model) => "scale" in model;

    /** @param {string} name @returns {AnyModel | undefined} */
    const named = (name) => all().find((model) => model.name === name);

    /** Return the formats of the operands as a string. @param {AnyModel} model */
    function formats(model) {
        const pair = model.a === model.b ? model.a : `${model.a} \u00d7 ${model.b}`;
        return isScaled(model) ? `${pair}, scales ${model.scale} of ${model.blockSize}` : pair;
    }

    /** The pickers, one after the other: the label, and the value of a model.
     * @type {{label: string, of: (model: AnyModel) => string}[]} */
    const LEVELS = [
        { label: "Device", of: ({ device }) => device },
        { label: "Instruction", of: ({ instruction }) => instruction },
        { label: "Formats of a \u00d7 b", of: formats },
        { label: "Format of c and the sum", of: ({ accumulator }) => accumulator },
    ];

    /** Return the choices at a level for the model's choices at the levels before it.
     * @param {AnyModel} model @param {number} level @returns {string[]} */
    function choices(model, level) {
        const open = all().filter((other) =>
            LEVELS.slice(0, level).every(({ of }) => of(other) === of(model)));
        return [...new Set(open.map(LEVELS[level].of))];
    }

    /** Return the model with another choice at a level that is otherwise most similar:
     * first at the levels before, then in formats, accumulator, instruction.
     * @param {AnyModel} model @param {number} level @param {string} choice */
    function changed(model, level, choice) {
        const weight = (/** @type {number} */ i) => (i < level ? 100 : [0, 1, 4, 2][i]);
        const nearness = (/** @type {AnyModel} */ other) => LEVELS.reduce((sum, { of }, i) =>
            sum + (of(other) === of(model) ? weight(i) : 0), 0);
        return all().filter((other) => LEVELS[level].of(other) === choice)
            .sort((x, y) => nearness(y) - nearness(x))[0];
    }

    /** Return all models with the same formats of operands and results, including this one.
     * @param {AnyModel} model */
    const alike = (model) => all().filter((other) => formats(other) === formats(model)
        && other.accumulator === model.accumulator);

    /** Return the format for codes of a model's scales: ue4m3 is e4m3fn without a sign.
     * @param {ScaledModel} model */
    const scaleFormat = ({ scale }) => (scale === "ue4m3" ? "float8_e4m3fn" : scale);

    /** Return the number of scales of an operand. @param {ScaledModel} model
     * @param {number} length */
    const scaleCount = ({ blockSize }, length) => Math.ceil(length / blockSize);

    /** @param {Value[]} values */
    const codes = (values) => values.map(({ code }) => code);

    /** Return whether sums can be promoted: added in float32 after some k each, by the code
     * around the instruction. @param {AnyModel} model @returns {model is Model} */
    const canPromote = (model) => !isScaled(model) && model.accumulator === "float32";

    /** Return why a model cannot promote after every `every` k, or "" if it can.
     * @param {AnyModel} model @param {string} every  a number, or "" for never */
    function promotionError(model, every) {
        if (!canPromote(model) || every.trim() === "") {
            return "";
        }
        const depth = model.instructionDepth;
        return /^\d{1,6}$/.test(every.trim()) && Number(every) > 0 && Number(every) % depth === 0 ? ""
            : `enter a positive multiple of ${depth}, the number of products of an instruction`;
    }

    /** @param {AnyModel} model @param {Operands} operands
     * @param {string} promoteEvery  a number of k, or "" for never @returns {Dot} */
    function compute(model, { a, b, c, scalesA, scalesB }, promoteEvery) {
        return isScaled(model)
            ? arithmetic.scaledDot(model, codes(a), codes(b), codes(scalesA), codes(scalesB), c.code)
            : arithmetic.dot(model, codes(a), codes(b), c.code,
                canPromote(model) ? Number(promoteEvery) : 0);
    }

    return { LEVELS, named, isScaled, formats, choices, changed, alike, scaleFormat, scaleCount,
        canPromote, promotionError, compute };
})();
