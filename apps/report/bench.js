// What was measured, beside the limits and the published values: along a parameter, or one bar a setting.

function showBench(findings) {
  pageHead("What was measured");
  for (const { name, fabric, title, x, results } of findings) {
    const along = results.filter((result) => typeof result.params[x] === "number");
    const place = html("div", { class: "chart" });
    const series = along.length ? seriesAlong(x, along) : seriesOfBars(results);
    pageSection(`${name}: ${fabric}`, title, place, legend(series),
      table(["#", "setting", "value", "p10", "p90", "limit", "ratio", "published"], results.map((r, i) =>
        [i + 1, r.setting, r.text, amount(r.value_spread.p10), amount(r.value_spread.p90),
          r.limit == null ? "–" : amount(r.limit), r.ratio?.toFixed(2) ?? "–", r.published == null ? "–" : amount(r.published)])));
    const ticks = [...new Set(series.flatMap((one) => one.points.map((p) => p.x)))].sort((a, b) => a - b);
    chart(place, { what: results[0].unit, along: along.length ? x : "# of the setting", ticks, series });
  }
}

function seriesAlong(x, results) {
  const groups = new Map();
  for (const result of results) groups.set(result.group, [...(groups.get(result.group) ?? []), result]);
  return [...groups].flatMap(([group, members], i) => {
    const shared = { color: COLORS[i % COLORS.length] };
    const name = group || "Dunlin";
    const at = (result) => result.params[x];
    return [{ ...shared, name, mark: "dots", line: "solid", points: members.map((r) => measured(r, at(r))) },
      { ...shared, name: name + ": " + members[0].limit_name, mark: "rings", line: "dashed", points: given(members, "limit", at) },
      { ...shared, name: name + ": published", mark: "rings", points: given(members, "published", at) }]
      .filter((one) => one.points.length);
  });
}

function seriesOfBars(results) {
  const at = (result) => results.indexOf(result) + 1;
  return [{ name: "Dunlin", color: "var(--cost)", mark: "bars", points: results.map((r) => measured(r, at(r))) },
    { name: "limit", color: "var(--down)", mark: "rings", points: given(results, "limit", at) },
    { name: "published", color: "var(--soft)", mark: "rings", points: given(results, "published", at) }]
    .filter((one) => one.points.length);
}

function measured(result, x) {
  const { p10: low, p90: high } = result.value_spread;
  return { x, y: result.value, low, high, tip: [result.setting, result.text] };
}

function given(results, what, at) {
  return results.filter((r) => r[what] != null).map((r) => ({ x: at(r), y: r[what], tip: [what, r.setting, amount(r[what]) + " " + r.unit] }));
}
