/* Drawings as wide as their place, whose texts keep their size. */
"use strict";

/** What draws into a place, again whenever its width changes. Widths are in sixteenths of
 * the page's font size, so that drawings grow with the page on wide screens.
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
            // Not at once: what changes the layout in here is reported as an error.
            requestAnimationFrame(paint);
        }
    }).observe(place);
    return (draw) => {
        latest = draw;
        paint();
    };
};
