"""How the page looks, and its few lines of script: sorting a table by a column."""

STYLE = """
:root { color-scheme: light dark;
  --ink: #1c2128; --dim: #667080; --paper: #fff; --card: #f6f7f9; --line: #dde1e6;
  --good: #1a7f4b; --fair: #9a6700; --bad: #c0302b; --bar: #5b8def; --bar2: #e08a3c;
  --mark: #fff4cc; }
@media (prefers-color-scheme: dark) { :root {
  --ink: #e3e7ed; --dim: #97a1af; --paper: #14171c; --card: #1d2128; --line: #343b45;
  --good: #4cc38a; --fair: #e0b341; --bad: #ff7b72; --bar: #6f9cf5; --bar2: #e8a05c;
  --mark: #3d3517; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 76rem; padding: 1.5rem; background: var(--paper);
  color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; margin: 0 0 .2rem; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin: 2rem 0 .6rem; }
h3 { font-size: .95rem; margin: 1.2rem 0 .4rem; }
p { margin: .4rem 0; } a { color: inherit; }
.dim { color: var(--dim); }
code, pre, td.call-site { font-family: ui-monospace, Menlo, Consolas, monospace;
  font-size: .86em; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .6rem; text-align: right; white-space: nowrap;
  border-bottom: 1px solid var(--line); }
th { color: var(--dim); font-weight: 600; font-size: .82rem; }
th[data-sort] { cursor: pointer; }
th:first-child, td:first-child, td.text, th.text { text-align: left; }
.good { color: var(--good); } .fair { color: var(--fair); } .bad { color: var(--bad); }
ul.advice { list-style: none; padding: 0; margin: 0; }
ul.advice li { background: var(--card); border-left: 4px solid var(--line);
  border-radius: 4px; margin: .4rem 0; padding: .5rem .8rem; overflow-wrap: anywhere; }
li.program { border-color: var(--good) !important; }
li.insufficient, li.device, li.program_unknown, li.pattern {
  border-color: var(--fair) !important; }
li.float64, li.out_of_range, li.canceled_digits, li.largest_error, p.ending {
  border-color: var(--bad) !important; }
p.ending { background: var(--card); border-left: 4px solid; padding: .5rem .8rem; }
.share { display: inline-block; width: 4.5rem; height: .6rem; margin-right: .4rem;
  background: var(--line); border-radius: 2px; overflow: hidden; }
.share i { display: block; height: 100%; background: var(--bar); }
details { border: 1px solid var(--line); border-radius: 6px; margin: .6rem 0;
  padding: .5rem .9rem; }
summary { cursor: pointer; font-weight: 600; overflow-wrap: anywhere; }
summary .verdict { float: right; }
pre { background: var(--card); border-radius: 4px; padding: .6rem; overflow-x: auto;
  margin: .5rem 0; line-height: 1.4; }
pre .here { background: var(--mark); display: inline-block; min-width: 100%; }
pre .number { color: var(--dim); user-select: none; }
.plots { display: flex; flex-wrap: wrap; gap: 1.2rem; }
.plots > div { flex: 1 1 24rem; min-width: 0; }
svg { max-width: 100%; height: auto; } svg text { fill: var(--ink); font-size: 11px;
  font-family: system-ui, sans-serif; } svg text.dim { fill: var(--dim); }
svg .axis { stroke: var(--dim); } svg .grid { stroke: var(--line); }
svg .target { stroke: var(--bad); stroke-dasharray: 4 3; }
svg .a { fill: var(--bar); } svg .b { fill: var(--bar2); }
svg .good { fill: var(--good); } svg .bad { fill: var(--bad); }
svg .format { fill: var(--dim); opacity: .45; }
"""

#: A click on a column's head sorts by it, the largest numbers first; the page is
#: complete without the script.
SCRIPT = """
for (const head of document.querySelectorAll("th[data-sort]"))
  head.addEventListener("click", () => {
    const body = head.closest("table").tBodies[0], i = head.cellIndex;
    const key = row => row.cells[i].dataset.value ?? row.cells[i].textContent;
    const down = head.dataset.sort !== "down";
    head.dataset.sort = down ? "down" : "up";
    const order = (x, y) => isNaN(x) || isNaN(y) ? x.localeCompare(y) : y - x;
    [...body.rows].sort((x, y) => (down ? 1 : -1) * order(key(x), key(y)))
      .forEach(row => body.append(row));
  });
"""
