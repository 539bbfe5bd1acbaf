// A small graph: boxes for nodes, pills for inputs and outputs, a shelf of constants. Draws `spec`, decides nothing.
const NAME = "labkit-graph";
const KEY =
  "Filled with a full frame: live, or there. Striped, with a broken frame and ×: dead, or gone (−). " +
  "White with a thin frame and ?: not looked at. Thick frame and + or ~: new or changed by this step. " +
  "Arrow ▸: the node looked at. Squares below: constants.";
const STYLES = { // fill, width of the frame, dashes, stripes, sign
  live: ["#bfe3f7", 2, [], false, ""],
  dead: ["#fff", 1.5, [4, 3], true, "× "],
  unseen: ["#fff", 1, [], false, "? "],
  kept: ["#eef3f7", 1.5, [], false, ""],
  gone: ["#fff", 1.5, [4, 3], true, "− "],
  new: ["#fbe3c0", 4, [], false, "+ "],
  changed: ["#fbe3c0", 3, [], false, "~ "],
};
const FRAMES = { live: "#0072b2", new: "#d55e00", changed: "#d55e00" }; // Okabe-Ito; the frame's width says it too
const PITCH = 52;
const HIGH = 36;
const PILL = 24;
const CHIP = 23;

function fitted(g, text, room) {
  if (g.measureText(text).width <= room) return text;
  let end = text.length;
  while (end > 1 && g.measureText(text.slice(0, end) + "…").width > room) end -= 1;
  return text.slice(0, end) + "…";
}

function words(g, text, x, y, room, font = "13px sans-serif", align = "center") {
  g.font = font;
  g.textAlign = align;
  g.textBaseline = "middle";
  g.fillStyle = "#111";
  g.fillText(fitted(g, text, room), x, y);
}

function shape(g, x, y, w, h, radius, mark, heavy) {
  const [fill, width, dash, striped] = STYLES[mark];
  g.beginPath();
  g.roundRect(x, y, w, h, radius);
  g.fillStyle = fill;
  g.fill();
  if (striped) hatch(g, x + 2, y + 2, w - 4, h - 4, "rgba(0, 0, 0, 0.22)");
  g.beginPath();
  g.roundRect(x, y, w, h, radius);
  g.setLineDash(dash);
  g.lineWidth = heavy ? 4 : width;
  g.strokeStyle = heavy ? "#000" : FRAMES[mark] || "#555";
  g.stroke();
  g.setLineDash([]);
}

function behind(g, text, x, y, striped) { // stripes must not run through words
  if (!striped) return;
  const w = g.measureText(text).width + 6;
  g.fillStyle = "rgba(255, 255, 255, 0.85)";
  g.fillRect(x - w / 2, y - 8, w, 16);
}

function box(g, [label, name, , , mark, pill, now], x, y, w) {
  const h = pill ? PILL : HIGH;
  shape(g, x - w / 2, y - h / 2, w, h, pill ? h / 2 : 5, mark, now);
  const sign = STYLES[mark][4];
  const striped = STYLES[mark][3];
  g.font = "13px sans-serif";
  const title = fitted(g, sign + label, w - 10);
  behind(g, title, x, pill ? y : y - 8, striped);
  words(g, title, x, pill ? y : y - 8, w - 10);
  if (!pill) {
    g.font = "italic 12px sans-serif";
    behind(g, name, x, y + 9, striped);
    words(g, name, x, y + 9, w - 10, g.font);
  }
  if (now) words(g, "▸", x - w / 2 - 9, y, 20, "bold 18px sans-serif");
}

function arrow(g, from, to, quiet) {
  const [x1, y1] = from;
  const [x2, y2] = to;
  const bend = Math.min(18, (y2 - y1) / 2);
  g.strokeStyle = quiet ? "#999" : "#222";
  g.fillStyle = g.strokeStyle;
  g.lineWidth = quiet ? 1 : 1.5;
  g.setLineDash(quiet ? [4, 3] : []);
  g.beginPath();
  g.moveTo(x1, y1);
  g.bezierCurveTo(x1, y1 + bend, x2, y2 - 6 - bend, x2, y2 - 6);
  g.stroke();
  g.setLineDash([]);
  g.beginPath();
  g.moveTo(x2, y2);
  g.lineTo(x2 - 4, y2 - 7);
  g.lineTo(x2 + 4, y2 - 7);
  g.fill();
}

// Small boxes in a row, wrapped; without `paint` it only measures. Gives the y below them.
function flow(g, items, top, width, paint) {
  g.font = "13px sans-serif";
  let x = 4;
  let y = top;
  for (const [text, mark] of items) {
    const w = g.measureText(text).width + 14;
    if (x + w > width - 4) [x, y] = [4, y + CHIP + 4];
    if (paint) {
      shape(g, x, y, w, CHIP, 3, mark, false);
      behind(g, text, x + w / 2, y + CHIP / 2, STYLES[mark][3]);
      words(g, text, x + w / 2, y + CHIP / 2, w);
    }
    x += w + 6;
  }
  return y + CHIP + 4;
}

function draw(canvas, spec, space, scale) {
  const width = Math.min(space, 640);
  const steps = (spec.steps || []).map((name, i) => [name, i === spec.at ? "new" : i < spec.at ? "kept" : "unseen"]);
  const shelf = spec.shelf.map(([name, mark]) => [STYLES[mark][4] + name, mark]);
  const probe = canvas.getContext("2d");
  const top = steps.length ? flow(probe, steps, 3, width, false) + 4 : 3;
  const bottom = top + PITCH * spec.size[1];
  const height = shelf.length ? flow(probe, shelf, bottom + 18, width, false) : bottom;
  const g = paper(canvas, width, height, scale);
  flow(g, steps, 3, width, true);
  const pitch = Math.min(176, (width - 28) / spec.size[0]);
  const at = spec.boxes.map((b) => [22 + (b[2] + 0.5) * pitch, top + (b[3] + 0.45) * PITCH]);
  const half = (b) => (b[5] ? PILL : HIGH) / 2;
  for (const [i, j] of spec.edges) {
    const quiet = [i, j].some((end) => STYLES[spec.boxes[end][4]][3]);
    arrow(g, [at[i][0], at[i][1] + half(spec.boxes[i])], [at[j][0], at[j][1] - half(spec.boxes[j])], quiet);
  }
  spec.boxes.forEach((b, i) => box(g, b, ...at[i], Math.min(150, pitch - 18)));
  if (!shelf.length) return;
  words(g, "constants", 4, bottom + 8, width, "12px sans-serif", "left");
  flow(g, shelf, bottom + 18, width, true);
}
