/* Pickers of rounding and overflow, which several views have. */
"use strict";

explorer.roundingControls = (() => {
    const { argumentPicker } = explorer.controls;
    const { ROUNDINGS } = explorer.wording;
    /** Those whose outcome is one number. */
    const { stochastic: _, ...FIXED } = ROUNDINGS;
    /** @type {Object<string, string>} */
    const OVERFLOWS = { ieee: "as IEEE 754 has it", saturate: "to the largest finite number" };

    /** What a view puts into its keys. */
    const keys = () => ({
        rounding: { initial: "ties_to_even",
            allowed: (/** @type {string} */ name) => name in FIXED },
        overflow: { initial: "ieee",
            allowed: (/** @type {string} */ name) => name in OVERFLOWS },
    });

    /** That of rounding alone. */
    const roundingPicker = () => argumentPicker("Rounding", FIXED,
        (value) => explorer.shell.choose({ rounding: value }));

    /** @returns {{elements: HTMLElement[], show: (state: Object<string, string>) => void}} */
    function controls() {
        const rounding = roundingPicker();
        const overflow = argumentPicker("Overflow", OVERFLOWS,
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
