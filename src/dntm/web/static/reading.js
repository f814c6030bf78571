// Reading a text: the events that build a reading, and the questions about it.

import { byId, element } from "./dom.js";
import { showPredictions } from "./predictions.js";
import { complain, current, empty, given, isPlaying, pause, play, say, showMeaning, showPlace, showSoon, showText } from "./show.js";
import { ask, events, Refusal } from "./stream.js";
import { find, rove, sentenceRow, whole } from "./text.js";

const ONE_COLUMN = "(max-width: 56rem)"; // as in style.css: the answers stand in a sheet of their own

const HINT = "Choose any word of the text to see what was expected in its place.";
const MARGIN = 8; // above what is brought into view
const MOST_KEPT = 60; // sentences up to which an export keeps the predictions of every word
let before = current.state; // the reading that the one under way takes over from
let running = null; // the AbortController of the reading under way
let asking = null; // that of the last question for predictions: only its answer is shown
let mapping = null; // that of the question for the maps of a stopped reading

function begin({ id, names, notes, unit, changing, sentences }, kind, edit) {
  asking?.abort();
  asking = null;
  before = current.state;
  current.state = { ...empty(), id, kind, names, notes, unit, changing, raw: sentences, total: sentences.length, edit };
  if (names[before.entity] === before.names[before.entity]) {
    Object.assign(current.state, { entity: before.entity, picked: before.picked });
  }
  byId("result").hidden = false;
  byId("own").open = false;
  byId("expected").replaceChildren(element("p", { class: "note" }, HINT));
  showText();
}

function add({ index: s, tokens, entities }) {
  const { state } = current;
  const raw = state.raw[s];
  const starts = s > 0 && raw.paragraph !== state.raw[s - 1].paragraph;
  const sentence = { text: raw.text, starts, tokens, entities };
  const follows = state.at === state.sentences.length && !isPlaying();
  state.sentences.push(sentence);
  byId("text").append(sentenceRow(sentence, s, state.unit, !given));
  if (s === 0) rove(byId("text"), find(byId("text"), 0, 0));
  if (follows) state.at = state.sentences.length;
  byId("progress").value = state.sentences.length / state.total;
  showSoon();
}

function handle(event, kind, { edit = null, plays = false }) {
  if (event.kind === "start") {
    begin(event, kind, edit);
    if (plays) play();
  }
  if (event.kind === "sentence") add(event);
  if (event.kind === "kept") add({ ...before.sentences[event.index], index: event.index });
  if (event.kind === "map") current.state.maps[event.entity] = event.spaces;
  if (event.kind === "error") throw new Refusal(event.message);
  if (event.kind === "end") {
    say(`Read ${event.computed} of ${current.state.total} sentences in ${event.seconds.toFixed(1)} s.`);
    if (edit) byId("meaning").scrollTop = 0;
    showSoon();
  }
}

// `edit` is what was changed since the last reading; a text that `plays` is shown sentence by sentence.
export async function read(text, how = {}) {
  running?.abort();
  pause();
  mapping?.abort();
  const mine = new AbortController();
  running = mine;
  complain("");
  say("Reading …");
  busy(true);
  const earlier = current.state;
  try {
    const kind = byId("entities").value;
    const body = { text, entities: kind, reading: earlier.id, have: earlier.sentences.length };
    for await (const event of events(body, mine.signal)) {
      if (running !== mine) return;
      handle(event, kind, how);
    }
  } catch (error) {
    if (running === mine) halted(error, current.state !== earlier);
  } finally {
    if (running === mine) {
      running = null;
      busy(false);
    }
  }
}

export function stopReading() {
  running?.abort();
}

// A reading that did not come to its end: what was read of it stays.
function halted(error, begun) {
  const { sentences, total } = current.state;
  const stopped = error.name === "AbortError";
  if (!stopped) complain(error.message);
  say(begun ? `Stopped after ${sentences.length} of ${total} sentences.` : stopped ? "Stopped." : "");
  if (begun && sentences.length) drawMaps();
}

function busy(is) {
  byId("stop").hidden = !is;
  byId("progress").hidden = !is;
  byId("progress").value = 0;
  byId("text").setAttribute("aria-busy", String(is));
}

function question(state) {
  return { text: whole(state.raw), entities: state.kind, reading: state.id };
}

async function drawMaps() {
  const { state } = current;
  mapping = new AbortController();
  try {
    const body = { ...question(state), have: state.sentences.length };
    const found = await (await ask("/api/maps", body, mapping.signal)).json();
    for (const { entity, spaces } of found) state.maps[entity] = spaces;
    if (state === current.state) showMeaning();
  } catch {
    // no map is drawn; the trail says the same in words
  }
}

async function answer(state, place) {
  const key = `${place.sentence}.${place.position}`;
  if (!state.predictions[key] && !given) {
    asking?.abort();
    asking = new AbortController();
    state.predictions[key] = await (await ask("/api/predict", { ...question(state), ...place }, asking.signal)).json();
  }
  return state.predictions[key];
}

// A sheet that is read beside the text shows what was asked for: the word's line, or what was expected.
function bringIntoView(entity) {
  if (!matchMedia(ONE_COLUMN).matches) return;
  const line = entity && byId("chips").querySelector(`[data-entity="${entity}"]`);
  const sheet = byId("meaning");
  const top = (line || byId("predictions")).getBoundingClientRect().top;
  sheet.scrollTop += top - sheet.getBoundingClientRect().top - MARGIN;
}

export async function choose(s, p) {
  const { state } = current;
  const place = { sentence: s, position: p };
  const token = state.sentences[s].tokens[p];
  state.place = place;
  if (token.entity) Object.assign(state, { entity: token.entity, picked: true });
  showPlace();
  showMeaning();
  showPredictions(byId("expected"), state, place, null);
  bringIntoView(token.entity);
  try {
    const found = await answer(state, place);
    if (state !== current.state || state.place !== place) return;
    showPredictions(byId("expected"), state, place, found);
    bringIntoView(token.entity);
  } catch (error) {
    if (state.place === place && error.name !== "AbortError") complain(error.message);
  }
}

// Every word's predictions, so that an exported page can answer without a server.
export async function askForAll() {
  const { state } = current;
  if (state.sentences.length > MOST_KEPT) return;
  for (const [s, { tokens }] of state.sentences.entries()) {
    if (tokens.every((_, p) => state.predictions[`${s}.${p}`])) continue;
    say(`Saving: sentence ${s + 1} of ${state.sentences.length} …`);
    const found = await (await ask("/api/predict", { ...question(state), sentence: s, position: "all" })).json();
    found.forEach((one, p) => { state.predictions[`${s}.${p}`] = one; });
  }
}
