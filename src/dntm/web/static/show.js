// The state of the page and its views.

import { byId, chosen, element } from "./dom.js";
import { embedded } from "./export.js";
import { mapFigure } from "./map.js";
import { predictions } from "./predictions.js";
import { bits, hue, LEGENDS } from "./shade.js";
import { find, mark, paint, rove, rowOf, sentenceRow } from "./text.js";
import { called, comparison, guesses, mentioned, showChips } from "./trail.js";

const PACE = 1300; // milliseconds per sentence during playback
const MARGIN = 12; // pixels between the answer and the edge of the window
export const narrow = matchMedia("(max-width: 56rem)"); // as in style.css: one column
export const still = matchMedia("(prefers-reduced-motion: reduce)");

export const given = embedded(); // the reading of an exported page, else null
export const current = { state: empty() };
let painting = false;
let playing = null; // the timer of the playback

// `place` is the selected word, `picked` whether the user has selected `entity`, `suggested` an edit to try.
export function empty() {
  return {
    id: "", kind: "", sentences: [], raw: [], names: {}, unknown: [], maps: {}, predictions: {}, unit: "bits",
    total: 0, at: 0, entity: 0, picked: false, place: null, edit: null, suggested: null,
  };
}

export function showText() {
  const { state } = current;
  byId("side").append(byId("answer"));
  byId("text").replaceChildren(...state.sentences.map((_, s) => sentenceRow(state, s, !given)));
  rove(byId("text"), find(byId("text"), 0, 0));
}

// What the answer shows: an edit, a word that is not tracked, or the selected tracked word.
function answerTo(state) {
  const token = state.place && state.sentences[state.place.sentence].tokens[state.place.position];
  if (state.edit) {
    const done = state.sentences.length === state.total;
    return { title: "Your change", nodes: done ? comparison(state) : [element("p", { class: "note" }, "Reading …")] };
  }
  if (token && !token.entity) return { title: token.end ? "End of the sentence" : `“${token.word}”`, nodes: predictions(state) };
  const views = { guesses, predictions, map: (one) => [mapFigure(one)] };
  return { title: called(state, state.entity), entity: state.entity, nodes: views[chosen("view")](state) };
}

export function showMeaning() {
  const { state } = current;
  if (!state.picked) state.entity = mentioned(state)[0] ?? 0;
  showChips(byId("chips"), state);
  byId("answer").hidden = !state.entity && !state.place && !state.edit;
  if (byId("answer").hidden) return;
  const { title, entity, nodes } = answerTo(state);
  const focused = byId("content").contains(document.activeElement) ? document.activeElement.dataset.go : null;
  byId("answer").style.setProperty("--hue", String(hue(entity ?? 0)));
  byId("answer").classList.toggle("about", Boolean(entity));
  byId("answer-title").textContent = title;
  byId("views").hidden = !entity;
  byId("close").hidden = !state.edit && !state.picked && !state.place;
  byId("content").replaceChildren(...nodes);
  const now = byId("content").querySelector(".trail .now");
  if (now) now.closest(".trail").scrollTop = now.offsetTop - 2 * now.offsetHeight; // below the head and the row before
  if (focused) byId("content").querySelector(`[data-go="${focused}"]`)?.focus();
  dock();
}

// Puts the answer next to the selected sentence or tracked word: below it on a narrow screen (within a very long sentence,
// after the selected word), else at its side and within the window.
function dock() {
  const { state } = current;
  const [answer, side] = [byId("answer"), byId("side")];
  const row = rowOf(byId("text"), state.edit?.s ?? state.place?.sentence) ?? (state.picked ? byId("chips") : null);
  const word = row && state.place && row.offsetHeight > innerHeight / 2 ? find(byId("text"), state.place.sentence, state.place.position) : null;
  const before = word?.closest(".words > *") ?? row;
  if (narrow.matches && before) {
    if (before.nextElementSibling !== answer) before.after(answer);
  } else if (answer.parentNode !== side) side.append(answer);
  if (narrow.matches) return;
  const top = side.getBoundingClientRect().top;
  const wanted = row ? row.getBoundingClientRect().top - top : 0;
  const lowest = innerHeight - MARGIN - answer.offsetHeight - top;
  answer.style.setProperty("--down", `${Math.max(Math.min(wanted, lowest), MARGIN - top, 0)}px`);
}

// On a narrow screen, scrolls to the selection and the answer below it.
export function bringIntoView() {
  const row = byId("answer").previousElementSibling;
  if (!narrow.matches || !row) return;
  byId("answer").scrollIntoView({ block: "nearest" });
  if (row.getBoundingClientRect().top < byId("play").parentNode.getBoundingClientRect().bottom) row.scrollIntoView();
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

function isOnScreen(row) {
  const { top, bottom } = row?.getBoundingClientRect() ?? { top: 0, bottom: 0 };
  return top < innerHeight && bottom > 0;
}

// Playback: shows the guesses after each sentence, from the beginning. The page scrolls along, unless the user has scrolled away.
export function play() {
  pause();
  const { state } = current;
  goTo(Math.min(1, state.sentences.length));
  byId("play").textContent = "❚❚ Pause";
  playing = setInterval(() => {
    if (state !== current.state || (state.at >= state.total && state.total)) pause();
    else if (state.at < state.sentences.length) {
      const follows = isOnScreen(rowOf(byId("text"), state.at - 1));
      goTo(state.at + 1);
      if (follows) rowOf(byId("text"), state.at - 1).scrollIntoView({ block: "nearest", behavior: still.matches ? "auto" : "smooth" });
    }
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
