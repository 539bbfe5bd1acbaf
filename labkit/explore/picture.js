// Draws whole pictures, and between them tiles of bare pixels, which need no decoding and so show in the next frame.
const REST_MS = 400; // without a new tile: the picture has come to rest, and the kernel may send it whole

function render({ model, el }) {
  const canvas = el.appendChild(document.createElement("canvas"));
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", "plot of what is said below it");
  canvas.style.maxWidth = "100%";
  canvas.style.height = "auto";
  const g = canvas.getContext("2d");
  let newest = 0; // the whole picture asked for last
  let drawn = 0; // the one on the canvas
  let tiles = null; // the newest ones; they belong to one whole picture, which may come later than they do
  let rest;

  const put = () => {
    if (!tiles || tiles.base !== drawn) return;
    const { boxes, bytes } = tiles;
    let at = bytes.byteOffset;
    for (const [left, top, width, height] of boxes) {
      const size = 4 * width * height;
      g.putImageData(new ImageData(new Uint8ClampedArray(bytes.buffer, at, size), width, height), left, top);
      at += size;
    }
  };
  const whole = async () => {
    const base = (newest = model.get("base"));
    const png = model.get("png");
    canvas.style.width = `${model.get("width")}px`;
    canvas.hidden = !png?.byteLength;
    if (canvas.hidden) return;
    const picture = await createImageBitmap(new Blob([png], { type: "image/png" }));
    if (base !== newest) return;
    if (canvas.width !== picture.width) canvas.width = picture.width; // setting a size wipes the canvas
    if (canvas.height !== picture.height) canvas.height = picture.height;
    g.drawImage(picture, 0, 0);
    drawn = base;
    put();
  };
  const moved = ({ base, boxes }, [bytes]) => {
    tiles = { base, boxes, bytes };
    put();
    clearTimeout(rest);
    rest = setTimeout(() => model.send({}), REST_MS);
  };
  model.on("change:base change:width", whole);
  model.on("msg:custom", moved);
  whole();
  return () => {
    clearTimeout(rest);
    model.off("change:base change:width", whole);
    model.off("msg:custom", moved);
  };
}

export default { render };
