/* What is chosen on the page, and its writing in the address: #number?format=tf32&x=0.1
 *
 * A view has keys, and a key of one name means the same in every view: a format chosen in
 * one is that of the next, where it is allowed there. Values are texts.
 */
"use strict";

explorer.state = (() => {
    /** `full` writes out what a link may have short: "bf16" is "bfloat16".
     * @typedef {{initial: string, allowed?: (value: string) => boolean,
     *   full?: (value: string) => string}} Key */
    /** @typedef {Object<string, string>} Values */

    /** What was chosen last, in any view. @type {Values} */
    const chosen = {};

    /** @param {Key} key @param {string} value */
    const inFull = (key, value) => key.full?.(value) ?? value;

    /** @param {Key} key @param {string} value */
    const allows = (key, value) => !key.allowed || key.allowed(inFull(key, value));

    /** The values of a view's keys: those given, else those chosen last, else the first.
     * @param {Object<string, Key>} keys @param {Values} [given]
     * @returns {Values} */
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

    /** What an address asks for that cannot be had: "format=tf33".
     * @param {Object<string, Key>} keys @param {Values} given @returns {string[]} */
    function refused(keys, given) {
        return Object.entries(given)
            .filter(([name, value]) => !keys[name] || !allows(keys[name], value))
            .map(([name, value]) => `${name}=${value}`);
    }

    return { values, remember, write, read, refused };
})();
