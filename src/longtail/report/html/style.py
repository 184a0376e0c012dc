"""The look of the pages and the one short script they carry; colours are in `canvas`, shared with the plots."""

CSS = """
* { box-sizing: border-box }
html { color-scheme: light dark; -webkit-text-size-adjust: 100% }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.6 system-ui, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif }
main { max-width: 62rem; margin: 0 auto; padding: 3.5rem 1.5rem 5rem }
h1 { font-size: 1.05rem; font-weight: 600; color: var(--soft); margin: 0 0 .75rem; overflow-wrap: anywhere }
h2 { font-size: 1.4rem; line-height: 1.3; margin: 0 0 .4rem; letter-spacing: -.01em; overflow-wrap: anywhere }
h3 { font-size: 1rem; line-height: 1.4; margin: 0 0 .15rem; overflow-wrap: anywhere }
section { margin-top: 4rem }
.headline { font-size: 1.65rem; line-height: 1.4; letter-spacing: -.015em; margin: 0 0 2rem; max-width: 46rem;
  text-wrap: pretty; overflow-wrap: anywhere }
.lead { color: var(--soft); margin: 0 0 1.75rem; max-width: 44rem; text-wrap: pretty; overflow-wrap: anywhere }
.soft { color: var(--soft) }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(21rem, 100%), 1fr)); gap: 2.5rem 3rem;
  align-items: start }
.pair > * { min-width: 0 }
.pair + .wide { margin-top: 2.75rem }
h2 + .pair { margin-top: 1.5rem }
.stack > * + * { margin-top: 1.75rem }

.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(9.5rem, 1fr)); gap: .75rem; margin: 0 }
.tile { background: var(--panel); border-radius: 10px; padding: 1rem 1.1rem }
.tile dt { color: var(--soft); font-size: .85rem }
.tile dd { margin: 0; font-size: 1.7rem; font-weight: 600; letter-spacing: -.02em; line-height: 1.35;
  font-variant-numeric: tabular-nums }
.tile small { display: block; color: var(--soft); font-size: .8rem; font-weight: 400; letter-spacing: 0 }

figure { margin: 0; max-width: 34rem }
figcaption { margin-bottom: 1rem }
figcaption h3 { text-wrap: balance }
figcaption p { color: var(--soft); font-size: .875rem; line-height: 1.5; margin: 0 }
figure.full { max-width: none }
figure.full p { max-width: 44rem }
svg.map.phone { display: none }
figure.full + .filter, figure.full + .wide { margin-top: 2.25rem }

.wide { overflow-x: auto }
.tall { max-height: 40rem; overflow-y: auto }
.tall thead th { position: sticky; top: 0; background: var(--paper); box-shadow: inset 0 -1px var(--line) }
table { border-collapse: collapse; width: 100%; font-size: .9rem; font-variant-numeric: tabular-nums }
caption { text-align: left; font-weight: 600; padding-bottom: .5rem; font-size: 1rem }
th, td { text-align: left; padding: .45rem .9rem .45rem 0; border-bottom: 1px solid var(--grid); vertical-align: top;
  line-height: 1.45 }
thead th { color: var(--soft); font-weight: 500; font-size: .825rem; border-bottom-color: var(--line);
  vertical-align: bottom }
tbody th { font-weight: 500; overflow-wrap: break-word }
th.n, td.n { text-align: right; white-space: nowrap; padding-left: .6rem }
th:last-child, td:last-child { padding-right: 0 }
td:not(.n), thead th:not(.n):not(:first-child) { padding-left: 1rem }
tr.apart > * { padding-top: 1.4rem }
.low { color: var(--soft); font-size: .85em; font-weight: 400 }
td .low { display: inline-block; min-width: 6.4em }
.stacked .low { display: block; white-space: nowrap; min-width: 0 }
.named { display: flex }
.key { flex: none; width: 6rem }
.meaning { color: var(--soft); font-weight: 400 }
.clusters .low { display: block }
.clusters ol { margin: .2rem 0 .3rem; padding-left: 1.4rem; font-weight: 400 }
.clusters ol li + li { margin-top: .25rem }
details { font-weight: 400; font-size: .95em; margin-top: .2rem }
summary { color: var(--accent); cursor: pointer; width: max-content }
details ul { margin: .3rem 0 .4rem; padding-left: 1.1rem }
.better { color: var(--good); font-weight: 600 }
.worse { color: var(--bad); font-weight: 600 }
thead button { font: inherit; color: inherit; background: none; border: 0; padding: 0; cursor: pointer;
  text-decoration: underline dotted; text-underline-offset: 3px; text-align: inherit }
th[aria-sort] button { color: var(--ink); text-decoration-style: solid }
.filter { font: inherit; font-size: .9rem; width: 100%; max-width: 22rem; padding: .45rem .75rem; margin-bottom: 1rem;
  border: 1px solid var(--line); border-radius: 8px; background: var(--paper); color: var(--ink) }

dl.facts { display: grid; grid-template-columns: minmax(8rem, max-content) 1fr; gap: .35rem 1.25rem; margin: 0;
  font-size: .9rem }
h3 + dl { margin-top: .6rem }
dl.facts dt { color: var(--soft) }
dl.facts dd { margin: 0; overflow-wrap: anywhere; font-variant-numeric: tabular-nums }

.card { border: 1px solid var(--line); border-radius: 12px; padding: 1.4rem 1.5rem; margin-bottom: 1.25rem }
.card > p { margin: 0 0 1rem; overflow-wrap: anywhere; white-space: pre-line }
mark { color: inherit; border-radius: 3px; padding: .1em .15em }
.said { list-style: none; margin: 0; padding: 0; font-size: .9rem; font-variant-numeric: tabular-nums }
.said li { display: grid; grid-template-columns: minmax(9rem, 14rem) 3.5rem 4.5rem 1fr; gap: .1rem 1rem;
  padding: .5rem 0; border-top: 1px solid var(--grid); line-height: 1.45 }
.said b { font-weight: 500; overflow-wrap: anywhere }
.said .share { text-align: right }
.said .word { display: inline-block }
.said .path { grid-column: 4; color: var(--soft); font-size: .95em; overflow-wrap: anywhere }
.yes, .no { font-weight: 600; white-space: nowrap }
.yes { color: var(--good) }
.no { color: var(--bad) }
.missed { margin-top: 1rem; font-size: .9rem }
.tags { list-style: none; margin: .35rem 0 0; padding: 0; display: flex; flex-wrap: wrap; gap: .4rem }
.tags li { border: 1px solid var(--line); border-radius: 1rem; padding: .05rem .75rem; font-size: .875rem;
  overflow-wrap: anywhere }

pre { background: var(--panel); border-radius: 10px; padding: 1rem 1.1rem; overflow-x: auto; font-size: .85rem;
  margin: 0 }
footer { margin-top: 4rem; padding-top: 1.25rem; border-top: 1px solid var(--line); color: var(--soft);
  font-size: .85rem }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px }

@media (max-width: 40rem) {
  main { padding: 2rem 1.1rem 3rem }
  .headline { font-size: 1.35rem }
  section { margin-top: 3rem }
  .tiles { grid-template-columns: repeat(2, 1fr) }
  .tile { padding: .75rem .9rem }
  .tile dd { font-size: 1.4rem }
  .tile:last-child:nth-child(odd) { grid-column: 1 / -1 }
  th, td { padding-right: .35rem }
  th.n, td.n { padding-left: .35rem }
  thead th.n { white-space: normal }
  td .low { display: block; min-width: 0 }
  .named { display: block }
  .key { display: block }
  .meaning { font-size: .85em }
  dl.facts { grid-template-columns: minmax(7rem, max-content) 1fr }
  .card { padding: 1.1rem }
  .said li { grid-template-columns: 1fr 3rem 4.8rem; gap: .1rem .6rem }
  .said .words, .said .path { grid-column: 1 / -1; color: var(--soft) }
  svg.map.desk { display: none }
  svg.map.phone { display: block }
}
@media print {
  main { padding: 0 }
  figure, .card, tr { break-inside: avoid }
  .filter { display: none }
  .tall { max-height: none }
}
"""

# Sorts a table by the column whose header is pressed, and filters its rows. Without the script the table stays.
SCRIPT = """
document.querySelectorAll("table.sortable").forEach(function (table) {
  var body = table.tBodies[0], rows = Array.from(body.rows), heads = Array.from(table.tHead.rows[0].cells);
  var box = document.createElement("input");
  box.type = "search"; box.className = "filter"; box.placeholder = "Filter " + rows.length + " rows";
  box.setAttribute("aria-label", "Filter rows");
  box.oninput = function () {
    var want = box.value.toLowerCase();
    rows.forEach(function (row) { row.hidden = row.textContent.toLowerCase().indexOf(want) < 0; });
  };
  if (rows.length > 8) table.parentNode.parentNode.insertBefore(box, table.parentNode);
  heads.forEach(function (head, at) {
    var button = document.createElement("button"), numeric = head.className === "n", up = numeric;
    var key = function (row) {
      var text = row.cells[at].textContent;
      if (!numeric) return text.toLowerCase();
      var value = parseFloat(text.replace(/,/g, ""));
      return isNaN(value) ? -Infinity : value;
    };
    button.textContent = head.textContent; head.textContent = ""; head.appendChild(button);
    button.onclick = function () {
      up = !up;
      heads.forEach(function (h) { h.removeAttribute("aria-sort"); });
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      rows.sort(function (a, b) {
        var x = key(a), y = key(b), order = x < y ? -1 : x > y ? 1 : 0;
        return up ? order : -order;
      });
      rows.forEach(function (row) { body.appendChild(row); });
    };
  });
});
"""
