/* Make controls with their labels: pickers, inputs, buttons, choices. */
"use strict";

explorer.controls = (() => {
    const { h, fill } = explorer.dom;
    let count = 0;
    const newId = () => `control-${++count}`;

    /** Make a picker of one value from a list.
     * @param {string} label
     * @param {readonly {value: string, text: string, group?: string}[]} options
     * @param {(value: string) => void} chosen
     * @returns {{element: HTMLElement, show: (value: string) => void}} */
    function picker(label, options, chosen) {
        const id = newId();
        const groups = [...new Set(options.map((option) => option.group ?? ""))];
        const entries = (/** @type {string} */ group) => options
            .filter((option) => (option.group ?? "") === group)
            .map(({ value, text }) => h("option", { value }, text));
        const select = h("select", { id, onchange: () => chosen(select.value) },
            groups.map((group) => (group ? h("optgroup", { label: group }, entries(group))
                : entries(group))));
        const element = h("div", { class: "control" }, h("label", { for: id }, label), select);
        return { element, show: (value) => (select.value = value) };
    }

    /** Make a picker of an argument's value, by the names that Python and the terminal use.
     * @param {string} label @param {Object<string, string>} meanings  of each value
     * @param {(value: string) => void} chosen */
    const argumentPicker = (label, meanings, chosen) => picker(label, Object.entries(meanings)
        .map(([value, meaning]) => ({ value, text: `${value}: ${meaning}` })), chosen);

    /** Make a picker of a format of numbers.
     * @param {string} label @param {(name: string) => void} chosen
     * @param {(format: Format) => boolean} [wanted]  returns whether to offer a format
     * @param {string} [none]  label of an entry for no format, whose value is "" */
    function formatPicker(label, chosen, wanted = () => true, none = "") {
        const options = arithmetic.formats.filter(wanted).map((format) => ({
            value: format.name,
            text: format.short === format.name ? format.name : `${format.name} (${format.short})`,
            group: format.ours ? "tf32dtype" : "NumPy",
        }));
        const empty = none ? [{ value: "", text: none, group: "" }] : [];
        return picker(label, [...empty, ...options], chosen);
    }

    /** Make the `allowed` of a format's key.
     * @param {(format: Format) => boolean} [wanted] */
    function isFormat(wanted = () => true) {
        return (/** @type {string} */ name) =>
            arithmetic.formats.some((format) => format.name === name && wanted(format));
    }

    /** Return a format's name for its short name or an alias, or another string unchanged.
     * @param {string} name */
    const fullName = (name) => arithmetic.formatNamed(name)?.name ?? name;

    /** Make an input of one line, with a message under it.
     * @param {string} label @param {(text: string) => void} typed @param {string} [hint]
     * @returns {{element: HTMLElement,
     *   show: (text: string, error?: string, wrong?: string) => void}}
     *   `error` is the reason why the string, or its component `wrong`, cannot be used */
    function input(label, typed, hint = "") {
        const id = newId();
        const message = h("p", { id: `${id}-hint`, class: "hint" }, hint);
        const box = h("input", { id, type: "text", spellcheck: "false", autocomplete: "off",
            autocapitalize: "none", "aria-describedby": `${id}-hint`,
            oninput: () => typed(box.value) });
        const element = h("div", { class: "control" }, h("label", { for: id }, label), box, message);
        return {
            element,
            show(text, error = "", wrong = text) {
                if (box.value !== text) {
                    box.value = text;
                }
                const said = error && `${wrong.trim() || "nothing"}: ${error}`;
                box.setAttribute("aria-invalid", String(error !== ""));
                message.classList.toggle("error", error !== "");
                fill(message, said || hint);
            },
        };
    }

    /** @param {string} text @param {() => void} pressed @param {Object<string, any>} [more] */
    const button = (text, pressed, more = {}) =>
        h("button", { type: "button", onclick: pressed, ...more }, text);

    /** Group buttons under one name. @param {string} label @param {any[]} buttons */
    const group = (label, buttons) =>
        h("div", { class: "group", role: "group", "aria-label": label }, buttons);

    return { picker, argumentPicker, formatPicker, isFormat, fullName, input, button, group };
})();
