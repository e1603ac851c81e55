// How often k-mers occur, and what the members did.

const MOST_BARS = 60; // k-mers that occur so often, or more often, are in one bar

function showKmers({ title, files, facts, histogram, members, seconds, parts, peak_bytes, jellyfish }) {
  pageHead(title, ...files.flatMap((file) => [file, html("br")]));
  const bars = Array.from({ length: MOST_BARS }, (_, i) => ({ x: i + 1, y: 0 }));
  for (const [count, kmers] of histogram) bars[Math.min(count, MOST_BARS) - 1].y += kmers;
  for (const bar of bars) bar.tip = [plural(bar.y, "k-mer"), "occur " + bar.x + (bar.x === MOST_BARS ? " or more" : "") + " times"];
  const place = html("div", { class: "chart" });
  pageSection("Different k-mers by how often they occur", facts, place,
    html("h3", {}, "Members"),
    table(["", "member", "k-mers read", "k-mers held", "slots", "load"], members.map(({ read, kmers, slots }, i) =>
      ["", i, read, kmers, slots, (slots && kmers / slots).toFixed(2)])),
    html("h3", {}, "Where the time went"), table(["", "", ...Object.keys(seconds)],
      [["", "seconds", ...Object.values(seconds).map((s) => s.toFixed(2))]]),
    table(["", "of a member's time", ...Object.keys(parts)],
      [["", "seconds", ...Object.values(parts).map((s) => s.toFixed(2))]]),
    html("h3", {}, "Memory and time of all processes"), table(["", "", "MB at most", "seconds"],
      [["dunlin", peak_bytes, Object.values(seconds).reduce((a, b) => a + b)],
        ...(jellyfish ? [["jellyfish", jellyfish.peak_bytes, jellyfish.seconds]] : [])].map(([who, bytes, s]) =>
        ["", who, (bytes / 1e6).toFixed(0), s.toFixed(2)])),
    jellyfish && html("p", {}, jellyfish.text));
  chart(place, { what: "different k-mers, on a logarithmic axis", along: `how often a k-mer occurs (${MOST_BARS}: or more often)`,
    ticks: [1, ...bars.map((bar) => bar.x).filter((x) => x % 10 === 0)], least: 0.5,
    series: [{ color: "var(--cost)", mark: "bars", points: bars }] });
}
