// Puts the page of `dunlin routing` together.

function showRouting({ runs }) {
  routingHead(runs);
  runs.forEach(runSection);
  document.querySelector("main").after(html("footer", {}, html("p", {},
    "Times run from the write of a change. ", html("b", {}, "First"), " is the first router away from the changed link that had installed new routes, ",
    html("b", {}, "last"), " the last router of all; routers that could tell that the change leaves their shortest paths alone did nothing.")));
}

function routingHead(runs) {
  const sum = (of) => runs.reduce((total, run) => total + of(run), 0);
  const agrees = runs.every((run) => run.check.agrees);
  const routers = sum((run) => run.routers.length);
  const events = sum((run) => run.events.length);
  const skipped = sum((run) => run.summary.skipped);
  const chances = skipped + sum((run) => run.summary.recomputed);
  const networks = runs.length === 1 ? runs[0].name : plural(runs.length, "network");
  const where = [...new Set(runs.map((run) => (run.fabric === "sim" ? "simulated on " + run.profile : "each router a process" + (run.hosts === 1 ? " of one host" : " of one of " + run.hosts + " hosts"))))].join("; ");
  pageHead([agrees ? `All ${plural(routers, "router")} of ${networks} ` : `Routers of ${networks} `,
    html("span", { class: agrees ? "good" : "bad" }, agrees ? "agree" : "disagree"), " with the independent computation."],
    `${plural(events, "link event")}, ${where}. ` +
    (chances ? `In ${percent(skipped, chances)} of all cases a router could tell from the shared table that it need not compute its paths again.` : ""));
  if (runs.length > 1) {
    document.getElementById("top").append(html("nav", {}, ...runs.map((run, i) =>
      html("a", { href: "#run" + i }, run.name, html("small", {}, String(run.routers.length))))));
  }
}

function figures(run) {
  const { summary } = run;
  const figure = (value, text) => html("div", {}, html("b", {}, value), html("span", {}, text));
  return html("div", { class: "figures" },
    figure(time(summary.median_last_ns), "until the last router had new routes (median)"),
    figure(time(summary.median_first_ns), "until the first router away from the link had (median)"),
    figure(time(summary.median_compute_ns), "of it computing (median)"),
    figure(percent(summary.skipped, summary.skipped + summary.recomputed), "of routers needed no computation"));
}

function eventHead(run, index) {
  const event = run.events[index];
  const dot = html("i", { style: "background:" + KINDS[event.kind].color });
  const then = event.last_ns == null
    ? "No router had to compute."
    : `First after ${time(event.first_ns)}, last after ${time(event.last_ns)}, computing ${time(event.last_compute_ns)} of it. ` +
      `${plural(event.recomputed, "router")} computed, ${event.skipped} could tell that they need not.`;
  return html("div", { class: "event-head" },
    html("h3", {}, `Event ${index + 1} of ${run.events.length}: ${KINDS[event.kind].text}`),
    html("div", { class: "what" }, dot, event.text), html("div", { class: "then" }, then));
}

function kindLegend() {
  return html("div", { class: "legend" }, ...Object.values(KINDS).map(({ color, text, shape }) =>
    html("span", {}, svgInline(shape, color), text)), html("span", {}, "the small dot is the first router, the sign the last"));
}

function svgInline(shape, color) {
  const icon = svg("svg", { width: 12, height: 12, viewBox: "-6 -6 12 12", style: "display:inline" }, svg("path", { d: shape, fill: color }));
  return icon;
}

function mapLegend() {
  const hollow = svg("svg", { width: 12, height: 12, viewBox: "-6 -6 12 12", style: "display:inline" },
    svg("circle", { r: 4.5, fill: "var(--node)", stroke: "var(--line)", "stroke-width": 2 }));
  return html("div", { class: "legend" },
    html("span", {}, "first to install", html("i", { class: "ramp", style: "background:" + RAMP_CSS }), "last"),
    html("span", {}, hollow, "could tell that it need not"));
}

function eventTable(run) {
  const columns = ["#", "event", "at", "first", "last", "computing", "computed", "need not"];
  const cells = (event, i) => [i + 1, event.text, time(event.at_ns), time(event.first_ns), time(event.last_ns),
    event.last_ns == null ? "–" : time(event.last_compute_ns), event.recomputed, event.skipped];
  const details = html("details", {}, html("summary", {}, "All events as a table"));
  details.addEventListener("toggle", () => details.append(table(columns, run.events.map(cells))), { once: true });
  return details;
}

function verdict(run) {
  const { agrees, compared, unreachable, wrong, differences } = run.check;
  const cut = unreachable ? `, ${unreachable.toLocaleString("en")} of them to routers that are cut off` : "";
  if (agrees) return html("span", { class: "verdict good" }, `✓ ${plural(compared, "route")} as Boost.Graph has them${cut}`);
  return html("div", {}, html("span", { class: "verdict bad" }, `✗ ${wrong} of ${plural(compared, "route")} differ`),
    html("ul", { class: "wrong" }, ...differences.map((d) => html("li", {}, d))));
}

function runSection(run, index) {
  const place = (name) => html("div", { class: name });
  const [mapPlace, reactionPlace, linePlace, spreadPlace] = ["map", "reactions", "line", "spread"].map(place);
  const where = run.fabric === "sim" ? "simulated: " + run.profile : "on " + run.network;
  const root = pageSection(run.name,
    [`${plural(run.routers.length, "router")} · ${plural(run.links.length, "link")} · cost: ${run.cost} · ${where} · `, verdict(run)]);
  root.id = "run" + index;
  if (run.events.length === 0) {
    root.append(mapPlace, html("p", { class: "facts" }, "No events were played."));
    new NetworkMap(mapPlace, run);
    return;
  }
  const headPlace = html("div");
  const play = html("button", { type: "button" }, "Play");
  root.append(figures(run),
    html("div", { class: "stage" }, html("div", {}, mapPlace, mapLegend()),
      html("div", { class: "panel" }, headPlace, html("h3", {}, "When each router had its new routes; the bar is its computing"), reactionPlace)),
    html("div", { class: "two" },
      html("div", { class: "chart" }, html("div", { class: "bar" }, html("h3", {}, "Events over time: from the first router to the last"), play), linePlace, kindLegend()),
      html("div", { class: "chart" }, html("h3", {}, "Distribution over the events"), spreadPlace)),
    eventTable(run));

  const choose = (chosen) => {
    headPlace.replaceChildren(eventHead(run, chosen));
    for (const view of views) view.show(chosen);
  };
  const views = [];
  views.push(new NetworkMap(mapPlace, run), new Reactions(reactionPlace, run), new TimeLine(linePlace, run, choose));
  new Distribution(spreadPlace, run);
  const slowest = run.events.reduce((best, event, i) => ((event.recomputed ?? 0) > run.events[best].recomputed ? i : best), 0);
  choose(slowest);

  let playing = null;
  play.addEventListener("click", () => {
    clearInterval(playing);
    playing = playing ? null : setInterval(() => choose((views[2].chosen + 1) % run.events.length), 900);
    play.textContent = playing ? "Stop" : "Play";
  });
}
