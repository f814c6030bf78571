// The map: the path of an entity among its predicted words, projected to 2-D by the server (PCA).

import { drawn, element } from "./dom.js";
import { hue } from "./shade.js";
import { called } from "./trail.js";

const WIDTH = 400;
const HEIGHT = 290;
const EDGE = 62;
const FONT = "12px system-ui, 'Liberation Sans', sans-serif"; // as in style.css
const LINE = 14;
const GAP = 3; // between two labels
const APART = 20; // between two stops
const STOPS = 20; // longer paths show only some of their stops
const RINGS = [16, 28, 40, 54, 70, 88, 108]; // possible distances of a label from its point

const ruler = document.createElement("canvas").getContext("2d");

function points({ path, words, variance }) {
  return {
    path: path.map(([s, x, y]) => ({ s, x, y })),
    words: words.map(([word, x, y]) => ({ word, x, y })),
    variance,
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

// Pushes overlapping points apart, so that every number can be read.
function spread(path) {
  const found = path.map((point) => ({ ...point }));
  for (let round = 0; round < 60; round += 1) {
    let moved = false;
    found.forEach((one, i) => found.slice(i + 1).forEach((other, j) => {
      const angle = 2.4 * (i + j + 1);
      const dx = other.x - one.x || Math.cos(angle) / 100;
      const dy = other.y - one.y || Math.sin(angle) / 100;
      const distance = Math.hypot(dx, dy);
      if (distance >= APART) return;
      const push = (APART - distance) / 2 / distance;
      one.x -= dx * push;
      one.y -= dy * push;
      other.x += dx * push;
      other.y += dy * push;
      moved = true;
    }));
    if (!moved) break;
  }
  const inside = (value, most) => Math.min(Math.max(value, 10), most - 10);
  return found.map((point) => ({ ...point, x: inside(point.x, WIDTH), y: inside(point.y, HEIGHT) }));
}

function overlaps(one, other) {
  return one.left < other.right && other.left < one.right && one.top < other.bottom && other.top < one.bottom;
}

// Small boxes along the path, which labels avoid.
function along(path) {
  return path.slice(1).flatMap((to, i) => {
    const steps = Math.ceil(Math.hypot(to.x - path[i].x, to.y - path[i].y) / 6);
    return Array.from({ length: steps }, (_, step) => {
      const x = path[i].x + ((to.x - path[i].x) * step) / steps;
      const y = path[i].y + ((to.y - path[i].y) * step) / steps;
      return { left: x - 2, right: x + 2, top: y - 2, bottom: y + 2 };
    });
  });
}

function boxAround(x, y, wide) {
  return { left: x - wide / 2 - GAP, right: x + wide / 2 + GAP, top: y - LINE / 2 - 1, bottom: y + LINE / 2 + 1 };
}

// Places each label as near to its point as possible without overlap; labels without room are left out.
function placed(words, obstacles) {
  ruler.font = FONT;
  const taken = [...obstacles];
  const found = [];
  for (const point of words) {
    const wide = ruler.measureText(point.word).width;
    const around = RINGS.flatMap((radius) => Array.from({ length: 16 }, (_, i) => {
      const angle = (i * Math.PI) / 8;
      return [point.x + Math.cos(angle) * (radius + wide / 2), point.y + Math.sin(angle) * radius];
    }));
    const free = around.find(([x, y]) => {
      const box = boxAround(x, y, wide);
      const inside = box.left > 2 && box.right < WIDTH - 2 && box.top > 2 && box.bottom < HEIGHT - 2;
      return inside && !taken.some((other) => overlaps(box, other));
    });
    if (!free) continue;
    taken.push(boxAround(...free, wide));
    found.push({ word: point.word, x: free[0], y: free[1] });
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

export function mapFigure(state) {
  if (!state.maps[state.entity]) return element("p", { class: "note" }, "The map appears when the whole text has been read.");
  const map = points(state.maps[state.entity]);
  const every = Math.ceil(map.path.length / STOPS);
  map.path = map.path.filter((_, i) => i % every === 0 || i === map.path.length - 1);
  const at = scale(map.path);
  const path = spread(map.path.map(at));
  const past = path.filter((point) => point.s < state.at);
  if (past.length) past[past.length - 1].last = true;
  const stops = path.map(({ x, y }) => ({ left: x - 10, right: x + 10, top: y - 10, bottom: y + 10 }));
  const labels = placed(map.words.map(at), [...stops, ...along(path)]);
  const title = `Path of ${called(state, state.entity)} among its best guesses`;
  const svg = drawn(
    "svg",
    { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": `${title}; “Guesses” gives the same information as text`, style: { "--hue": String(hue(state.entity)) } },
    line(path, "later"),
    line(past, "past"),
    labels.map(({ word, x, y }) => drawn("text", { class: "label", x: x.toFixed(1), y: (y + 4).toFixed(1), "text-anchor": "middle" }, word)),
    path.map((point) => stop(point, state)),
  );
  const variance = Math.round(100 * map.variance);
  return element(
    "figure",
    {},
    svg,
    element("figcaption", { class: "note" }, `Each number marks the word’s embedding after that sentence, among its best guesses. 2-D projection (${variance} % of variance).`),
  );
}
