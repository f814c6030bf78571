// Reading a text: the events of a reading, and requests about it.

import { byId, element } from "./dom.js";
import { showPredictions } from "./predictions.js";
import { complain, current, empty, given, isPlaying, pause, play, say, showMeaning, showPlace, showSoon, showText } from "./show.js";
import { ask, events, Refusal } from "./stream.js";
import { find, rove, sentenceRow, whole } from "./text.js";

const ONE_COLUMN = "(max-width: 56rem)"; // as in style.css: the answers are in a separate sheet

const HINT = "Select a word in the text to see the predictions at its position.";
const MARGIN = 8; // above an element that is scrolled into view
const EXPORTED = 60; // an export of at most this many sentences contains all predictions
let before = current.state; // the reading before the current one
let running = null; // the AbortController of the current reading
let asking = null; // the AbortController of the last request for predictions; only its answer is shown
let mapping = null; // the AbortController of the request for the maps of a stopped reading

function begin({ id, names, unit, naming_space, sentences }, kind, edit) {
  asking?.abort();
  asking = null;
  before = current.state;
  current.state = { ...empty(), id, kind, names, unit, naming_space, raw: sentences, total: sentences.length, edit };
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

// `edit` is the change since the last reading; with `plays` the text is shown sentence by sentence.
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
    for await (const { kind, entity, spaces } of events(body, mapping.signal)) {
      if (kind === "map") state.maps[entity] = spaces;
    }
    if (state === current.state) showMeaning();
  } catch {
    // no map is drawn; the list gives the same information
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

// On a narrow screen, scrolls the sheet to the selected word or its predictions.
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

// Loads the predictions of every word, so that an exported page needs no server.
export async function askForAll() {
  const { state } = current;
  if (state.sentences.length > EXPORTED) return;
  for (const [s, { tokens }] of state.sentences.entries()) {
    if (tokens.every((_, p) => state.predictions[`${s}.${p}`])) continue;
    say(`Saving: sentence ${s + 1} of ${state.sentences.length} …`);
    const found = await (await ask("/api/predict", { ...question(state), sentence: s, position: "all" })).json();
    found.forEach((one, p) => { state.predictions[`${s}.${p}`] = one; });
  }
}
