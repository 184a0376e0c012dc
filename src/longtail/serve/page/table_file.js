// The first rows of a CSV, TSV or JSONL file, to choose columns by; the whole file is read by the server.

const SAMPLE_BYTES = 200_000;

/** Rows of CSV as lists of cells, with quotes as RFC 4180 has them. */
export function parseCsv(text, separator, most = 50) {
  const rows = [];
  let row = [];
  let cell = "";
  let quoted = false;
  for (let i = 0; i < text.length && rows.length < most; i += 1) {
    const c = text[i];
    if (quoted) {
      if (c === '"' && text[i + 1] === '"') {
        cell += '"';
        i += 1;
      } else if (c === '"') quoted = false;
      else cell += c;
    } else if (c === '"' && cell === "") quoted = true;
    else if (c === separator) {
      row.push(cell);
      cell = "";
    } else if (c === "\n" || c === "\r") {
      if (c === "\r" && text[i + 1] === "\n") i += 1;
      row.push(cell);
      if (row.length > 1 || row[0] !== "") rows.push(row);
      row = [];
      cell = "";
    } else cell += c;
  }
  if (rows.length < most && (cell !== "" || row.length)) rows.push([...row, cell]);
  return rows;
}

function likelySeparator(line) {
  const counts = [",", ";", "\t"].map((mark) => [line.split(mark).length, mark]);
  return counts.sort((a, b) => b[0] - a[0])[0][1];
}

function fromJsonl(text, cut) {
  const lines = text.split("\n").filter((line) => line.trim());
  if (cut) lines.pop();
  const rows = lines.slice(0, 50).map((line) => JSON.parse(line));
  if (rows.length === 0 || rows.some((row) => row === null || typeof row !== "object" || Array.isArray(row))) throw new Error("lines");
  const columns = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const cells = rows.map((row) => columns.map((name) => (typeof row[name] === "string" ? row[name] : row[name] === undefined ? "" : JSON.stringify(row[name]))));
  return { format: "jsonl", columns, rows: cells, separator: null };
}

function fromCsv(text, cut) {
  const separator = likelySeparator(text.split(/\r?\n/, 1)[0]);
  const [columns, ...rows] = parseCsv(text, separator);
  if (!columns) throw new Error("empty");
  if (cut && rows.length < 49) rows.pop();
  return { format: "csv", columns, rows, separator };
}

/** Bytes as text, in UTF-8 or as spreadsheets write it: UTF-16 with a byte order mark, or Windows-1252. */
function decoded(bytes, cut) {
  const mark = bytes[0] === 0xff && bytes[1] === 0xfe ? "utf-16le" : bytes[0] === 0xfe && bytes[1] === 0xff ? "utf-16be" : "utf-8";
  try {
    return new TextDecoder(mark, { fatal: true }).decode(bytes, { stream: cut });
  } catch {
    return new TextDecoder("windows-1252").decode(bytes);
  }
}

/** Columns and first rows of a file; raises where it is no such table. */
export async function sampleOf(file) {
  const cut = file.size > SAMPLE_BYTES;
  const text = decoded(new Uint8Array(await file.slice(0, SAMPLE_BYTES).arrayBuffer()), cut);
  if (text.includes("\0")) throw new Error("binary");
  return /^\s*\{/.test(text) ? fromJsonl(text, cut) : fromCsv(text, cut);
}

/** The columns most likely to hold texts and ids: those the model learned from, else by name, else the longest cells. */
export function guessColumns({ columns, rows }, learned = { text: ["text"], id: "id" }) {
  const id = [learned.id, "id"].find((name) => columns.includes(name)) ?? null;
  if (learned.text.every((name) => columns.includes(name))) return { texts: learned.text, id };
  const named = (...names) => columns.find((column) => names.includes(column.trim().toLowerCase()));
  const lengths = columns.map((_, i) => rows.reduce((sum, row) => sum + (row[i]?.length ?? 0), 0));
  const longest = columns[lengths.indexOf(Math.max(...lengths))];
  return { texts: [named("text", "abstract", "description", "body", "content") ?? longest], id };
}
