/* Lists of numbers in one line of text: "1, 0x1p-12, 0x3C00". */
"use strict";

explorer.numberList = (() => {
    /** More numbers than that are not seen at a glance. */
    const MOST = 64;

    /** @typedef {Object} NumberList
     * @property {Parsed[]} numbers  none if there is an error
     * @property {string} error  "" if all are numbers
     * @property {string} wrong  what the error is about
     */

    /** @param {string} text  numbers or codes between spaces, commas, semicolons
     * @param {string} format  what codes are of, and numbers are rounded to
     * @returns {NumberList} */
    function read(text, format) {
        const texts = text.split(/[\s,;]+/).filter(Boolean);
        if (texts.length === 0 || texts.length > MOST) {
            return { numbers: [], wrong: texts.length ? `${texts.length} numbers` : "",
                error: `1 to ${MOST} are wanted, with spaces or commas between them` };
        }
        const numbers = texts.map((one) => arithmetic.parse(one, format));
        const at = numbers.findIndex(({ error }) => error !== "");
        return at < 0 ? { numbers, error: "", wrong: "" }
            : { numbers: [], error: numbers[at].error, wrong: `number ${at}, ${texts[at]}` };
    }

    /** @param {readonly string[]} texts */
    const write = (texts) => texts.join(", ");

    /** The same numbers without codes, which are others in another format.
     * @param {NumberList} list @param {string} text  that it was read from */
    const withoutCodes = ({ numbers }, text) => (numbers.some(({ isCode }) => isCode)
        ? write(numbers.map(({ rounded, text: number }) =>
            (rounded ? explorer.wording.exactText(rounded.value) : number)))
        : text);

    /** What each is in the format. @param {NumberList} list */
    const values = ({ numbers }) => numbers.flatMap(({ rounded }) =>
        (rounded ? [rounded.value] : []));

    return { read, write, withoutCodes, values };
})();
