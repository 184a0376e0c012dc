// Sorts a table by the column whose header is pressed, and filters its rows. Without the script the table stays.
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
