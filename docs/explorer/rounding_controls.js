/* Pickers of rounding and overflow, which several views have. */
"use strict";

explorer.roundingControls = (() => {
    const { argumentPicker } = explorer.controls;
    const { ROUNDINGS } = explorer.wording;
    /** The roundings that are not random. */
    const { stochastic: _, ...FIXED } = ROUNDINGS;
    /** @type {Object<string, string>} */
    const OVERFLOWS = { ieee: "as in IEEE 754", saturate: "to the largest finite number" };

    /** Return the keys of a view with these pickers. */
    const keys = () => ({
        rounding: { initial: "ties_to_even",
            allowed: (/** @type {string} */ name) => name in FIXED },
        overflow: { initial: "ieee",
            allowed: (/** @type {string} */ name) => name in OVERFLOWS },
    });

    /** Make the picker of the rounding. */
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
