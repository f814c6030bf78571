// The map: the path of a meaning among its nearest words, in two dimensions (PCA, from the server).

import { drawn, element } from "./dom.js";
import { hue } from "./shade.js";
import { called } from "./trail.js";

const WIDTH = 460;
const HEIGHT = 300;
const EDGE = 34;
const LETTER = 6.6;
const LINE = 14;

function points(map) {
  if (!map?.path.length) return null;
  return {
    path: map.path.map(([s, x, y]) => ({ s, x, y })),
    words: map.words.map(([word, x, y]) => ({ word, x, y })),
    kept: map.kept,
  };
}

function scale(all) {
  const xs = all.map((point) => point.x);
  const ys = all.map((point) => point.y);
  const middle = [(Math.max(...xs) + Math.min(...xs)) / 2, (Math.max(...ys) + Math.min(...ys)) / 2];
  const span = [Math.max(...xs) - Math.min(...xs), Math.max(...ys) - Math.min(...ys)];
  const unit = Math.min((WIDTH - 2.6 * EDGE) / (span[0] || 1), (HEIGHT - 2 * EDGE) / (span[1] || 1));
  return (point) => ({
    ...point,
    x: WIDTH / 2 + (point.x - middle[0]) * unit,
    y: HEIGHT / 2 - (point.y - middle[1]) * unit,
  });
}

function overlaps(one, other) {
  return one.left < other.right && other.left < one.right && one.top < other.bottom && other.top < one.bottom;
}

// Each word stands beside its point where it covers nothing placed before; else it is left out.
function placed(words, obstacles) {
  const taken = [...obstacles];
  const found = [];
  for (const point of words) {
    const wide = point.word.length * LETTER;
    for (const [anchor, dx, dy] of [["start", 6, 4], ["end", -6, 4], ["middle", 0, -7], ["middle", 0, 16]]) {
      const left = point.x + dx - (anchor === "end" ? wide : anchor === "middle" ? wide / 2 : 0);
      const box = { left, right: left + wide, top: point.y + dy - LINE + 3, bottom: point.y + dy + 3 };
      const inside = box.left > 2 && box.right < WIDTH - 2 && box.top > 2 && box.bottom < HEIGHT - 2;
      if (inside && !taken.some((other) => overlaps(box, other))) {
        taken.push(box);
        found.push({ ...point, anchor, dx, dy });
        break;
      }
    }
  }
  return found;
}

function line(points, name) {
  const path = points.map((point, i) => `${i ? "L" : "M"}${point.x.toFixed(1)} ${point.y.toFixed(1)}`);
  return points.length > 1 ? drawn("path", { d: path.join(""), class: name }) : "";
}

function stop(point, state) {
  const last = point.last ? " last" : "";
  return drawn(
    "g",
    { class: `stop${point.s < state.at ? "" : " later"}${last}` },
    drawn("circle", { cx: point.x.toFixed(1), cy: point.y.toFixed(1), r: "8" }),
    drawn("text", { x: point.x.toFixed(1), y: (point.y + 3.5).toFixed(1), "text-anchor": "middle" }, String(point.s + 1)),
  );
}

export function showMap(view, state, space) {
  const map = points(state.maps[state.entity]?.[space]);
  if (!map) {
    view.replaceChildren();
    return;
  }
  const at = scale([...map.path, ...map.words]);
  const path = map.path.map(at);
  const past = path.filter((point) => point.s < state.at);
  if (past.length) past[past.length - 1].last = true;
  const obstacles = path.map(({ x, y }) => ({ left: x - 10, right: x + 10, top: y - 10, bottom: y + 10 }));
  const labels = placed(map.words.map(at), obstacles);
  const title = `Path of ${called(state, state.entity)} among its nearest words`;
  const svg = drawn(
    "svg",
    { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": `${title}; the trail below says the same in words`, style: { "--hue": String(hue(state.entity)) } },
    labels.map((point) => drawn("circle", { cx: point.x.toFixed(1), cy: point.y.toFixed(1), r: "2", class: "dot" })),
    labels.map((point) => drawn("text", { x: (point.x + point.dx).toFixed(1), y: (point.y + point.dy).toFixed(1), "text-anchor": point.anchor }, point.word)),
    line(path, "later"),
    line(past, "past"),
    path.map((point) => stop(point, state)),
  );
  const kept = Math.round(100 * map.kept);
  view.replaceChildren(element(
    "figure",
    {},
    svg,
    element("figcaption", { class: "note" }, `${title}. The numbers are sentences; the plane shows ${kept} % of its movement.`),
  ));
}
