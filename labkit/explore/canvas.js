// What all canvas pictures share. A script before this one gives NAME, KEY (how to read the picture) and
// draw(canvas, spec, room, scale): it paints on paper(canvas, width, height, scale).

function paper(canvas, width, height, scale) {
  const ratio = (window.devicePixelRatio || 1) * scale;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.width = `${width * scale}px`;
  canvas.style.height = `${height * scale}px`;
  const g = canvas.getContext("2d");
  g.scale(ratio, ratio);
  g.fillStyle = "#fff";
  g.fillRect(0, 0, width, height);
  return g;
}

function hatch(g, x, y, w, h, colour = "rgba(0, 0, 0, 0.28)") {
  g.save();
  g.beginPath();
  g.rect(x, y, w, h);
  g.clip();
  g.strokeStyle = colour;
  g.lineWidth = 1;
  g.beginPath();
  for (let d = -h; d < w; d += 6) {
    g.moveTo(x + d, y + h);
    g.lineTo(x + d + h, y);
  }
  g.stroke();
  g.restore();
}

function put(element, text) {
  if (element.textContent !== text) element.textContent = text; // a live region reads out what changed, not everything
}

function tell(list, facts) {
  while (list.children.length > facts.length) list.lastChild.remove();
  facts.forEach((texts, i) => {
    const row = list.children[i] || list.appendChild(document.createElement("div"));
    texts.forEach((text, j) => {
      put(row.children[j] || row.appendChild(document.createElement(j ? "strong" : "span")), text);
    });
  });
}

function render({ model, el }) {
  el.classList.add("labkit-canvas", NAME);
  const picture = el.appendChild(document.createElement("div"));
  picture.className = "labkit-canvas-picture";
  const canvas = picture.appendChild(document.createElement("canvas"));
  canvas.setAttribute("role", "img");
  picture.appendChild(document.createElement("p")).textContent = KEY;
  const side = el.appendChild(document.createElement("div"));
  side.className = "labkit-canvas-state";
  const state = side.appendChild(document.createElement("div"));
  state.setAttribute("role", "status");
  state.setAttribute("aria-live", "polite");
  const code = side.appendChild(document.createElement("pre"));

  const update = () => {
    const spec = model.get("spec");
    const scale = model.get("scale");
    el.style.setProperty("--labkit-scale", scale);
    picture.hidden = !!spec.error;
    code.hidden = !spec.code;
    put(code, spec.code || "");
    if (spec.error) return tell(state, [["Not drawn", spec.error]]);
    tell(state, spec.facts);
    canvas.setAttribute("aria-label", spec.sentence);
    draw(canvas, spec, (picture.clientWidth || 560) / scale, scale);
  };
  model.on("change:spec change:scale", update);
  const resized = new ResizeObserver(update);
  resized.observe(el);
  update();
  return () => {
    resized.disconnect();
    model.off("change:spec change:scale", update);
  };
}

export default { render };
