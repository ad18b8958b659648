/* Pickers of rounding and overflow, which several views have. */
"use strict";

explorer.roundingControls = (() => {
    const { picker } = explorer.controls;
    const { ROUNDINGS } = explorer.wording;
    /** Those whose outcome is one number. @type {string[]} */
    const FIXED = Object.keys(ROUNDINGS).filter((name) => name !== "stochastic");
    /** @type {Object<string, string>} */
    const OVERFLOWS = { ieee: "as IEEE 754 has it", saturate: "saturates" };

    /** What a view puts into its keys. */
    const keys = () => ({
        rounding: { initial: "ties_to_even",
            allowed: (/** @type {string} */ name) => FIXED.includes(name) },
        overflow: { initial: "ieee",
            allowed: (/** @type {string} */ name) => name in OVERFLOWS },
    });

    /** That of rounding alone. */
    const roundingPicker = () => picker("Rounding",
        FIXED.map((value) => ({ value, text: ROUNDINGS[value] })),
        (value) => explorer.shell.choose({ rounding: value }));

    /** @returns {{elements: HTMLElement[], show: (state: Object<string, string>) => void}} */
    function controls() {
        const rounding = roundingPicker();
        const overflow = picker("Overflow",
            Object.entries(OVERFLOWS).map(([value, text]) => ({ value, text })),
            (value) => explorer.shell.choose({ overflow: value }));
        return {
            elements: [rounding.element, overflow.element],
            show(state) {
                rounding.show(state.rounding);
                overflow.show(state.overflow);
            },
        };
    }

    return { keys, roundingPicker, controls };
})();
