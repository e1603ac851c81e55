// A chart with two axes, for series of several kinds.

const WIDE = 30; // largest to smallest, where an even axis hides too much
const COLORS = ["var(--cost)", "var(--down)", "var(--up)", "#8a63d2", "#c98a1b", "var(--soft)"];

function isWide(values) {
  return Math.min(...values) > 0 && Math.max(...values) / Math.min(...values) >= WIDE;
}

function amount(value) {
  return new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 }).format(value);
}

// Maps [0, high] to [from, to] evenly.
function evenScale(high, from, to) {
  const scale = (value) => from + (value / high) * (to - from);
  const power = 10 ** Math.floor(Math.log10(high / 2));
  const step = power * [1, 2, 5, 10].find((some) => high / (some * power) <= 5);
  scale.ticks = Array.from({ length: Math.floor(high / step) + 1 }, (_, i) => i * step);
  return scale;
}

// One mark for each point of a series, each beside its points; `wide` is a bar's width.
const MARKS = {
  bars: ({ color }, { at, top, floor, wide }) =>
    svg("rect", { x: at - wide / 2, width: wide, y: top, height: floor - top, fill: color, opacity: 0.85 }),
  dots: ({ color }, { at, top, low, high }) => svg("g", {},
    svg("line", { x1: at, x2: at, y1: low, y2: high, stroke: color, "stroke-width": 1.5 }),
    svg("circle", { cx: at, cy: top, r: 3.5, fill: color })),
  rings: ({ color }, { at, top }) => svg("circle", { cx: at, cy: top, r: 4.5, fill: "transparent", stroke: color, "stroke-width": 2 }),
};

// `series`: { name, color, mark, line, points: [{ x, y, low, high, tip }] }, with marks of MARKS, and a line between
// them, or "dashed". `ticks`: where the horizontal axis has a number. `least`: the vertical axis is logarithmic, and
// begins there, so that a bar of more can be seen.
function chart(place, { what, along, ticks, least, series }) {
  const points = series.flatMap((one) => one.points);
  const ys = points.flatMap((p) => [p.y, p.low ?? p.y, p.high ?? p.y]).filter((y) => y > 0);
  const most = Math.max(...ys, least ?? 0) * 1.1 || 1;
  const low = least ?? Math.min(...ys) / 1.3;
  const xs = points.map((p) => p.x);
  const spread = series[0].mark !== "bars" && isWide(xs) ? Math.log : (value) => value;
  const [first, last] = [spread(Math.min(...xs)), spread(Math.max(...xs))];
  fitted(place, (width) => {
    const [height, left, right, top, bottom] = [300, 62, 20, 28, 46];
    const floor = height - bottom;
    const y = least || isWide(ys) ? logScale(low, most, floor, top, low) : evenScale(most, floor, top);
    const wide = Math.min(60, (0.8 * (width - left - right)) / Math.max(ticks.length, series[0].points.length));
    const [from, to] = [left + wide / 2 + 6, width - right - wide / 2];
    const x = (value) => (last > first ? from + ((spread(value) - first) / (last - first)) * (to - from) : (from + to) / 2);
    const root = svg("svg", { width, height, role: "img", "aria-label": what }, svg("text", { x: 0, y: 14 }, what));
    for (const tick of y.ticks) {
      root.append(svg("line", { x1: left, x2: width - right, y1: y(tick), y2: y(tick), class: "grid" }),
        svg("text", { x: left - 8, y: y(tick) + 4, "text-anchor": "end" }, amount(tick)));
    }
    root.append(svg("line", { x1: left, x2: width - right, y1: floor, y2: floor, class: "axis" }));
    let lastText = -Infinity;
    for (const tick of ticks) {
      if (x(tick) - lastText < 34) continue;
      lastText = x(tick);
      root.append(svg("text", { x: x(tick), y: floor + 18, "text-anchor": "middle" }, amount(tick)));
    }
    root.append(svg("text", { x: (left + width - right) / 2, y: height - 6, "text-anchor": "middle" }, along));
    for (const one of series) {
      const path = one.points.map((p, i) => (i ? "L" : "M") + x(p.x) + " " + y(p.y)).join("");
      if (one.line) root.append(svg("path", { d: path, fill: "none", stroke: one.color, "stroke-width": 2, "stroke-dasharray": one.line === "dashed" ? "5 4" : "none" }));
      for (const p of one.points) {
        const mark = MARKS[one.mark](one, { at: x(p.x), top: y(p.y), low: y(p.low ?? p.y), high: y(p.high ?? p.y), floor, wide });
        tooltip(mark, () => p.tip);
        root.append(mark);
      }
    }
    place.replaceChildren(root);
  });
}

function legend(series) {
  return html("div", { class: "legend" }, ...series.map(({ name, color }) =>
    html("span", {}, html("i", { class: "swatch", style: "background:" + color }), name)));
}
