// A small graph and its kernels: boxes of one kernel bear its number, colour and stripes. Draws `spec`, counts nothing.
const NAME = "labkit-graph";
const KEY =
  "Boxes with one number are one kernel; a thick arrow stays on the chip, a thin broken one goes through DRAM. " +
  "Right: what each kernel moves, and the room that it takes of the SRAM (black frame).";
const HUES = ["#bfe3f7", "#f9d8a6", "#a8dfcb", "#f2c9df", "#f7f1a0", "#cfd8ff", "#f4c1a1", "#e4e4e4"]; // Okabe-Ito, light
const PITCH = 54;
const HIGH = 34;
const PILL = 22;
const ROW = 62;

function words(g, text, x, y, font = "13px sans-serif", align = "center") {
  g.font = font;
  g.textAlign = align;
  g.textBaseline = "middle";
  g.fillStyle = "#111";
  g.fillText(text, x, y);
}

function arrow(g, [x1, y1], [x2, y2], inside, lane) {
  g.strokeStyle = g.fillStyle = inside ? "#000" : "#666";
  g.lineWidth = inside ? 3.5 : 1.2;
  g.setLineDash(inside ? [] : [5, 4]);
  g.beginPath();
  g.moveTo(x1, y1);
  if (y2 - y1 > PITCH) { // down a lane of its own, past the boxes in between
    const x = x1 === x2 ? x1 + lane : x1;
    g.bezierCurveTo(x1, y1 + 12, x, y1 + 4, x, y1 + 20);
    g.lineTo(x, y2 - 26);
    g.bezierCurveTo(x, y2 - 10, x2, y2 - 20, x2, y2 - 6);
  } else {
    const bend = Math.min(18, (y2 - y1) / 2);
    g.bezierCurveTo(x1, y1 + bend, x2, y2 - 6 - bend, x2, y2 - 6);
  }
  g.stroke();
  g.setLineDash([]);
  g.beginPath();
  g.moveTo(x2, y2);
  g.lineTo(x2 - 5, y2 - 9);
  g.lineTo(x2 + 5, y2 - 9);
  g.fill();
}

function badge(g, x, y, number) {
  g.beginPath();
  g.arc(x, y, 10, 0, 2 * Math.PI);
  g.fillStyle = "#111";
  g.fill();
  g.font = "bold 13px sans-serif";
  g.textAlign = "center";
  g.textBaseline = "middle";
  g.fillStyle = "#fff";
  g.fillText(number, x, y + 0.5);
}

function box(g, [label, name, , , number], x, y, w) {
  const h = number ? HIGH : PILL;
  const frame = () => {
    g.beginPath();
    g.roundRect(x - w / 2, y - h / 2, w, h, number ? 4 : h / 2);
  };
  frame();
  g.fillStyle = number ? HUES[(number - 1) % HUES.length] : "#fff";
  g.fill();
  if (number && number % 2 === 0) hatch(g, x - w / 2 + 1, y - h / 2 + 1, w - 2, h - 2, "rgba(0, 0, 0, 0.14)");
  frame();
  g.strokeStyle = "#333";
  g.lineWidth = 1.5;
  g.stroke();
  if (!number) return words(g, label, x, y);
  words(g, label, x + 8, y - 8, "bold 13px sans-serif");
  words(g, name, x + 8, y + 9, "italic 12px sans-serif");
  badge(g, x - w / 2 + 13, y, number);
}

function kernels(g, spec, x, width) {
  spec.kernels.forEach(([name, moved, text, room, roomText, fits], i) => {
    const y = 8 + i * ROW;
    badge(g, x + 10, y + 10, i + 1);
    words(g, name, x + 26, y + 10, "bold 13px sans-serif", "left");
    const long = width - 72;
    g.fillStyle = HUES[i % HUES.length];
    g.fillRect(x, y + 23, Math.max(1, moved * long), 15);
    if (i % 2) hatch(g, x, y + 23, moved * long, 15, "rgba(0, 0, 0, 0.16)");
    g.strokeStyle = "#333";
    g.lineWidth = 1;
    g.strokeRect(x, y + 23, Math.max(1, moved * long), 15);
    words(g, text, x + Math.max(1, moved * long) + 5, y + 31, "13px sans-serif", "left");
    const half = long * 0.4;
    g.fillStyle = "#888";
    g.fillRect(x, y + 42, Math.min(1, room) * half, 8);
    if (!fits) hatch(g, x, y + 42, half, 8, "#000");
    g.strokeStyle = "#000";
    g.lineWidth = 1.5;
    g.strokeRect(x, y + 42, half, 8);
    words(g, roomText, x + half + 6, y + 46, "12px sans-serif", "left");
  });
}

function draw(canvas, spec, space, scale) {
  const width = Math.min(space, 640);
  const [columns, rows] = spec.size;
  const height = Math.max(PITCH * rows, 8 + ROW * spec.kernels.length) + 4;
  const g = paper(canvas, width, height, scale);
  const graph = Math.min(width * 0.55, 190 * columns);
  const pitch = graph / columns;
  const wide = Math.min(132, pitch - 32);
  const at = spec.boxes.map(([, , column, row]) => [(column + 0.5) * pitch, (row + 0.45) * PITCH]);
  const half = (i) => (spec.boxes[i][4] ? HIGH : PILL) / 2;
  for (const [i, j, inside] of spec.edges) {
    arrow(g, [at[i][0], at[i][1] + half(i)], [at[j][0], at[j][1] - half(j)], inside, wide / 2 + 12);
  }
  spec.boxes.forEach((one, i) => box(g, one, ...at[i], wide));
  kernels(g, spec, graph + 14, width - graph - 18);
}
