"use strict";
// The numbers under a pointer, and along the arrow keys.
for (const plot of document.querySelectorAll(".plot")) {
  const { steps, at, curves } = JSON.parse(plot.dataset.numbers);
  if (!steps.length) continue;
  const chart = plot.querySelector("svg");
  const cursor = plot.appendChild(document.createElement("div"));
  const readout = plot.appendChild(document.createElement("div"));
  cursor.className = "cursor";
  readout.className = "readout";
  readout.setAttribute("role", "status");
  cursor.hidden = readout.hidden = true;
  plot.tabIndex = 0;
  plot.setAttribute("role", "group");
  plot.setAttribute("aria-label", `${chart.querySelector("title").textContent}: the arrow keys go from step to step`);
  let current = -1;

  const hide = () => { cursor.hidden = readout.hidden = true; };
  const show = (index) => {
    current = Math.min(Math.max(index, 0), steps.length - 1);
    const title = document.createElement("b");
    title.textContent = `step ${steps[current]}`;
    const rows = curves.filter((curve) => curve.values[current] !== null).map((curve) => {
      const row = document.createElement("span");
      for (const text of [curve.name, curve.values[current]]) row.appendChild(document.createElement("span")).textContent = text;
      return row;
    });
    readout.replaceChildren(title, ...rows);
    cursor.hidden = readout.hidden = false;
    const box = chart.getBoundingClientRect(), own = plot.getBoundingClientRect();
    const x = box.left - own.left + (box.width * at[current]) / 100;
    cursor.style.cssText = `left: ${x}px; top: ${box.top - own.top}px; height: ${box.height}px`;
    const left = x + 12 + readout.offsetWidth > own.width ? x - 12 - readout.offsetWidth : x + 12;
    readout.style.left = `${Math.max(0, Math.min(left, own.width - readout.offsetWidth))}px`;
  };
  const nearest = (event) => {
    const box = chart.getBoundingClientRect();
    const x = (100 * (event.clientX - box.left)) / box.width;
    let low = 0, high = at.length - 1;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (at[middle] < x) low = middle; else high = middle;
    }
    show(x - at[low] < at[high] - x ? low : high);
  };
  plot.addEventListener("pointermove", nearest);
  plot.addEventListener("pointerdown", nearest);
  plot.addEventListener("pointerleave", hide);
  plot.addEventListener("blur", hide);
  plot.addEventListener("focus", () => { if (plot.matches(":focus-visible")) show(Math.max(current, 0)); });
  plot.addEventListener("keydown", (event) => {
    const far = Math.max(1, Math.round(steps.length / 10));
    const next = {
      ArrowLeft: current - 1, ArrowRight: current + 1, PageUp: current - far, PageDown: current + far, Home: 0, End: steps.length - 1,
    }[event.key];
    if (event.key === "Escape") hide();
    if (next === undefined) return;
    event.preventDefault();
    show(next);
  });
}
