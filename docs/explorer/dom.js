/* The only namespace of the page, and functions that make elements. */
"use strict";

/** The namespace that the files of the page share. Each file adds members. */
const explorer = {};

explorer.dom = (() => {
    const SVG = "http://www.w3.org/2000/svg";

    /** @typedef {Node | string | number | null | undefined | false | readonly any[]} Child
     *    null, undefined, false and "" are left out */

    /** @param {Element} element @param {Object<string, any>} properties */
    function give(element, properties) {
        for (const [name, value] of Object.entries(properties)) {
            if (name.startsWith("on")) {
                element.addEventListener(name.slice(2), value);
            } else if (value === true) {
                element.setAttribute(name, "");
            } else if (value !== false && value !== null && value !== undefined) {
                element.setAttribute(name, String(value));
            }
        }
    }

    /** @param {readonly Child[]} children @returns {(Node | string)[]} */
    function shown(children) {
        return children.flatMap((child) =>
            Array.isArray(child) ? shown(child)
                : child instanceof Node ? [child]
                    : child === 0 || child ? [String(child)] : []);
    }

    /** Make an element of HTML.
     * @param {string} tag @param {Object<string, any>} [properties]  attributes, and
     *   handlers named onclick, oninput...
     * @param {...Child} children @returns {any} */
    function h(tag, properties = {}, ...children) {
        const element = document.createElement(tag);
        give(element, properties);
        element.append(...shown(children));
        return element;
    }

    /** Make an element of SVG.
     * @param {string} tag @param {Object<string, any>} [properties]
     * @param {...Child} children @returns {any} */
    function s(tag, properties = {}, ...children) {
        const element = document.createElementNS(SVG, tag);
        give(element, properties);
        element.append(...shown(children));
        return element;
    }

    /** Replace the children of an element. If an old child with a data-key has the focus,
     * the new child with the same data-key gets it.
     * @param {Element} parent @param {...Child} children */
    function fill(parent, ...children) {
        const focused = document.activeElement;
        const key = focused && parent.contains(focused) && focused.getAttribute("data-key");
        parent.replaceChildren(...shown(children));
        if (key) {
            /** @type {any} */ (parent.querySelector(`[data-key="${key}"]`))?.focus();
        }
    }

    return { h, s, fill };
})();
