/* Reads calls of docs/explorer/arithmetic.js as JSON, with a list of calls on each line,
 * and writes the list of results on a line.
 *
 * A call is {name, arguments, pick}. `pick` lists paths of the wanted members of the
 * result, "a.b", or is null for the whole result. "*" stands for every member of a list.
 * Among the arguments, {"of": name, "at": i} is row i of a table, and {"big": digits} a
 * bigint. A call that throws returns {thrown: message}. */
"use strict";

const fs = require("fs");
const path = require("path");
const readline = require("readline");
const vm = require("vm");

const folder = process.argv[2];
for (const name of ["core.js", "arithmetic.js"]) {
    vm.runInThisContext(fs.readFileSync(path.join(folder, name), "utf8"), name);
}
const arithmetic = vm.runInThisContext("arithmetic");

function argument(x) {
    if (typeof x !== "object" || x === null || Array.isArray(x)) {
        return x;
    }
    return "of" in x ? arithmetic[x.of][x.at] : "big" in x ? BigInt(x.big) : x;
}

function member(x, steps) {
    if (steps.length === 0 || x === null || x === undefined) {
        return x;
    }
    const [first, ...rest] = steps;
    return first === "*" ? x.map((y) => member(y, rest)) : member(x[first], rest);
}

function answer({ name, arguments: given, pick }) {
    try {
        const of = arithmetic[name];
        const result = typeof of === "function" ? of(...given.map(argument)) : of;
        return pick ? pick.map((steps) => member(result, steps.split("."))) : result;
    } catch (error) {
        return { thrown: error.message };
    }
}

/* Writes bigints, -0, infinities and NaN as objects, as JSON has no such numbers. */
function replace(key, x) {
    return typeof x === "bigint" || Object.is(x, -0) || (typeof x === "number" && !isFinite(x))
        ? { number: Object.is(x, -0) ? "-0.0" : String(x).replace("Infinity", "inf") } : x;
}

arithmetic.ready.then(() => {
    readline.createInterface({ input: process.stdin }).on("line", (line) => {
        process.stdout.write(JSON.stringify(JSON.parse(line).map(answer), replace) + "\n");
    });
});
