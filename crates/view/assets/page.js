"use strict";
// Zoom and hover for the plots of the page. Without it, or where the browser cannot unpack the data, they stay pictures.
// A plot becomes live when it comes near the screen; until then its picture stands there.
(async () => {
  const packed = document.getElementById("data").textContent;
  if (!("DecompressionStream" in window)) return;
  const text = atob(packed);
  const bytes = new Uint8Array(text.length);
  for (let at = 0; at < bytes.length; at += 1) bytes[at] = text.charCodeAt(at);
  const sets = await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).json();
  const three = (v) => String(Number(Math.abs(v) >= 99.95 ? v.toFixed(0) : Math.abs(v) >= 9.995 ? v.toFixed(1) : v.toFixed(2)));
  const amount = (v) => {
    let at = 0;
    while (Math.abs(v) >= 999.5 && at < 5) { v /= 1024; at += 1; }
    return (three(v)) + " " + ["B", "KiB", "MiB", "GiB", "TiB", "PiB"][at];
  };
  const time = (v) => (v === 0 ? "0 s" : Math.abs(v) < 1e-3 ? (v * 1e6).toFixed(0) + " µs" : Math.abs(v) < 1 ? three(v * 1e3) + " ms" : three(v) + " s");
  const units = { bytes: amount, bytes_per_second: (v) => amount(v) + "/s", share: (v) => three(v * 100) + " %", seconds: time, count: (v) => (Number.isInteger(v) ? String(v) : three(v)) };
  const summed = (deltas, scale) => {
    let sum = 0;
    return deltas.map((d) => (d === null ? null : (sum += d) * scale));
  };
  // Colours are read once for each mode: a reading after a change of the page makes the browser compute its styles again.
  let colors = {};
  const color = (name) => (colors[name] ??= getComputedStyle(document.documentElement).getPropertyValue(name));
  const dashes = { s4: [8, 2], s5: [2, 2], s6: [8, 2, 2, 2], s7: [4, 2], l0: [2, 3], l1: [6, 3], l2: [12, 3] };
  const clock = (set, second) => {
    if (set.start === null) return set.labels[second] ?? "";
    const text = new Date(set.start + second * 1000).toISOString();
    return text.slice(11, 19);
  };
  // A limit far above everything measured would flatten it.
  const top = (plot, high) => {
    const most = (limits) => plot.lines.reduce((most, line, at) => (line.limit === limits ? plot.values[at].reduce((a, b) => (b > a ? b : a), most) : most), 0);
    const measured = most(false);
    return measured > 0 && most(true) > measured * 20 ? measured * 1.1 : high > 0 ? high * 1.05 : 1;
  };
  const charts = [];
  const reset = document.createElement("button");
  const isWhole = ({ x, min, max }) => min === undefined || (min <= x[0] && max >= x[x.length - 1]);
  // Shows a range in all live plots of a set. Plots that become live later start with it.
  const zoom = (set, min, max) => {
    Object.assign(set, { min, max });
    reset.disabled = sets.every(isWhole);
    charts.forEach((one) => {
      const shown = one.chart.scales.x;
      if (one.set === set && (shown.min !== min || shown.max !== max)) one.chart.setScale("x", { min, max });
    });
  };
  const draw = (figure, width, set, plot) => {
    figure.querySelector(".chart")?.remove();
    const holder = document.createElement("div");
    holder.className = "chart";
    const picture = figure.querySelector("svg");
    const show = units[plot.unit];
    const texts = [...figure.querySelectorAll(".legend .most")];
    const still = texts.map((text) => text.dataset.still ?? (text.dataset.still = text.textContent));
    const axis = { stroke: color("--soft"), grid: { stroke: color("--edge"), width: 1 }, ticks: { show: false }, font: "12px system-ui, sans-serif" };
    const options = {
      width,
      // As high as the picture, so that nothing moves when a plot becomes live.
      height: Math.max(180, Math.round(width / 3)),
      legend: { show: false },
      cursor: { sync: { key: set.key }, drag: { x: true, y: false }, focus: { prox: 30 } },
      scales: { x: { time: false, min: set.min, max: set.max }, y: { range: (_, low, high) => [Math.min(0, low), top(plot, high)] } },
      axes: [
        { ...axis, space: 80, size: 30, ...(set.start === null && { incrs: [1, 2, 5, 10, 20, 50] }), values: (_, ticks) => ticks.map((tick) => clock(set, tick)) },
        { ...axis, size: 78, ...(plot.unit.startsWith("bytes") && { incrs: Array.from({ length: 60 }, (_, power) => 2 ** power) }), values: (_, ticks) => ticks.map(show) },
      ],
      series: [{}].concat(plot.lines.map((line) => ({
        label: line.name,
        stroke: color(line.limit ? "--limit" : "--" + line.class),
        width: line.limit ? 1.2 : 1.6,
        dash: dashes[line.class],
        points: { show: false },
        spanGaps: line.gaps,
      }))),
      hooks: {
        setCursor: [(chart) => {
          const at = chart.cursor.idx;
          plot.lines.forEach((line, number) => {
            const value = at === null || at === undefined ? null : chart.data[number + 1][at];
            texts[number].textContent = at === null || at === undefined ? still[number] : ": " + (value === null || value === undefined ? "not read" : show(value)) + " at " + clock(set, chart.data[0][at]);
          });
        }],
        setScale: [(chart, key) => {
          const { min, max } = chart.scales.x;
          if (key === "x") chart.root.querySelector("canvas").setAttribute("aria-label", picture.getAttribute("aria-label") + "; shown from " + clock(set, min) + " to " + clock(set, max));
          if (key !== "x" || (set.min === min && set.max === max)) return;
          // The first plot of a set finds the whole range.
          if (set.min === undefined) return void Object.assign(set, { min, max });
          zoom(set, min, max);
          if (set !== sets[0]) return;
          history.replaceState(null, "", isWhole(set) ? "#timeline" : "#t=" + min.toFixed(1) + "-" + max.toFixed(1));
        }],
        draw: [(chart) => {
          const { ctx, bbox } = chart;
          ctx.save();
          for (const [second, , isFound] of set.marks) {
            ctx.strokeStyle = color(isFound ? "--mark" : "--soft");
            ctx.globalAlpha = isFound ? 0.8 : 0.6;
            ctx.setLineDash((isFound ? [5, 3] : [2, 4]).map((length) => length * devicePixelRatio));
            const left = chart.valToPos(second, "x", true);
            if (left < bbox.left || left > bbox.left + bbox.width) continue;
            ctx.beginPath();
            ctx.moveTo(left, bbox.top);
            ctx.lineTo(left, bbox.top + bbox.height);
            ctx.stroke();
          }
          ctx.restore();
        }],
      },
    };
    picture.after(holder);
    const chart = new uPlot(options, [set.x].concat(plot.values), holder);
    chart.root.querySelector("canvas").setAttribute("role", "img");
    figure.classList.add("live");
    return chart;
  };
  const tools = document.createElement("p");
  tools.className = "tools";
  reset.type = "button";
  reset.textContent = "Whole recording";
  reset.disabled = true;
  tools.append(reset, "Drag across a plot to zoom, point to read values.");
  document.querySelector(".plots")?.before(tools);
  const figures = [...document.querySelectorAll("figure.plot")];
  const place = (figure) => figure.dataset.plot.split(".").map(Number);
  const live = (figure, width) => {
    const [number, at] = place(figure);
    const set = sets[number];
    const plot = set.plots[at];
    set.key ??= "set" + number;
    set.x ??= summed(set.at, set.step);
    plot.values ??= plot.lines.map((line) => summed(line.values, line.step));
    charts.push({ set, figure, chart: draw(figure, width, set, plot) });
  };
  // Widths come with the entries: asking for them between two plots would lay the page out again.
  const near = new IntersectionObserver((entries) => entries.forEach(({ isIntersecting, target, boundingClientRect }) => {
    if (!isIntersecting) return;
    near.unobserve(target);
    // What the browser has not laid out has no width; the event below comes when it has.
    if (boundingClientRect.width > 0) live(target, Math.floor(boundingClientRect.width));
  }), { rootMargin: "300px 0px" });
  addEventListener("contentvisibilityautostatechange", ({ target }) => target.querySelectorAll("figure.plot:not(.live)").forEach((figure) => near.observe(figure)), true);
  const follow = () => {
    const asked = /^#t=([\d.]+)(?:-([\d.]+))?$/.exec(decodeURIComponent(location.hash));
    const set = sets[0];
    if (!asked || !figures.length) return;
    const x = (set.x ??= summed(set.at, set.step));
    const [first, last] = [x[0], x[x.length - 1]];
    const from = Number(asked[1]);
    const around = Math.max(15, (last - first) / 60);
    const [min, max] = asked[2] ? [from, Number(asked[2])] : [Math.max(first, from - around), Math.min(last, from + around)];
    if (!(max > min)) return;
    zoom(set, min, max);
    figures[0].scrollIntoView({ block: "nearest" });
  };
  reset.addEventListener("click", () => {
    sets.filter((set) => !isWhole(set)).forEach((set) => zoom(set, set.x[0], set.x[set.x.length - 1]));
    history.replaceState(null, "", "#timeline");
  });
  follow();
  figures.forEach((figure) => near.observe(figure));
  addEventListener("hashchange", follow);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    colors = {};
    charts.splice(0).forEach(({ figure, chart }) => {
      chart.destroy();
      live(figure, chart.width);
    });
  });
  let waiting = 0;
  addEventListener("resize", () => {
    cancelAnimationFrame(waiting);
    waiting = requestAnimationFrame(() => charts.forEach(({ chart, figure }) => {
      if (figure.clientWidth !== chart.width && figure.clientWidth > 0) chart.setSize({ width: figure.clientWidth, height: chart.height });
    }));
  });
})();
