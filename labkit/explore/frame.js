// Stands unseen in every view. It lets a saved notebook keep the views that it shows: JupyterLab saves no widget state
// unless a person asks for it in its settings, and would show "model not found" in place of each view.
const STATE = "application/vnd.jupyter.widget-state+json";
const VIEW = "application/vnd.jupyter.widget-view+json";

// The models that the outputs of the notebook show, and those inside them; cells that ran again left others behind.
function shown(cells, models) {
  const kept = {};
  const open = cells.flatMap((cell) => (cell.outputs || []).map((output) => output.data?.[VIEW]?.model_id));
  while (open.length) {
    const id = open.pop();
    if (!models[id] || kept[id]) continue;
    kept[id] = models[id];
    open.push(...[...JSON.stringify(models[id].state).matchAll(/IPY_MODEL_([0-9a-f]+)/g)].map((match) => match[1]));
  }
  return kept;
}

function keep(manager) {
  const context = manager?.context;
  const done = (window.labkitKept ??= new WeakSet());
  if (!context?.saveState || !manager.get_state_sync || done.has(context)) return; // not JupyterLab, or kept already
  done.add(context);
  context.saveState.connect((_, progress) => {
    if (progress !== "started") return;
    const all = manager.get_state_sync({ drop_defaults: true });
    const state = shown(context.model.toJSON().cells, all.state);
    if (Object.keys(state).length) context.model.setMetadata("widgets", { [STATE]: { ...all, state } });
  });
}

export default {
  render({ model, el }) {
    el.style.display = "none";
    keep(model.widget_manager);
  },
};
