/* The shell: views, their tabs, the address, the theme, errors.
 *
 * A view is a file view_NAME.js, named in index.html after this one, that registers itself:
 *
 *     explorer.shell.register({
 *         name: "codes",                  // in the address: #codes?format=float8_e5m2
 *         title: "Codes",                 // of the tab, and the heading
 *         summary: "All numbers of ...",  // a line under the heading: what the view is for
 *         keys: {                         // the choices, as strings, with initial values
 *             format: {
 *                 initial: "float8_e4m3fn",
 *                 allowed: (name) => ...,      // if left out, any string is allowed
 *             },
 *         },
 *         build(root) {                   // called once, when the view is first shown:
 *             ...                         // put controls and empty elements into root,
 *             return (state) => { ... };  // and return a function that draws a state
 *         },
 *     });
 *
 * Every key is in the address. A key that several views have (format, x) keeps its value
 * when the view changes. A control does not draw: it calls `explorer.shell.choose({format:
 * "tf32"})`, which changes the address, which draws. With `{step: true}`, for typing and
 * dragging, the change makes no entry in the history. `explorer.shell.link("number", {x:
 * "0x7E"})` is the address of another view, for an <a>, and `explorer.shell.say(text)`
 * tells screen readers a result. An error thrown anywhere is shown.
 *
 * Views are built from dom.js (elements), controls.js (pickers, inputs, buttons), bits.js
 * (colored bits), tables.js (tables that sort), and wording.js (values as strings).
 */
"use strict";

explorer.shell = (() => {
    const { h, fill } = explorer.dom;

    /** @typedef {Object} View
     * @property {string} name
     * @property {string} title
     * @property {string} summary
     * @property {Object<string, {initial: string, allowed?: (value: string) => boolean,
     *   full?: (value: string) => string}>} keys
     * @property {(root: HTMLElement) => (state: Object<string, string>) => void} build
     */

    /** @type {View[]} */
    const views = [];
    /** The views that were shown: their elements, and the functions that draw them.
     * @type {Map<string, {root: HTMLElement, draw: (state: any) => void}>} */
    const built = new Map();
    /** @type {{view: View, state: Object<string, string>} | null} */
    let now = null;

    /** @param {string} id @returns {HTMLElement} */
    const place = (id) => /** @type {HTMLElement} */ (document.getElementById(id));

    /** @param {View} view */
    const register = (view) => views.push(view);

    // -- address -------------------------------------------------------------------------

    /** @param {string} name @param {Object<string, string>} [changes] @returns {string} */
    const link = (name, changes = {}) => {
        const view = views.find((known) => known.name === name);
        return view ? explorer.state.write(name, explorer.state.values(view.keys, changes)) : "#";
    };

    /** @param {Object<string, string>} changes @param {{step?: boolean}} [how] */
    const choose = (changes, { step = false } = {}) => {
        if (!now) {
            return;
        }
        const state = { ...now.state, ...changes };
        const hash = explorer.state.write(now.view.name, state);
        if (hash === location.hash) {
            return;
        }
        if (step) {
            history.replaceState(null, "", hash);
        } else {
            history.pushState(null, "", hash);
        }
        follow();
    };

    /** Draw the view and the state that the address names. */
    function follow() {
        const { view: name, given } = explorer.state.read(location.hash);
        const view = views.find((known) => known.name === name) ?? views[0];
        const state = explorer.state.values(view.keys, given);
        const refused = name === view.name ? explorer.state.refused(view.keys, given)
            : name ? [name] : [];
        const moved = now?.view !== view;
        now = { view, state };
        explorer.state.remember(state);
        tell(refused.length ? `This page does not know these parts of the link: ${refused.join(", ")}` : "");
        guarded(() => show(view, state));
        history.replaceState(null, "", explorer.state.write(view.name, state));
        drawTabs();
        if (moved) {
            document.title = `${view.title} · Explorer of numbers`;
        }
    }

    /** @param {View} view @param {Object<string, string>} state */
    function show(view, state) {
        for (const [name, { root }] of built) {
            root.hidden = name !== view.name;
        }
        let seen = built.get(view.name);
        if (!seen) {
            const body = h("div", { class: "body" });
            const root = h("section", { id: `view-${view.name}`, class: "view",
                "aria-labeledby": `title-${view.name}` },
            h("h1", { id: `title-${view.name}` }, view.title),
            h("p", { class: "summary" }, view.summary),
            body);
            place("main").append(root);
            seen = { root, draw: view.build(body) };
            built.set(view.name, seen);
        }
        seen.draw(state);
    }

    function drawTabs() {
        const tabs = place("views");
        const inside = tabs.contains(document.activeElement);
        fill(tabs, views.map((view) => h("a", { href: link(view.name),
            "aria-current": view === now?.view ? "page" : null }, view.title)));
        if (inside) {
            /** @type {HTMLElement | null} */ (tabs.querySelector("[aria-current]"))?.focus();
        }
    }

    // -- messages ------------------------------------------------------------------------

    /** @param {string} text  of an error or a warning; "" removes it */
    function tell(text) {
        fill(place("errors"), text && h("p", { class: "error" }, text));
    }

    /** @param {() => void} work */
    function guarded(work) {
        try {
            work();
        } catch (error) {
            tell(`The view could not be drawn: ${error instanceof Error ? error.message : error}`);
            console.error(error);
        }
    }

    let waiting = 0;
    /** Report a result to screen readers, once it has not changed for 400 ms.
     * @param {string} text */
    const say = (text) => {
        clearTimeout(waiting);
        waiting = setTimeout(() => fill(place("live"), text), 400);
    };

    addEventListener("error", (event) => tell(`Error in the page: ${event.message}`));
    addEventListener("unhandledrejection", (event) =>
        tell(`Error in the page: ${event.reason?.message ?? event.reason}`));

    // -- tools ---------------------------------------------------------------------------

    async function copyLink() {
        const button = place("copy");
        try {
            await navigator.clipboard.writeText(location.href);
            fill(button, "Copied");
            say("Link copied");
        } catch {
            tell(`The browser does not allow copying; the link is ${location.href}`);
        }
        setTimeout(() => fill(button, "Copy link"), 2000);
    }

    const dark = matchMedia("(prefers-color-scheme: dark)");

    /** Return the theme chosen before; "" for the system's theme, also in a browser that
     * stores nothing for a local file. */
    function kept() {
        try {
            return localStorage.getItem("theme") ?? "";
        } catch {
            return "";
        }
    }

    /** @param {string} theme  "light", "dark", or "" */
    function useTheme(theme) {
        document.documentElement.style.colorScheme = theme;
        const isDark = theme ? theme === "dark" : dark.matches;
        fill(place("theme"), isDark ? "Light" : "Dark");
        place("theme").setAttribute("aria-label", `Use ${isDark ? "light" : "dark"} colors`);
    }

    function switchTheme() {
        const isDark = kept() ? kept() === "dark" : dark.matches;
        const theme = isDark === dark.matches ? (isDark ? "light" : "dark") : "";
        try {
            localStorage.setItem("theme", theme);
        } catch {
            // Without storage, the theme lasts only until the page is closed.
        }
        useTheme(theme);
    }

    // -- start ---------------------------------------------------------------------------

    async function start() {
        useTheme(kept());
        dark.addEventListener("change", () => useTheme(kept()));
        place("theme").addEventListener("click", switchTheme);
        place("copy").addEventListener("click", copyLink);
        if (typeof arithmetic === "undefined") {
            throw new Error("core.js or arithmetic.js did not load; put both next to index.html");
        }
        await arithmetic.ready;
        place("loading").remove();
        follow();
        addEventListener("popstate", follow);
    }

    addEventListener("DOMContentLoaded", start);
    return { register, link, choose, say };
})();
