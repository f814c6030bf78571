// Reading a text: the events of a reading, and requests about it.

import { byId } from "./dom.js";
import { placeKey } from "./predictions.js";
import { bringIntoView, complain, current, empty, given, isPlaying, pause, play, say, showAll, showMeaning, showPlace, showSoon, showText } from "./show.js";
import { ask, events, Refusal } from "./stream.js";
import { find, rove, sentenceRow, suggestionRow, whole } from "./text.js";

const EXPORTED = 60; // an export of at most this many sentences contains all predictions
let before = current.state; // the reading before the current one
let running = null; // the AbortController of the current reading
let asking = null; // the AbortController of the last request for predictions; only its answer is shown
let mapping = null; // the AbortController of the request for the maps of a stopped reading

function begin({ id, names, unknown, unit, sentences }, kind, { edit = null, suggested = null }) {
  asking?.abort();
  asking = null;
  before = current.state;
  current.state = { ...empty(), id, kind, names, unknown, unit, raw: sentences, total: sentences.length, edit, suggested };
  if (names[before.entity] === before.names[before.entity]) {
    Object.assign(current.state, { entity: before.entity, picked: before.picked });
  }
  byId("result").hidden = false;
  showText();
}

function add({ index: s, tokens, entities }) {
  const { state } = current;
  const raw = state.raw[s];
  const starts = s > 0 && raw.paragraph !== state.raw[s - 1].paragraph;
  const sentence = { text: raw.text, starts, tokens, entities };
  const follows = state.at === state.sentences.length && !isPlaying();
  state.sentences.push(sentence);
  byId("text").append(sentenceRow(state, s, !given));
  if (state.suggested?.s === s) byId("text").append(suggestionRow(state.suggested.text, s));
  if (s === 0 || s === state.edit?.s) rove(byId("text"), find(byId("text"), s, 0));
  if (follows) state.at = state.sentences.length;
  byId("progress").value = state.sentences.length / state.total;
  showSoon();
}

// After an edit, the sentences before it are not read again.
function summary({ computed, seconds }, total) {
  const what = computed === total ? `${total} sentence${total === 1 ? "" : "s"}` : `again from sentence ${total - computed + 1}`;
  return computed ? `Read ${what} in ${seconds.toFixed(1)} s.` : "The text has not changed.";
}

function handle(event, kind, how) {
  if (event.kind === "start") {
    begin(event, kind, how);
    if (how.plays) play();
  }
  if (event.kind === "sentence") add(event);
  if (event.kind === "kept") add({ ...before.sentences[event.index], index: event.index });
  if (event.kind === "map") current.state.maps[event.entity] = event;
  if (event.kind === "error") throw new Refusal(event.message);
  if (event.kind === "end") {
    say(summary(event, current.state.total));
    showAll();
    if (how.edit) bringIntoView();
  }
}

// `edit` is the change since the last reading, `suggested` is an edit to try; `plays` shows the text sentence by sentence.
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

// The sentences of an unfinished reading stay on the page.
function halted(error, begun) {
  const { sentences, total } = current.state;
  const stopped = error.name === "AbortError";
  if (!stopped) complain(error.message);
  say(begun ? `Stopped after ${sentences.length} of ${total} sentences.` : stopped ? "Stopped." : "");
  if (begun && sentences.length) drawMaps();
}

function busy(is) {
  if (!is && document.activeElement === byId("stop")) byId("read").focus();
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
    const read = state.sentences.length; // the server has them, so that only the maps are computed
    const body = { ...question(state), text: whole(state.raw.slice(0, read)), have: read };
    for await (const event of events(body, mapping.signal)) {
      if (event.kind === "map") state.maps[event.entity] = event;
    }
    if (state === current.state) showMeaning();
  } catch {
    // no map is drawn; the list gives the same information
  }
}

export async function choose(s, p) {
  const { state } = current;
  const place = { sentence: s, position: p };
  const { entity } = state.sentences[s].tokens[p];
  Object.assign(state, { place, edit: null }, entity ? { entity, picked: true } : {});
  pause();
  showPlace();
  showMeaning();
  bringIntoView();
  if (given || state.predictions[placeKey(place)]) return;
  complain("");
  asking?.abort();
  asking = new AbortController();
  try {
    state.predictions[placeKey(place)] = await (await ask("/api/predict", { ...question(state), ...place }, asking.signal)).json();
    if (state !== current.state || state.place !== place) return;
    showMeaning();
    bringIntoView();
  } catch (error) {
    if (state.place !== place || error.name === "AbortError") return;
    complain(error.message);
    place.problem = error.message;
    showMeaning();
  }
}

// Loads the predictions of every word, so that an exported page needs no server.
export async function askForAll() {
  const { state } = current;
  if (state.sentences.length > EXPORTED) return;
  for (const [s, { tokens }] of state.sentences.entries()) {
    say(`Saving: sentence ${s + 1} of ${state.sentences.length} …`);
    for (const p of tokens.keys()) {
      const place = { sentence: s, position: p };
      state.predictions[placeKey(place)] ??= await (await ask("/api/predict", { ...question(state), ...place })).json();
    }
  }
}
