// A small graph in two orders of axes, and the transposes between them. Draws `spec`, counts nothing.
const NAME = "labkit-placement";
const KEY =
  "Blue and striped, N: this kernel works in NHWC. White, C: in NCHW. A thick frame: you choose; a thin one: no choice. " +
  "T on a broken arrow: a transpose.";
const PITCH = 50;
const HIGH = 34;
const PILL = 22;

function words(g, text, x, y, font = "13px sans-serif", colour = "#111") {
  g.font = font;
  g.textAlign = "center";
  g.textBaseline = "middle";
  g.fillStyle = colour;
  g.fillText(text, x, y);
}

function arrow(g, [x1, y1], [x2, y2], crosses, room) {
  g.strokeStyle = g.fillStyle = crosses ? "#D55E00" : "#444";
  g.lineWidth = crosses ? 2.5 : 1.3;
  g.setLineDash(crosses ? [6, 4] : []);
  const far = y2 - y1 > PITCH && Math.abs(x1 - x2) < 8; // past the boxes in between
  const [ax, ay, bx, by] = far
    ? [x1 + room, y1 + 30, x2 + room, y2 - 36]
    : [x1, y1 + Math.min(18, (y2 - y1) / 2), x2, y2 - 6 - Math.min(18, (y2 - y1) / 2)];
  g.beginPath();
  g.moveTo(x1, y1);
  g.bezierCurveTo(ax, ay, bx, by, x2, y2 - 6);
  g.stroke();
  g.setLineDash([]);
  g.beginPath();
  g.moveTo(x2, y2);
  g.lineTo(x2 - 5, y2 - 9);
  g.lineTo(x2 + 5, y2 - 9);
  g.fill();
  return [(x1 + 3 * ax + 3 * bx + x2) / 8, (y1 + 3 * ay + 3 * by + y2 - 6) / 8]; // the middle of the curve
}

function badge(g, [x, y]) {
  g.beginPath();
  g.arc(x, y, 9, 0, 2 * Math.PI);
  g.fillStyle = "#D55E00";
  g.fill();
  words(g, "T", x, y + 0.5, "bold 13px sans-serif", "#fff");
}

function box(g, [label, name, , , inside, free], x, y, w) {
  const h = name ? HIGH : PILL;
  const frame = new Path2D();
  frame.roundRect(x - w / 2, y - h / 2, w, h, name ? 4 : h / 2);
  g.fillStyle = inside ? "#bfe3f7" : "#fff";
  g.fill(frame);
  if (inside) hatch(g, x - w / 2 + 1, y - h / 2 + 1, w - 2, h - 2, "rgba(0, 0, 0, 0.12)");
  g.strokeStyle = free ? "#000" : "#777";
  g.lineWidth = free ? 3 : 1.2;
  g.stroke(frame);
  if (!name) return words(g, label, x, y);
  words(g, label, x, y - 8, "bold 13px sans-serif");
  words(g, name, x, y + 9, "italic 12px sans-serif");
  words(g, inside ? "N" : "C", x - w / 2 + 10, y, "bold 14px sans-serif");
}

function draw(canvas, spec, space, scale) {
  const width = Math.min(space, 620);
  const [columns, rows] = spec.size;
  const g = paper(canvas, width, PITCH * rows + 4, scale);
  const pitch = Math.min(200, width / columns);
  const wide = Math.min(124, pitch - 26);
  const at = spec.boxes.map(([, , column, row]) => [(column + 0.5) * pitch, (row + 0.45) * PITCH]);
  const half = (i) => (spec.boxes[i][1] ? HIGH : PILL) / 2;
  const middles = spec.edges.map(([i, j, crosses]) =>
    arrow(g, [at[i][0], at[i][1] + half(i)], [at[j][0], at[j][1] - half(j)], crosses, wide * 0.75));
  spec.boxes.forEach((one, i) => box(g, one, ...at[i], wide));
  spec.edges.forEach(([, , crosses], k) => crosses && badge(g, middles[k]));
}
