// The state of the page and its views.

import { byId, chosen } from "./dom.js";
import { embedded } from "./export.js";
import { showMap } from "./map.js";
import { bits, LEGENDS } from "./shade.js";
import { find, mark, paint, rove, sentenceRow } from "./text.js";
import { mentioned, showChips, showCompare, showNearest, showTrail } from "./trail.js";

const PACE = 1300; // milliseconds per sentence during playback

export const given = embedded(); // the reading of an exported page, else null
export const current = { state: empty() };
let painting = false;
let playing = null; // the timer of the playback

export function empty() {
  return {
    id: "", kind: "", sentences: [], raw: [], names: {}, maps: {}, predictions: {},
    unit: "bits", naming_space: "input", total: 0, at: 0, entity: 0, picked: false, place: null, edit: null,
  };
}

export function showText() {
  const { state } = current;
  byId("text").replaceChildren(...state.sentences.map((sentence, s) => sentenceRow(sentence, s, state.unit, !given)));
  rove(byId("text"), find(byId("text"), 0, 0));
}

export function showMeaning() {
  const { state } = current;
  if (!state.picked && mentioned(state).length) state.entity = mentioned(state)[0][0];
  const space = chosen("space");
  showChips(byId("chips"), state);
  showTrail(byId("trail"), state);
  showCompare(byId("compare"), state);
  showMap(byId("map"), state, space);
  showNearest(byId("nearest"), state, space);
}

export function showPlace() {
  const { state } = current;
  const mode = chosen("shade");
  byId("legend").textContent = LEGENDS[mode];
  paint(byId("text"), state, mode);
  mark(byId("text"), state.place);
  const slider = byId("slider");
  slider.max = String(Math.max(1, state.sentences.length));
  slider.value = String(state.at);
  slider.setAttribute("aria-valuetext", `after sentence ${state.at} of ${state.total}`);
  byId("slider-label").textContent = `After sentence ${state.at} of ${state.total}`;
}

function showTotals() {
  const { state } = current;
  const tokens = state.sentences.flatMap((sentence) => sentence.tokens);
  const mean = (field, some) => bits(some.reduce((sum, token) => sum + token[field], 0) / some.length);
  const said = (name, some) => (some.length
    ? `${name}: ${mean("surprisal", some)} ${state.unit} per word with memory, ${mean("static_surprisal", some)} without`
    : "");
  const back = tokens.filter((token) => token.group === "reappearing");
  byId("totals").textContent = [said("Surprisal of all words", tokens), said("of tracked words after their first mention", back)]
    .filter(Boolean).join(" · ");
}

export function showAll() {
  showPlace();
  showMeaning();
  showTotals();
}

// While sentences arrive, the page is painted once per frame.
export function showSoon() {
  if (painting) return;
  painting = true;
  requestAnimationFrame(() => {
    painting = false;
    showAll();
  });
}

export function goTo(s) {
  current.state.at = s;
  showPlace();
  showMeaning();
}

// Playback: shows the guesses after each sentence, from the beginning.
export function play() {
  pause();
  const { state } = current;
  goTo(Math.min(1, state.sentences.length));
  byId("play").textContent = "❚❚ Pause";
  playing = setInterval(() => {
    if (state !== current.state || (state.at >= state.total && state.total)) pause();
    else if (state.at < state.sentences.length) goTo(state.at + 1);
  }, PACE);
}

export function pause() {
  clearInterval(playing);
  playing = null;
  byId("play").textContent = "▶ Play";
}

export function isPlaying() {
  return playing !== null;
}

export function say(message) {
  byId("status").textContent = message;
}

export function complain(message) {
  byId("error").textContent = message;
}
