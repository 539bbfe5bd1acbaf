// The memory strip: one row a line, one cell an element. Draws `spec`, computes nothing but the name of each cell.
const HUES = ["#56b4e9", "#e69f00", "#009e73", "#f0e442", "#cc79a7", "#0072b2", "#d55e00", "#999999"]; // Okabe-Ito
const LABEL = 92; // room for "line 12" and its bytes
const ROW = 32;
const NAME = "labkit-strip";
const KEY =
  "One box is a line. A cell shows channel, then row,column (n: image; of weights o: output, i: input channel); hatched with a black frame: read by this run. " +
  "↵: the run goes on in the next line.";
const GAP = 18; // a row of words where lines are left out

function names(spec, offset) {
  const index = {};
  let rest = offset;
  for (const [axis, length] of [...spec.axes].reverse()) {
    index[axis] = rest % length;
    rest = Math.floor(rest / length);
  }
  const block = spec.axes.find(([axis]) => axis === "c");
  if ("O" in index) return { n: `o${index.O}`, c: `i${index.I}`, hue: index.O, h: index.H, w: index.W };
  const channel = block ? index.C * block[1] + index.c : index.C;
  return { n: `n${index.N}`, c: `c${channel}`, hue: channel, h: index.H, w: index.W };
}

function heights(spec) {
  let y = 4;
  let next = 0;
  const tops = spec.rows.map((row) => {
    if (row > next) y += GAP;
    next = row + 1;
    const top = y;
    y += ROW;
    return top;
  });
  return { tops, total: y + (spec.lines > next ? GAP : 4) };
}

function leftOut(g, count, y) {
  if (count < 1) return;
  g.fillStyle = "#333";
  g.font = "11px sans-serif";
  g.textAlign = "left";
  g.fillText(`… ${count} more line${count > 1 ? "s" : ""}`, LABEL, y);
}

function cell(g, spec, x, y, w, offset, read) {
  const at = names(spec, offset);
  const h = ROW - 6;
  g.globalAlpha = read ? 1 : 0.22;
  g.fillStyle = HUES[at.hue % HUES.length];
  g.fillRect(x, y, w - 1, h);
  g.globalAlpha = 1;
  if (read) {
    hatch(g, x, y, w - 1, h);
    g.strokeStyle = "#000";
    g.lineWidth = 2.5;
    g.strokeRect(x + 1, y + 1, w - 3, h - 2);
  }
  const several = spec.axes.some(([axis, length]) => "NO".includes(axis) && length > 1);
  const lines = w >= 26 ? [(several ? at.n : "") + at.c, `${at.h},${at.w}`] : [`${at.hue}`];
  g.textAlign = "center";
  g.textBaseline = "middle";
  const size = w >= 26 ? 10 : 9;
  lines.forEach((text, i) => {
    g.font = `${read || i === 0 ? "bold " : ""}${size}px sans-serif`;
    const ty = y + (h * (2 * i + 1)) / (2 * lines.length) + (lines.length > 1 ? (i ? -1 : 1) : 0);
    if (read) {
      const wide = g.measureText(text).width + 2;
      g.fillStyle = "rgba(255, 255, 255, 0.85)";
      g.fillRect(x + (w - 1 - wide) / 2, ty - size / 2, wide, size);
    }
    g.fillStyle = "#111";
    g.fillText(text, x + (w - 1) / 2, ty, w - 3);
  });
}

function draw(canvas, spec, room, scale) {
  const { tops, total } = heights(spec);
  const w = Math.max(13, Math.min(36, Math.floor((room - LABEL - 26) / spec.width)));
  const width = LABEL + 26 + w * spec.width;
  const g = paper(canvas, width, total, scale);
  const read = new Set(spec.touched.map((offset) => offset + spec.first));
  g.textBaseline = "middle";
  leftOut(g, spec.lines - spec.rows[spec.rows.length - 1] - 1, total - GAP / 2);
  spec.rows.forEach((row, i) => {
    const y = tops[i];
    leftOut(g, row - (i ? spec.rows[i - 1] + 1 : 0), y - GAP / 2 - 3);
    const bytes = spec.width * spec.itemsize;
    const cells = Array.from({ length: spec.width }, (_, j) => row * spec.width + j);
    const touched = cells.some((c) => read.has(c));
    g.fillStyle = "#333";
    g.textAlign = "left";
    g.font = `${touched ? "bold " : ""}11px sans-serif`;
    g.fillText(`${touched ? "▸ " : "   "}line ${row}`, 4, y + 8);
    g.font = "10px sans-serif";
    g.fillText(`     ${row * bytes}–${(row + 1) * bytes - 1}`, 4, y + 20);
    g.strokeStyle = touched ? "#000" : "#aaa"; // the borders of the line
    g.lineWidth = touched ? 2 : 1;
    g.strokeRect(LABEL - 3, y - 3, w * spec.width + 5, ROW - 1);
    cells.forEach((c, j) => {
      const offset = c - spec.first;
      if (offset >= 0 && offset < spec.size) cell(g, spec, LABEL + j * w, y, w, offset, read.has(c));
    });
    const end = (row + 1) * spec.width;
    g.fillStyle = "#000";
    g.font = "bold 14px sans-serif";
    if (read.has(end - 1) && read.has(end)) g.fillText("↵", LABEL + w * spec.width + 8, y + 12);
  });
}
