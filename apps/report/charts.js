// All events of a run: on their time line, and as distributions.

function timesOf(run) {
  const times = [];
  for (const event of run.events) {
    if (event.last_ns == null) continue;
    times.push(event.last_ns, event.first_ns ?? event.last_ns, event.median_compute_ns);
  }
  return times.length ? times : [1e3, 1e6];
}

class TimeLine {
  constructor(place, run, choose) {
    this.place = place;
    this.run = run;
    this.choose = choose;
    this.chosen = 0;
    fitted(place, (width) => this.draw(width));
  }

  draw(width) {
    const run = this.run;
    const height = 230;
    const [left, right, top, bottom] = [58, 14, 10, 42];
    const reacted = run.events.filter((event) => event.last_ns != null);
    const low = Math.min(...reacted.map((e) => e.first_ns ?? e.last_ns), Infinity);
    const high = Math.max(...reacted.map((e) => e.last_ns), 1);
    const y = logScale(Number.isFinite(low) ? low / 1.4 : 1e3, Math.max(high * 1.3, 1e3), height - bottom, top);
    const xs = this.places(left + 12, width - right - 12);
    const root = svg("svg", { width, height, class: "plot", tabindex: 0, role: "img", "aria-label": "Time line of events; left and right arrow choose one" });
    for (const tick of y.ticks) {
      root.append(svg("line", { x1: left, x2: width - right, y1: y(tick), y2: y(tick), class: "grid" }));
      root.append(svg("text", { x: left - 8, y: y(tick) + 4, "text-anchor": "end" }, tickTime(tick)));
    }
    root.append(svg("line", { x1: left, x2: width - right, y1: height - bottom + 10, y2: height - bottom + 10, class: "axis" }));
    let lastText = -Infinity;
    run.events.forEach((event, i) => {
      if (xs[i] - lastText < 92 || xs[i] > width - 30) return;
      lastText = xs[i];
      root.append(svg("line", { x1: xs[i], x2: xs[i], y1: height - bottom + 10, y2: height - bottom + 15, class: "axis" }));
      root.append(svg("text", { x: xs[i], y: height - bottom + 30, "text-anchor": "middle" }, time(event.at_ns)));
    });
    this.marks = run.events.map((event, i) => root.appendChild(this.mark(event, i, xs[i], y, height - bottom)));
    root.addEventListener("keydown", (pressed) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[pressed.key];
      if (!step) return;
      pressed.preventDefault();
      this.choose((this.chosen + step + run.events.length) % run.events.length);
    });
    this.place.replaceChildren(root);
    this.show(this.chosen);
  }

  // In the order of time, with gaps that say what they can: from half to four times the mean.
  places(from, to) {
    const at = this.run.events.map((event) => event.at_ns);
    const mean = (at.at(-1) - at[0]) / Math.max(1, at.length - 1) || 1;
    const along = [0];
    for (let i = 1; i < at.length; ++i) along.push(along[i - 1] + Math.min(Math.max(at[i] - at[i - 1], mean / 2), mean * 4));
    const whole = along.at(-1) || 1;
    return along.map((a) => from + (a / whole) * (to - from));
  }

  mark(event, i, x, y, floor) {
    const { color, shape } = KINDS[event.kind];
    const head = event.last_ns == null ? floor + 10 : y(event.last_ns);
    const group = svg("g", { class: "event" },
      svg("line", { x1: x, x2: x, y1: 0, y2: floor + 14, stroke: color, "stroke-width": 16, class: "halo" }),
      event.last_ns == null ? null : svg("line", { x1: x, x2: x, y1: y(event.first_ns ?? event.last_ns), y2: head, stroke: color, "stroke-width": 2.5, "stroke-linecap": "round", opacity: 0.5 }),
      event.first_ns == null ? null : svg("circle", { cx: x, cy: y(event.first_ns), r: 2.6, fill: color }),
      svg("path", { d: shape, transform: `translate(${x} ${head})`, fill: color, stroke: "var(--card)", "stroke-width": 1 }),
      svg("rect", { x: x - 7, width: 14, y: 0, height: floor + 20, class: "hit" }));
    group.addEventListener("click", () => this.choose(i));
    group.addEventListener("pointerenter", () => this.choose(i));
    tooltip(group, () => [
      "#" + (i + 1) + "  " + event.text,
      event.last_ns == null ? "no router had to compute" : "first " + time(event.first_ns) + ", last " + time(event.last_ns),
      plural(event.recomputed, "router") + " computed, " + event.skipped + " could tell that they need not",
    ]);
    return group;
  }

  show(chosen) {
    this.chosen = chosen;
    this.marks?.forEach((mark, i) => mark.classList.toggle("chosen", i === chosen));
  }
}

// First, last and computing on one logarithmic axis: a dot an event, or bars if they are many.
class Distribution {
  constructor(place, run) {
    this.place = place;
    this.run = run;
    this.rows = [
      { name: "computing", color: "var(--soft)", of: (e) => (e.last_ns == null ? null : e.median_compute_ns) },
      { name: "first", color: "var(--up)", of: (e) => e.first_ns },
      { name: "last", color: "var(--cost)", of: (e) => e.last_ns },
    ];
    fitted(place, (width) => this.draw(width));
  }

  draw(width) {
    const [left, right, top, bottom, row] = [10, 10, 4, 26, 66];
    const height = top + bottom + row * this.rows.length;
    const times = timesOf(this.run).filter((t) => t > 0);
    const x = logScale(Math.min(...times) / 1.3, Math.max(...times) * 1.3, left, width - right);
    const root = svg("svg", { width, height, role: "img", "aria-label": "Distribution of reaction times" });
    let lastText = -Infinity;
    for (const tick of x.ticks) {
      root.append(svg("line", { x1: x(tick), x2: x(tick), y1: top, y2: height - bottom, class: "grid" }));
      if (x(tick) - lastText < 58 || x(tick) > width - 20) continue;
      lastText = x(tick);
      root.append(svg("text", { x: x(tick), y: height - 8, "text-anchor": "middle" }, tickTime(tick)));
    }
    this.rows.forEach((kind, i) => root.append(this.row(kind, x, top + row * i, row, width)));
    this.place.replaceChildren(root);
  }

  row({ name, color, of }, x, top, height, width) {
    const floor = top + height - 6;
    const values = this.run.events.map(of).filter((v) => v != null).sort((a, b) => a - b);
    const group = svg("g", {}, svg("line", { x1: 0, x2: width, y1: floor, y2: floor, class: "axis" }));
    const middle = values[(values.length - 1) >> 1];
    const bin = 7;
    const bins = new Map();
    for (const value of values) {
      const key = Math.round(x(value) / bin);
      bins.set(key, [...(bins.get(key) ?? []), value]);
    }
    const most = Math.max(...[...bins.values()].map((b) => b.length), 1);
    const room = height - 26;
    const step = Math.min(bin, room / most);
    for (const [key, members] of bins) {
      if (step > 3.5) {
        members.forEach((_, k) => group.append(svg("circle", { cx: key * bin, cy: floor - step * (k + 0.5), r: Math.min(3, step * 0.45), fill: color, opacity: 0.85 })));
      } else {
        const tall = (room * members.length) / most;
        group.append(svg("rect", { x: key * bin - bin / 2 + 0.5, width: bin - 1, y: floor - tall, height: tall, fill: color, opacity: 0.85 }));
      }
    }
    group.append(svg("text", { x: 0, y: top + 12 }, name + (middle == null ? "" : ", median " + time(middle))));
    if (middle != null) {
      group.append(svg("path", { d: `M${x(middle)} ${floor + 1}l-4 5h8z`, fill: color }));
      tooltip(group, () => [name, "median " + time(middle), "from " + time(values[0]) + " to " + time(values.at(-1))]);
    }
    return group;
  }
}
