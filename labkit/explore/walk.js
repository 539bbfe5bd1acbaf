// The walk over tiles: B above C, A left of C, and what the tiles take of the SRAM. Draws `spec`, counts nothing.
const NAME = "labkit-walk";
const KEY =
  "Hatched: the tile on chip. ↓ and a black frame: it came at this step. ↑: the tile of C is stored after this step. " +
  "Below: the room the tiles take in SRAM; a tile with ×2 has a second copy, for the next one.";
const HUES = { A: "#56b4e9", B: "#e69f00", C: "#009e73" }; // Okabe-Ito
const MARGIN = 26; // left and top, for the names of the loops
const BETWEEN = 30; // between the matrices
const LEAST = 16; // side of a matrix that is hardly there
const BAR = 30;

function grid(g, x, y, w, h, columns, rows) {
  g.strokeStyle = "#bbb";
  g.lineWidth = 1;
  g.beginPath();
  const lines = (extent, tile, length, line) => {
    const step = (tile / extent) * length;
    if (step >= 4) for (let at = step; at < length - 0.5; at += step) line(at);
  };
  lines(...columns, w, (at) => (g.moveTo(x + at, y), g.lineTo(x + at, y + h)));
  lines(...rows, h, (at) => (g.moveTo(x, y + at), g.lineTo(x + w, y + at)));
  g.stroke();
}

function words(g, text, x, y, font = "13px sans-serif", align = "center") {
  g.font = font;
  g.textAlign = align;
  g.textBaseline = "middle";
  g.fillStyle = "#111";
  g.fillText(text, x, y);
}

function tag(g, text, left, y, wide, limit) {
  g.font = "bold 15px sans-serif";
  const room = g.measureText(text).width + 6;
  const inside = room < wide - 4; // else beside the tile, where it hides no frame
  const right = left + wide + room + 4 < limit;
  const x = inside ? left + wide / 2 : right ? left + wide + 4 + room / 2 : left - 4 - room / 2;
  g.fillStyle = "rgba(255, 255, 255, 0.9)";
  g.fillRect(x - room / 2, y - 9, room, 18);
  words(g, text, x, y, g.font);
}

function matrix(g, spec, name, rows, columns, x, y, w, h, came, mark, limit) {
  const [rowExtent] = spec.loops[rows];
  const [columnExtent] = spec.loops[columns];
  g.fillStyle = "#f5f5f5";
  g.fillRect(x, y, w, h);
  grid(g, x, y, w, h, spec.loops[columns], spec.loops[rows]);
  const [left, right] = spec.at[columns].map((i) => x + (i / columnExtent) * w);
  const [top, bottom] = spec.at[rows].map((i) => y + (i / rowExtent) * h);
  const wide = Math.max(2, right - left);
  const high = Math.max(2, bottom - top);
  g.fillStyle = HUES[name];
  g.fillRect(left, top, wide, high);
  hatch(g, left, top, wide, high, "rgba(0, 0, 0, 0.4)");
  g.strokeStyle = "#000";
  g.lineWidth = came ? 3.5 : 1;
  g.strokeRect(left, top, wide, high);
  g.strokeStyle = "#555";
  g.lineWidth = 1.5;
  g.strokeRect(x, y, w, h);
  tag(g, name + mark, left, top + high / 2, wide, limit);
}

function room(g, spec, x, y, width) {
  const [sram, label, fits] = spec.room;
  const needed = spec.held.reduce((sum, [, slots, bytes]) => sum + slots * bytes, 0);
  const unit = width / Math.max(sram, needed);
  g.fillStyle = "#f5f5f5";
  g.fillRect(x, y, sram * unit, BAR);
  let at = x;
  for (const [name, slots, bytes, text] of spec.held) {
    const wide = slots * bytes * unit;
    g.fillStyle = HUES[name];
    g.fillRect(at, y, wide, BAR);
    g.strokeStyle = "#000";
    g.lineWidth = 1;
    for (let i = 0; i < slots; i++) g.strokeRect(at + (i * wide) / slots, y, wide / slots, BAR);
    const full = `${name} ${text}${slots > 1 ? ` ×${slots}` : ""}`;
    g.font = "13px sans-serif";
    const shown = [full, name].find((candidate) => g.measureText(candidate).width + 6 < wide);
    if (shown) words(g, shown, at + wide / 2, y + BAR / 2);
    at += wide;
  }
  if (!fits) hatch(g, x + sram * unit, y, (needed - sram) * unit, BAR, "#000");
  g.strokeStyle = "#000";
  g.lineWidth = 3;
  g.strokeRect(x, y, sram * unit, BAR);
  words(g, fits ? label : `${label}: the tiles do not fit, black stripes are too much`, x, y + BAR + 14, "13px sans-serif", "left");
}

function draw(canvas, spec, space, scale) {
  const width = Math.min(space, 500);
  const [m, n, k] = ["m", "n", "k"].map((loop) => spec.loops[loop][0]);
  const unit = (width - MARGIN - BETWEEN - 4) / Math.max(n + k, (m + k) * 1.15);
  const [high, wide, deep] = [m, n, k].map((extent) => Math.max(LEAST, extent * unit));
  const total = MARGIN + deep + BETWEEN + high + 24 + BAR + 28;
  const g = paper(canvas, width, total, scale);
  const x = MARGIN + deep + BETWEEN;
  const y = MARGIN + deep + BETWEEN;
  const marks = spec.came.map((came) => (came ? " ↓" : ""));
  words(g, "k", MARGIN + deep / 2, y - 12);
  words(g, "m", 12, y + high / 2);
  words(g, "n", x + wide / 2, 12);
  words(g, "k", x - 14, MARGIN + deep / 2);
  matrix(g, spec, "A", "m", "k", MARGIN, y, deep, high, spec.came[0], marks[0], width);
  matrix(g, spec, "B", "k", "n", x, MARGIN, wide, deep, spec.came[1], marks[1], width);
  matrix(g, spec, "C", "m", "n", x, y, wide, high, spec.came[2], marks[2] + (spec.leaves ? " ↑" : ""), width);
  room(g, spec, 3, y + high + 20, width - 8);
}
