/* Zoom and move a drawing: wheel, drag, two fingers, keys. */
"use strict";

/** @param {HTMLElement} place
 * @param {{zoom: (factor: number, at: number) => void, pan: (part: number) => void,
 *   pick: (at: number) => void, step: (up: boolean) => void, all: () => void}} to
 *   `at` and `part` are fractions of the width, 0 at the left; factors below 1 zoom in */
explorer.gestures = (place, to) => {
    /** Positions of the fingers, or of the mouse, that are down.
     * @type {Map<number, number>} */
    const down = new Map();
    let moved = false;

    const at = (/** @type {{clientX: number}} */ event) => {
        const box = place.getBoundingClientRect();
        return (event.clientX - box.left) / box.width;
    };
    const span = () => {
        const [a, b] = [...down.values()];
        return Math.max(0.02, Math.abs(a - b));
    };

    place.addEventListener("wheel", (event) => {
        event.preventDefault();
        to.zoom(Math.exp(Math.max(-60, Math.min(60, event.deltaY)) / 250), at(event));
    }, { passive: false });

    place.addEventListener("pointerdown", (event) => {
        if (event.button === 0) {
            place.setPointerCapture(event.pointerId);
            moved = down.size > 0;
            down.set(event.pointerId, at(event));
        }
    });
    place.addEventListener("pointermove", (event) => {
        const before = down.get(event.pointerId);
        if (before === undefined) {
            return;
        }
        const here = at(event);
        if (down.size === 2) {
            const wide = span();
            down.set(event.pointerId, here);
            const [a, b] = [...down.values()];
            to.zoom(wide / span(), (a + b) / 2);
        } else if (moved || Math.abs(here - before) * place.clientWidth > 4) {
            moved = true;
            down.set(event.pointerId, here);
            to.pan(before - here);
        }
    });
    place.addEventListener("pointerup", (event) => {
        if (down.delete(event.pointerId) && !moved) {
            to.pick(at(event));
        }
    });
    place.addEventListener("pointercancel", (event) => down.delete(event.pointerId));

    /** @type {Object<string, () => void>} */
    const keys = {
        "ArrowLeft": () => to.step(false),
        "ArrowRight": () => to.step(true),
        "PageUp": () => to.pan(0.5),
        "PageDown": () => to.pan(-0.5),
        "+": () => to.zoom(0.5, 0.5),
        "=": () => to.zoom(0.5, 0.5),
        "-": () => to.zoom(2, 0.5),
        "Home": () => to.all(),
    };
    place.addEventListener("keydown", (event) => {
        const act = event.ctrlKey || event.metaKey || event.altKey ? undefined : keys[event.key];
        if (act) {
            event.preventDefault();
            act();
        }
    });
};
