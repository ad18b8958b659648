/* The choices on the page, and their form in the address: #number?format=tf32&x=0.1
 *
 * A view has keys, and a key of one name means the same in every view: the next view takes
 * over a format that was chosen in another view, if it allows the format. Values are
 * strings.
 */
"use strict";

explorer.state = (() => {
    /** `full` returns the full name of a short name in a link: "bfloat16" for "bf16".
     * @typedef {{initial: string, allowed?: (value: string) => boolean,
     *   full?: (value: string) => string}} Key */
    /** @typedef {Object<string, string>} Values */

    /** The last choices, in any view. @type {Values} */
    const chosen = {};

    /** @param {Key} key @param {string} value */
    const inFull = (key, value) => key.full?.(value) ?? value;

    /** @param {Key} key @param {string} value */
    const allows = (key, value) => !key.allowed || key.allowed(inFull(key, value));

    /** Return the value of each key of a view: the given value if it is allowed, otherwise
     * the value chosen last, otherwise the initial value.
     * @param {Object<string, Key>} keys @param {Values} [given] @returns {Values} */
    function values(keys, given = {}) {
        return Object.fromEntries(Object.entries(keys).map(([name, key]) => {
            const candidates = [given[name], chosen[name]];
            const found = candidates.find((x) => x !== undefined && allows(key, x));
            return [name, found === undefined ? key.initial : inFull(key, found)];
        }));
    }

    /** @param {Values} given */
    function remember(given) {
        Object.assign(chosen, given);
    }

    /** @param {string} view @param {Values} given @returns {string} */
    function write(view, given) {
        return `#${view}?${new URLSearchParams(given)}`;
    }

    /** @param {string} hash @returns {{view: string, given: Values}} */
    function read(hash) {
        const [, view, query] = /^#?([^?]*)\??(.*)$/s.exec(hash) ?? [];
        return { view, given: Object.fromEntries(new URLSearchParams(query)) };
    }

    /** Return the values of an address that are not possible: "format=tf33".
     * @param {Object<string, Key>} keys @param {Values} given @returns {string[]} */
    function refused(keys, given) {
        return Object.entries(given)
            .filter(([name, value]) => !keys[name] || !allows(keys[name], value))
            .map(([name, value]) => `${name}=${value}`);
    }

    return { values, remember, write, read, refused };
})();
