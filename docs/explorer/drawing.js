/* Drawings that are as wide as their container, and whose text keeps its size. */
"use strict";

/** Return a function that draws into a container, and again whenever its width changes.
 * Widths are in sixteenths of the page's font size, so that drawings grow with the page.
 * @param {HTMLElement} place
 * @returns {(draw: (width: number) => Element) => void} */
explorer.drawing = (place) => {
    /** @type {((width: number) => Element) | null} */
    let latest = null;
    let width = 0;
    const paint = () => latest && width > 0 && explorer.dom.fill(place, latest(width));
    new ResizeObserver(([entry]) => {
        const unit = parseFloat(getComputedStyle(document.documentElement).fontSize) / 16;
        const now = Math.floor(entry.contentRect.width / unit);
        if (now !== width) {
            width = now;
            // Draw later: browsers report a change of the layout in here as an error.
            requestAnimationFrame(paint);
        }
    }).observe(place);
    return (draw) => {
        latest = draw;
        paint();
    };
};
