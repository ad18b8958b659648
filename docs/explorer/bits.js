/* Show the bits of a number in colored fields: sign, exponent, mantissa. */
"use strict";

explorer.bits = (() => {
    const { h } = explorer.dom;
    /** @type {("sign" | "exponent" | "mantissa")[]} */
    const FIELDS = ["sign", "exponent", "mantissa"];

    /** Return the fields that have bits, with the position of their first bit in the code.
     * @param {Value} value @returns {{name: string, bits: string, first: number}[]} */
    function fields(value) {
        let first = 0;
        return FIELDS.map((name) => {
            const field = { name, bits: value[name], first };
            first += field.bits.length;
            return field;
        }).filter(({ bits }) => bits);
    }

    /** Make bits to read, in a line of text. @param {Value} value @returns {HTMLElement} */
    function line(value) {
        return h("span", { class: "bits" }, fields(value).map(({ name, bits }) =>
            h("span", { class: `field ${name}` }, bits)));
    }

    /** Make bits to press, with names of their fields. The arrow keys left and right go
     * from bit to bit, up and down go to the next number.
     * @param {Value} value
     * @param {(binary: string) => void} flipped  gets all bits, with one changed
     * @param {(up: boolean) => void} stepped @returns {HTMLElement} */
    function keys(value, flipped, stepped) {
        const { binary } = value;
        const flip = (/** @type {number} */ at) =>
            flipped(`${binary.slice(0, at)}${1 - Number(binary[at])}${binary.slice(at + 1)}`);
        const key = (/** @type {string} */ name, /** @type {number} */ at,
            /** @type {number} */ weight) => h("button", {
            type: "button", class: "bit", "data-key": `bit-${at}`, tabindex: at === 0 ? 0 : -1,
            "aria-pressed": binary[at] === "1", "aria-label": `${name} bit ${weight}`,
            onclick: () => flip(at),
        }, binary[at]);
        const row = h("div", { class: "bit-row", role: "group", "aria-label":
            "Bits: left and right arrows move between bits, up and down arrows go to the next number" },
        fields(value).map(({ name, bits, first }) =>
            h("div", { class: `bit-field ${name}`, role: "group", "aria-label": name },
                h("div", { class: "keys" }, [...bits].map((_, i) =>
                    key(name, first + i, bits.length - 1 - i))),
                h("p", { class: "field-name" }, name, h("span", { class: "width" },
                    ` ${bits.length} ${bits.length === 1 ? "bit" : "bits"}`)))));
        row.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
            const bit = /** @type {HTMLElement} */ (event.target);
            const at = [...row.querySelectorAll(".bit")].indexOf(bit);
            const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0,
                End: binary.length - 1 }[event.key];
            if (event.key === "ArrowUp" || event.key === "ArrowDown") {
                stepped(event.key === "ArrowUp");
            } else if (to !== undefined) {
                reach(row, to);
            } else {
                return;
            }
            event.preventDefault();
        });
        return row;
    }

    /** Set the focus on a bit, to which Tab then returns.
     * @param {HTMLElement} row @param {number} at */
    function reach(row, at) {
        /** @type {HTMLElement[]} */
        const all = [...row.querySelectorAll(".bit")].map((bit) => /** @type {any} */ (bit));
        if (all[at]) {
            all.forEach((bit, i) => (bit.tabIndex = i === at ? 0 : -1));
            all[at].focus();
        }
    }

    return { line, keys };
})();
