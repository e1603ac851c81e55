// The network, and what the chosen event did to it.

function lostLinks(run, until) {
  const lost = new Set();
  for (let i = 0; i <= until; ++i) {
    const event = run.events[i];
    if (event.one_direction) continue;
    if (event.kind === "down") lost.add(event.link);
    if (event.kind === "up") lost.delete(event.link);
  }
  return lost;
}

// The range of times over which an event's routers are coloured.
function reactionRange(event) {
  const times = event.routers.installed_ns.filter((t) => t != null);
  return times.length ? [Math.min(...times), Math.max(...times)] : null;
}

function colourOf(event, router) {
  const installed = event.routers.installed_ns[router];
  if (installed == null) return null;
  const [low, high] = reactionRange(event);
  if (high <= low) return ramp(0);
  return ramp((Math.log(installed + 1) - Math.log(low + 1)) / (Math.log(high + 1) - Math.log(low + 1)));
}

function reactionLines(run, event, router) {
  const { installed_ns: installed, compute_ns: compute, computations } = event.routers;
  const label = run.routers[router].label;
  if (installed[router] == null) return [label, "could tell that it need not compute"];
  const again = computations[router] > 1 ? ", " + computations[router] + " computations" : "";
  return [label, "new routes after " + time(installed[router]), "of it computing " + time(compute[router]) + again];
}

class NetworkMap {
  constructor(place, run) {
    this.place = place;
    this.run = run;
    this.degree = run.routers.map(() => 0);
    for (const { a, b } of run.links) { ++this.degree[a]; ++this.degree[b]; }
    this.chosen = 0;
    fitted(place, (width) => this.draw(width));
  }

  draw(width) {
    const run = this.run;
    const count = run.routers.length;
    const margin = width < 500 ? 22 : 40;
    const height = Math.round((width - 2 * margin) * run.aspect) + 2 * margin;
    const size = width - 2 * margin;
    this.at = run.routers.map(({ x, y }) => ({ x: margin + x * size, y: margin + y * size }));
    this.radius = (count > 120 ? 3.2 : count > 60 ? 4.2 : count > 25 ? 5.4 : 7) * (width < 500 ? 0.8 : 1);
    const root = svg("svg", { width, height, role: "img", "aria-label": "Map of " + run.name });
    this.links = run.links.map((link) => {
      const [a, b] = [this.at[link.a], this.at[link.b]];
      return root.appendChild(svg("line", { x1: a.x, y1: a.y, x2: b.x, y2: b.y, class: "link" }));
    });
    root.append(...this.labels(width, height));
    this.routers = this.at.map(({ x, y }, router) => {
      const dot = svg("circle", { cx: x, cy: y, r: this.radius, class: "router" });
      tooltip(dot, () => (run.events.length ? reactionLines(run, run.events[this.chosen], router) : [run.routers[router].label]));
      return root.appendChild(dot);
    });
    this.place.replaceChildren(root);
    this.show(this.chosen);
  }

  // Names where they cover neither each other nor a router, and as few links as can be; those of the
  // best connected routers first.
  labels(width, height) {
    const taken = this.at.map(({ x, y }) => [x - this.radius, y - this.radius, x + this.radius, y + this.radius]);
    const order = this.at.map((_, i) => i).sort((i, j) => this.degree[j] - this.degree[i]);
    const labels = [];
    for (const router of order) {
      const text = this.run.routers[router].label;
      const free = this.spots(this.at[router], text.length * 6.6).filter(({ box }) =>
        box[0] > 0 && box[2] < width && box[1] > 0 && box[3] < height &&
        !taken.some((t) => t[0] < box[2] && t[2] > box[0] && t[1] < box[3] && t[3] > box[1]));
      for (const spot of free) spot.crossed = this.run.links.filter((link) => this.crosses(link, spot.box)).length;
      const best = free.sort((a, b) => a.crossed - b.crossed)[0];
      if (!best) continue;
      taken.push(best.box);
      labels.push(svg("text", { x: best.x, y: best.y, "text-anchor": best.anchor, class: "name" }, text));
    }
    return labels;
  }

  spots({ x, y }, wide) {
    const gap = this.radius + 4;
    const spot = (lx, ly, anchor) => {
      const left = anchor === "start" ? lx : anchor === "end" ? lx - wide : lx - wide / 2;
      return { x: lx, y: ly, anchor, box: [left - 2, ly - 11, left + wide + 2, ly + 3] };
    };
    return [spot(x + gap, y + 4, "start"), spot(x - gap, y + 4, "end"), spot(x, y - gap - 1, "middle"), spot(x, y + gap + 9, "middle"),
      spot(x + gap, y - gap + 2, "start"), spot(x + gap, y + gap + 4, "start"), spot(x - gap, y - gap + 2, "end"), spot(x - gap, y + gap + 4, "end")];
  }

  crosses(link, [left, top, right, bottom]) {
    const [a, b] = [this.at[link.a], this.at[link.b]];
    for (let k = 0; k <= 24; ++k) {
      const x = a.x + ((b.x - a.x) * k) / 24;
      const y = a.y + ((b.y - a.y) * k) / 24;
      if (x > left && x < right && y > top && y < bottom) return true;
    }
    return false;
  }

  show(chosen) {
    this.chosen = chosen;
    const event = this.run.events[chosen];
    if (!this.routers) return;
    const lost = event ? lostLinks(this.run, chosen) : new Set();
    this.links.forEach((line, i) => {
      const changed = event && event.link === i;
      line.setAttribute("class", "link" + (lost.has(i) ? " lost" : "") + (changed ? " changed" : ""));
      line.style.stroke = changed ? KINDS[event.kind].color : "";
    });
    this.routers.forEach((dot, router) => {
      const colour = event ? colourOf(event, router) : null;
      dot.style.fill = colour ?? "var(--node)";
      dot.style.stroke = colour ? "var(--card)" : "var(--line)";
    });
  }
}

// One line a router, in the order in which they installed: an S-curve with the computing on it.
class Reactions {
  constructor(place, run) {
    this.place = place;
    this.run = run;
    this.chosen = 0;
    fitted(place, (width) => { this.width = width; this.show(this.chosen); });
  }

  show(chosen) {
    this.chosen = chosen;
    const event = this.run.events[chosen];
    if (!this.width || !event) return;
    const { installed_ns: installed, compute_ns: compute } = event.routers;
    const order = installed.map((_, r) => r).filter((r) => installed[r] != null).sort((a, b) => installed[a] - installed[b]);
    const width = this.width;
    const height = 250;
    const [left, right, top, bottom] = [4, 14, 6, 24];
    const high = Math.max(...order.map((r) => installed[r]), 1);
    const x = (ns) => left + (ns / high) * (width - left - right);
    const root = svg("svg", { width, height, role: "img", "aria-label": "When each router had installed its routes" });
    if (order.length === 0) {
      root.append(svg("text", { x: width / 2, y: height / 2, "text-anchor": "middle" }, "No router had to compute."));
      return this.place.replaceChildren(root);
    }
    for (const share of [0, 0.5, 1]) {
      root.append(svg("line", { x1: x(share * high), x2: x(share * high), y1: top, y2: height - bottom, class: "grid" }));
      root.append(svg("text", { x: x(share * high), y: height - 6, "text-anchor": share === 0 ? "start" : share === 1 ? "end" : "middle" }, share === 0 ? "0" : time(share * high)));
    }
    const step = Math.min(16, (height - top - bottom - 6) / order.length);
    order.forEach((router, place) => {
      const y = top + 6 + step * (place + 0.5);
      const end = x(installed[router]);
      const begin = x(Math.max(0, installed[router] - compute[router]));
      const colour = colourOf(event, router);
      const line = svg("g", {},
        svg("line", { x1: left, x2: begin, y1: y, y2: y, stroke: "var(--faint)", "stroke-width": Math.min(2, step * 0.6) }),
        svg("line", { x1: begin, x2: Math.max(end, begin + 1), y1: y, y2: y, stroke: colour, "stroke-width": Math.min(6, step * 0.7), opacity: 0.55 }),
        svg("circle", { cx: end, cy: y, r: Math.min(4.5, Math.max(2, step * 0.42)), fill: colour }),
        svg("rect", { x: 0, width, y: y - step / 2, height: step, fill: "transparent" }));
      tooltip(line, () => reactionLines(this.run, event, router));
      root.append(line);
    });
    this.place.replaceChildren(root);
  }
}
