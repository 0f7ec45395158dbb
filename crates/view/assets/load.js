"use strict";
// Runs the scripts of the plots after the first paint: until then they are text, which costs the browser nothing.
requestAnimationFrame(() => setTimeout(() => {
  // While uPlot loads, it makes a number format and looks up the time zone, which takes longer than all else. Plots of this
  // page use neither: their texts are made by the page's own script.
  const { NumberFormat, DateTimeFormat } = Intl;
  Intl.NumberFormat = function () { return { format: String }; };
  Intl.DateTimeFormat = function () { return { resolvedOptions: () => ({}) }; };
  for (const late of document.querySelectorAll("script.late")) {
    const script = document.createElement("script");
    script.textContent = late.textContent;
    late.replaceWith(script);
    Object.assign(Intl, { NumberFormat, DateTimeFormat });
  }
}));
