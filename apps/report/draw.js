// Small helpers: elements, numbers as people read them, logarithmic scales, the tooltip.

const SVG = "http://www.w3.org/2000/svg";

function svg(name, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children.filter((child) => child != null));
  return element;
}

function html(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children.filter((child) => child != null));
  return element;
}

// The parts of which each page consists.

function pageHead(title, ...lead) {
  const bird = svg("svg", { viewBox: "0 0 34 22", "aria-hidden": "true" },
    svg("path", { d: "M1 12C8 2 13 3 17 9 21 3 26 2 33 12 26 7 22 8 17 15 12 8 8 7 1 12Z", fill: "var(--accent)" }));
  document.getElementById("top").append(html("div", { class: "brand" }, bird, document.title),
    html("h1", {}, ...[title].flat()), html("p", { class: "lead" }, ...lead));
}

function pageSection(title, facts, ...parts) {
  const root = html("section", { class: "run" }, html("h2", {}, title), html("p", { class: "facts" }, ...[facts].flat()), ...parts);
  document.getElementById("sections").append(root);
  return root;
}

// The second column has text, the others numbers.
function table(columns, rows) {
  const row = (kind, cells) => html("tr", {}, ...cells.map((cell) => html(kind, {}, String(cell))));
  return html("div", { class: "scroll" }, html("table", {}, row("th", columns), ...rows.map((cells) => row("td", cells))));
}

function time(ns) {
  if (ns == null) return "–";
  const digits = (value) => (value < 10 ? value.toFixed(2) : value < 100 ? value.toFixed(1) : value.toFixed(0));
  if (ns < 1e3) return ns.toFixed(0) + " ns";
  if (ns < 1e6) return digits(ns / 1e3) + " µs";
  if (ns < 1e9) return digits(ns / 1e6) + " ms";
  return digits(ns / 1e9) + " s";
}

function plural(count, noun) {
  return count.toLocaleString("en") + " " + noun + (count === 1 ? "" : "s");
}

function percent(part, whole) {
  return whole === 0 ? "–" : Math.round((100 * part) / whole) + " %";
}

// Maps [low, high] to [from, to], evenly by their logarithm; less than `least` is shown as that.
function logScale(low, high, from, to, least = 1) {
  const log = (value) => Math.log10(Math.max(value, least));
  const a = log(low);
  const b = Math.max(log(high), a + 0.3);
  const scale = (value) => from + ((log(value) - a) / (b - a)) * (to - from);
  scale.ticks = [];
  const steps = b - a > 2.2 ? [1] : b - a > 1.1 ? [1, 3] : [1, 2, 5];
  for (let power = Math.floor(a); power <= b; ++power) {
    for (const step of steps) {
      const tick = step * 10 ** power;
      if (Math.log10(tick) >= a - 1e-9 && Math.log10(tick) <= b + 1e-9) scale.ticks.push(tick);
    }
  }
  return scale;
}

function tickTime(ns) {
  return time(ns).replace(/\.0+(?= )/, "");
}

// From fast to slow, legible on light and on dark.
const RAMP = [[24, 180, 160], [64, 140, 225], [135, 95, 235], [222, 62, 148]];

function ramp(share) {
  const at = Math.min(Math.max(share, 0), 1) * (RAMP.length - 1);
  const i = Math.min(Math.floor(at), RAMP.length - 2);
  return "rgb(" + RAMP[i].map((c, k) => Math.round(c + (RAMP[i + 1][k] - c) * (at - i))).join(" ") + ")";
}
const RAMP_CSS = "linear-gradient(90deg," + [0, 0.33, 0.66, 1].map(ramp).join(",") + ")";

const KINDS = {
  cost: { color: "var(--cost)", text: "cost changed", shape: "M0-5 5 0 0 5-5 0Z" },
  down: { color: "var(--down)", text: "link lost", shape: "M-5-4H5L0 5Z" },
  up: { color: "var(--up)", text: "link returned", shape: "M-5 4H5L0-5Z" },
};

const tip = document.getElementById("tip");
function tooltip(element, lines) {
  const place = (x, y) => {
    const box = tip.getBoundingClientRect();
    tip.style.left = Math.max(6, Math.min(x + 14, innerWidth - box.width - 6)) + "px";
    tip.style.top = (y + 18 + box.height > innerHeight ? y - box.height - 12 : y + 18) + "px";
  };
  element.addEventListener("pointerenter", (event) => {
    const [head, ...rest] = lines();
    tip.replaceChildren(html("b", {}, head), ...rest.flatMap((line) => [html("br"), html("span", {}, line)]));
    tip.hidden = false;
    place(event.clientX, event.clientY);
  });
  element.addEventListener("pointermove", (event) => place(event.clientX, event.clientY));
  element.addEventListener("pointerleave", () => (tip.hidden = true));
}

// Draws again whenever the place's width changes.
function fitted(place, draw) {
  let last = 0;
  const redraw = () => {
    const width = Math.floor(place.clientWidth);
    if (width > 0 && width !== last) draw((last = width));
  };
  new ResizeObserver(redraw).observe(place);
  redraw();
}
