// The page: one state, the events that change it, and what is shown of it.

import { byId, chosen, element } from "./dom.js";
import { embedded, save } from "./export.js";
import { showMap } from "./map.js";
import { showPredictions } from "./predictions.js";
import { bits, LEGENDS } from "./shade.js";
import { ask, events } from "./stream.js";
import { arrows, editorRow, find, mark, paint, rove, sentenceRow } from "./text.js";
import { mentioned, showChips, showTrail } from "./trail.js";

const HINT = "Choose a word of the text to see what each model expected in its place.";
const given = embedded(); // the reading of an exported page; none on the served one
let state = empty();
let before = state; // the reading that the one under way takes over from
let running = null; // the AbortController of the reading under way
let asked = 0; // counts questions for predictions: only the last answer is shown
let about = null;
let painting = false;

function empty() {
  return { id: "", sentences: [], raw: [], names: {}, maps: {}, notes: [], unit: "bits", total: 0, at: 0, entity: 0, place: null };
}

// --- what is shown ---------------------------------------------------------------------------

function showText() {
  byId("text").replaceChildren(...state.sentences.map((sentence, s) => sentenceRow(sentence, s, state.unit, !given)));
  rove(byId("text"), find(byId("text"), 0, 0));
}

function showMeaning() {
  if (!state.entity && mentioned(state).length) state.entity = mentioned(state)[0][0];
  const space = chosen("space");
  showChips(byId("chips"), state);
  showMap(byId("map"), state, space);
  showTrail(byId("trail"), state, space);
}

function showPlace() {
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
  const tokens = state.sentences.flatMap((sentence) => sentence.tokens);
  const mean = (field, some) => bits(some.reduce((sum, token) => sum + token[field], 0) / some.length);
  const said = (name, some) => (some.length
    ? `${name}: ${mean("surprisal", some)} ${state.unit} a word dynamic, ${mean("static_surprisal", some)} static`
    : "");
  const back = tokens.filter((token) => token.group === "reappearing");
  byId("totals").textContent = [said("All words", tokens), said("reappearing entities", back), ...state.notes]
    .filter(Boolean).join(" · ");
}

function showAll() {
  showPlace();
  showMeaning();
  showTotals();
}

// While sentences stream in, the page is painted once a frame.
function showSoon() {
  if (painting) return;
  painting = true;
  requestAnimationFrame(() => {
    painting = false;
    showAll();
  });
}

function say(message) {
  byId("status").textContent = message;
}

function complain(message) {
  byId("error").textContent = message;
}

// --- reading ---------------------------------------------------------------------------------

function begin(event) {
  const { id, names, notes, unit, sentences } = event;
  before = state;
  state = { ...empty(), id, names, notes, unit, raw: sentences, total: sentences.length };
  if (names[before.entity] === before.names[before.entity]) state.entity = before.entity;
  byId("result").hidden = false;
  byId("own").open = false;
  byId("expected").replaceChildren(element("p", { class: "note" }, HINT));
  showText();
}

function add({ index: s, tokens, entities }) {
  const raw = state.raw[s];
  const starts = s > 0 && raw.paragraph !== state.raw[s - 1].paragraph;
  const sentence = { text: raw.text, starts, tokens, entities };
  const follows = state.at === state.sentences.length;
  state.sentences.push(sentence);
  byId("text").append(sentenceRow(sentence, s, state.unit, !given));
  if (s === 0) rove(byId("text"), find(byId("text"), 0, 0));
  if (follows) state.at = state.sentences.length;
  byId("progress").value = state.sentences.length / state.total;
  showSoon();
}

function handle(event) {
  if (event.kind === "start") begin(event);
  if (event.kind === "sentence") add(event);
  if (event.kind === "kept") add({ ...before.sentences[event.index], index: event.index });
  if (event.kind === "map") state.maps[event.entity] = event.spaces;
  if (event.kind === "error") complain(event.message);
  if (event.kind === "end") {
    say(`Read ${event.computed} of ${state.total} sentences in ${event.seconds.toFixed(1)} s.`);
    showSoon();
  }
}

async function read(text) {
  running?.abort();
  const mine = new AbortController();
  running = mine;
  complain("");
  say("Reading …");
  busy(true);
  try {
    const have = state.sentences.length;
    const body = { text, entities: byId("entities").value, reading: state.id, have };
    for await (const event of events(body, mine.signal)) {
      if (running !== mine) return;
      handle(event);
    }
  } catch (error) {
    if (running !== mine) return;
    say(error.name === "AbortError" ? "Stopped." : "");
    if (error.name !== "AbortError") complain(error.message);
  } finally {
    if (running === mine) {
      running = null;
      busy(false);
    }
  }
}

function busy(is) {
  byId("stop").hidden = !is;
  byId("progress").hidden = !is;
  byId("progress").value = 0;
  byId("text").setAttribute("aria-busy", String(is));
}

function whole(sentences) {
  const paragraphs = [];
  sentences.forEach(({ text, paragraph }, s) => {
    if (s === 0 || paragraph !== sentences[s - 1].paragraph) paragraphs.push([]);
    paragraphs.at(-1).push(text);
  });
  return paragraphs.map((parts) => parts.join(" ")).join("\n\n");
}

// --- predictions -----------------------------------------------------------------------------

async function choose(s, p) {
  const token = state.sentences[s].tokens[p];
  state.place = { sentence: s, position: p };
  if (token.entity) state.entity = token.entity;
  showPlace();
  showMeaning();
  showPredictions(byId("expected"), state, state.place, null, state.unit);
  if (given) return;
  const mine = ++asked;
  try {
    const place = { sentence: s, position: p };
    const question = { text: whole(state.raw), entities: byId("entities").value, reading: state.id, ...place };
    const found = await (await ask("/api/predict", question)).json();
    if (mine === asked) showPredictions(byId("expected"), state, state.place, found, state.unit);
  } catch (error) {
    if (mine === asked) complain(error.message);
  }
}

// --- editing ---------------------------------------------------------------------------------

function edit(s) {
  const row = byId("text").querySelector(`[data-row="${s}"]`);
  const cancel = () => {
    editor.replaceWith(row);
    row.querySelector(".edit").focus();
  };
  const done = (text) => {
    const sentences = state.raw.map((one, i) => (i === s ? { ...one, text } : one));
    const edited = whole(sentences.filter((one) => one.text.trim()));
    byId("input").value = edited;
    byId("text").focus();
    read(edited);
  };
  const editor = editorRow(state.sentences[s], s, done, cancel);
  row.replaceWith(editor);
  editor.querySelector("textarea").focus();
}

function goTo(s) {
  state.at = s;
  showPlace();
  showMeaning();
}

// --- events ----------------------------------------------------------------------------------

function listenToText() {
  byId("text").addEventListener("click", ({ target }) => {
    const token = target.closest(".token");
    if (token) {
      rove(byId("text"), token);
      choose(Number(token.dataset.s), Number(token.dataset.p));
    }
    const editing = target.closest("[data-edit]");
    if (editing) edit(Number(editing.dataset.edit));
  });
  byId("text").addEventListener("keydown", (event) => arrows(byId("text"), event));
  byId("result").addEventListener("click", ({ target }) => {
    const go = target.closest("[data-go]");
    if (go) goTo(Number(go.dataset.go) + 1);
    const chip = target.closest("[data-entity]");
    if (chip) {
      state.entity = Number(chip.dataset.entity);
      showPlace();
      showMeaning();
    }
  });
  byId("slider").addEventListener("input", ({ target }) => goTo(Number(target.value)));
  byId("shades").addEventListener("change", showPlace);
  byId("spaces").addEventListener("change", showMeaning);
  byId("numbers").addEventListener("change", ({ target }) => byId("text").classList.toggle("numbered", target.checked));
}

function listenToForm() {
  byId("form").addEventListener("submit", (event) => {
    event.preventDefault();
    read(byId("input").value);
  });
  byId("stop").addEventListener("click", () => running?.abort());
  byId("example").addEventListener("change", ({ target }) => {
    if (!target.value) return;
    byId("input").value = about.examples[Number(target.value)].text;
    read(byId("input").value);
  });
  byId("file").addEventListener("change", async ({ target }) => {
    const [file] = target.files;
    if (!file) return;
    if (file.size > 4 * about.characters) {
      complain(`${file.name} has ${file.size.toLocaleString("en")} bytes; a text may have ${about.characters.toLocaleString("en")} characters.`);
      return;
    }
    byId("input").value = await file.text();
    byId("example").value = "";
    read(byId("input").value);
  });
  byId("export").addEventListener("click", async () => {
    try {
      await save({ ...state, model: byId("model").textContent });
      say("Saved as reading.html.");
    } catch (error) {
      complain(error.message);
    }
  });
}

async function start() {
  listenToText();
  if (given) {
    state = given;
    byId("source").remove();
    byId("export").remove();
    byId("model").textContent = given.model;
    byId("result").hidden = false;
    showText();
    showAll();
    if (state.place) showPredictions(byId("expected"), state, state.place, null, state.unit);
    return;
  }
  listenToForm();
  try {
    about = await (await ask("/api/about")).json();
  } catch (error) {
    complain(error.message);
    return;
  }
  byId("model").textContent = `${about.model}; beside it ${about.static}`;
  byId("example").append(...about.examples.map(({ title }, i) => element("option", { value: i }, title)));
  byId("entities").append(...about.entities.map(({ value, title }) => element("option", { value }, title)));
}

start();
