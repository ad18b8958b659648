/* Lists of numbers in one string: "1, 0x1p-12, 0x3C00". */
"use strict";

explorer.numberList = (() => {
    /** The most numbers of a list, because more cannot be read at a glance. */
    const MOST = 64;

    /** @typedef {Object} NumberList
     * @property {Parsed[]} numbers  empty if there is an error
     * @property {string} error  "" if all entries are numbers
     * @property {string} wrong  the entry that the error is about
     */

    /** @param {string} text  numbers or codes between spaces, commas, semicolons
     * @param {string} format  that codes are of, and that numbers are rounded to
     * @returns {NumberList} */
    function read(text, format) {
        const texts = text.split(/[\s,;]+/).filter(Boolean);
        if (texts.length === 0 || texts.length > MOST) {
            return { numbers: [], wrong: texts.length ? `${texts.length} numbers` : "",
                error: `enter 1 to ${MOST}, with spaces or commas between them` };
        }
        const numbers = texts.map((one) => arithmetic.parse(one, format));
        const at = numbers.findIndex(({ error }) => error !== "");
        return at < 0 ? { numbers, error: "", wrong: "" }
            : { numbers: [], error: numbers[at].error, wrong: `number ${at}, ${texts[at]}` };
    }

    /** @param {readonly string[]} texts */
    const write = (texts) => texts.join(", ");

    /** Write numbers instead of codes, which have other values in another format.
     * @param {NumberList} list @param {string} text  that the list was read from */
    const withoutCodes = ({ numbers }, text) => (numbers.some(({ isCode }) => isCode)
        ? write(numbers.map(({ rounded, text: number }) =>
            (rounded ? explorer.wording.exactText(rounded.value) : number)))
        : text);

    /** Return the numbers, rounded to the format. @param {NumberList} list */
    const values = ({ numbers }) => numbers.flatMap(({ rounded }) =>
        (rounded ? [rounded.value] : []));

    return { read, write, withoutCodes, values };
})();
