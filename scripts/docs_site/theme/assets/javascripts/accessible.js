/* What the theme's script adds to a page, made usable by keyboard and by those who hear the page. */
"use strict";
(() => {
  const SCROLLED = {
    ".md-typeset__scrollwrap": "Table",
    ".formula": "Formula",
    ".notebook-output": "Output",
    ".notebook-output .longtail": "Output",
  };

  /* What is wider than its place, as a table on a phone, takes the focus, so that arrow keys scroll it. */
  function mark(element, name) {
    if (element.scrollWidth > element.clientWidth) {
      element.tabIndex = 0;
      element.setAttribute("role", "group");
      element.setAttribute("aria-label", `${name}, scrolled sideways`);
    } else {
      for (const attribute of ["tabindex", "role", "aria-label"]) element.removeAttribute(attribute);
    }
  }

  /* `document$` is the theme's: when it tells of a page, tables are in what scrolls them and code has its button. */
  document$.subscribe(() => {
    for (const frame of document.querySelectorAll(".md-code__nav")) frame.setAttribute("role", "none"); // one button
    const names = new Map();
    const watcher = new ResizeObserver((seen) => {
      for (const one of seen) mark(one.target, names.get(one.target));
    });
    for (const [selector, name] of Object.entries(SCROLLED)) {
      for (const element of document.querySelectorAll(selector)) {
        names.set(element, name);
        watcher.observe(element);
      }
    }
  });
})();
