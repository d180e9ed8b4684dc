"use strict";
/* The table of runs: filters, search, order. Rows are made by the server; here they are only shown, hidden and moved. */
const report = (() => {
  const table = document.getElementById("table");
  const rows = table ? [...table.tBodies[0].rows] : [];
  const search = document.getElementById("search");
  const selects = [...document.querySelectorAll(".filters select[data-filter]")];
  const order = document.getElementById("sort");
  const VERDICTS = ["right", "wrong", "no valid answer", "crashed", "running", "not started"];
  const KEYS = {
    verdict: row => VERDICTS.indexOf(row.dataset.verdict),
    task: row => row.dataset.run,
    level: row => Number(row.dataset.level),
    ended: row => row.dataset.ended,
  };
  const FIRST_DOWN = new Set(["turns", "tools", "tokens", "latency", "cost", "tries"]);
  let traces = null;
  let texts = null;
  let sorted = { key: "", down: false };

  function data() {
    if (traces === null) traces = JSON.parse(document.getElementById("traces").textContent);
    return traces;
  }

  function searched() {
    if (texts === null) {
      const { runs, texts: table } = data();
      const said = place => (place === undefined ? "" : table[place]);
      texts = new Map(runs.map(run => [run.c, [
        run.c, said(run.q), said(run.w), said(run.n), run.f || "", run.b || "",
        ...run.y.map(one => said(one.m)), ...(run.s || []).map(one => one.m),
      ].join("\n").normalize("NFC").toLocaleLowerCase()]));
    }
    return texts;
  }

  function apply() {
    const words = search.value.normalize("NFC").toLocaleLowerCase().split(/\s+/).filter(Boolean);
    const wanted = selects.filter(select => select.value !== "");
    let count = 0;
    for (const row of rows) {
      const fits = wanted.every(select => {
        const value = row.dataset[select.dataset.filter] || "";
        return select.dataset.filter === "mode" ? value.split(" ").includes(select.value) : value === select.value;
      }) && (words.length === 0 || words.every(word => searched().get(row.dataset.run).includes(word)));
      row.hidden = !fits;
      count += fits;
    }
    const all = rows.length;
    const things = all === 1 ? "run" : "runs";
    document.getElementById("shown").textContent =
      count === all ? `${all.toLocaleString("en-US")} ${things}` :
      `${count.toLocaleString("en-US")} of ${all.toLocaleString("en-US")} ${things}`;
    document.getElementById("nothing").hidden = count > 0;
    table.hidden = count === 0;
  }

  function keyOf(key) {
    return KEYS[key] || (row => {
      const value = row.querySelector(`.c-${key}`).dataset.k;
      return value === "" ? null : Number(value);
    });
  }

  function compare(a, b) {
    if (a === b) return 0;
    if (a === null) return 1;
    if (b === null) return -1;
    return typeof a === "string" ? a.localeCompare(b, "en", { numeric: true }) : a - b;
  }

  function sort(key, down) {
    sorted = { key, down };
    const of = key ? keyOf(key) : null;
    const keyed = rows.map((row, place) => [of ? of(row) : place, place, row]);
    keyed.sort((a, b) => {
      // what has no figure stays at the end, whichever way
      const found = a[0] === null || b[0] === null ? compare(a[0], b[0]) : (down ? -1 : 1) * compare(a[0], b[0]);
      return found || a[1] - b[1];
    });
    table.tBodies[0].append(...keyed.map(one => one[2]));
    for (const button of table.tHead.querySelectorAll("button[data-sort]")) {
      const own = button.dataset.sort === key;
      button.closest("th").setAttribute("aria-sort", own ? (down ? "descending" : "ascending") : "none");
    }
    order.value = [...order.options].some(option => option.value === key) ? key : "";
  }

  function reset() {
    search.value = "";
    for (const select of selects) select.value = "";
    sort("", false);
    apply();
  }

  function choose(filter, value) {
    reset();
    const select = document.getElementById(`filter-${filter}`);
    if (select) select.value = value;
    apply();
  }

  /* the runs that are shown, in the order in which they are shown */
  function visible() {
    return table ? [...table.tBodies[0].rows].filter(row => !row.hidden).map(row => row.dataset.run) : [];
  }

  if (table) {
    search.addEventListener("input", apply);
    for (const select of selects) select.addEventListener("change", apply);
    order.addEventListener("change", () => sort(order.value, FIRST_DOWN.has(order.value)));
    const form = search.closest("form");
    form.addEventListener("submit", event => event.preventDefault());
    form.addEventListener("reset", event => { event.preventDefault(); reset(); });
    document.getElementById("reset").addEventListener("click", () => { reset(); search.focus(); });
    table.tHead.addEventListener("click", event => {
      const button = event.target.closest("button[data-sort]");
      if (!button) return;
      const key = button.dataset.sort;
      sort(key, sorted.key === key ? !sorted.down : FIRST_DOWN.has(key));
    });
    table.tBodies[0].addEventListener("click", event => {
      const row = event.target.closest("tr");
      // a link opens by itself, and whoever selects text does not want to leave
      if (row && !event.target.closest("a") && String(getSelection()) === "") row.querySelector("a.run-link").click();
    });
    for (const link of document.querySelectorAll("a.filter-link")) {
      link.addEventListener("click", () => choose(link.dataset.filter, link.dataset.value));
    }
  }
  return { data, visible };
})();
