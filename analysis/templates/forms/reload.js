let touched = 0;
for (const kind of ["keydown", "pointerdown", "pointermove", "wheel"])
  addEventListener(kind, () => { touched = Date.now(); }, {passive: true});
setInterval(() => { if (Date.now() - touched > {{ 1000 * reload }}) location.reload(); }, {{ 1000 * reload }});
