// The page: event listeners and startup.

import { byId, element } from "./dom.js";
import { edit, readWith } from "./editing.js";
import { save } from "./export.js";
import { askForAll, choose, read, stopReading } from "./reading.js";
import { bringIntoView, complain, current, given, goTo, isPlaying, narrow, pause, play, say, showAll, showMeaning, showPlace, showText, still } from "./show.js";
import { ask } from "./stream.js";
import { arrows, find, rove, rowOf } from "./text.js";

let about = null; // the server's answer to /api/about
let described = null; // the promise of that answer

const OWN = "#own"; // a URL with this fragment opens without an example

function jump(s) {
  pause();
  goTo(s);
}

// Selects a tracked word without a position in the text, or nothing.
function select(entity) {
  Object.assign(current.state, { place: null, edit: null }, entity);
  showPlace();
  showMeaning();
}

// Closes the answer; the focus returns to what opened it.
function close() {
  const { edit: change, place, entity } = current.state;
  select({ picked: false });
  const [text, chip] = [byId("text"), byId("chips").querySelector(`[data-entity="${entity}"]`)];
  const opener = change ? rowOf(text, change.s)?.querySelector(".edit") : place ? find(text, place.sentence, place.position) : chip;
  (opener ?? text).focus({ preventScroll: true });
}

function listenToText() {
  byId("text").addEventListener("click", ({ target }) => {
    const token = target.closest(".token");
    if (token) {
      rove(byId("text"), token);
      choose(Number(token.dataset.s), Number(token.dataset.p));
    }
    const editing = target.closest("[data-edit]");
    if (editing) edit(Number(editing.dataset.edit));
    if (target.closest("[data-try]")) readWith(current.state.suggested.s, current.state.suggested.text);
  });
  byId("text").addEventListener("keydown", (event) => arrows(byId("text"), event));
  byId("result").addEventListener("click", ({ target }) => {
    const go = target.closest("[data-go]");
    if (go) jump(Number(go.dataset.go) + 1);
    const chip = target.closest("[data-entity]");
    if (chip) {
      select({ entity: Number(chip.dataset.entity), picked: true });
      bringIntoView();
    }
  });
  byId("slider").addEventListener("input", ({ target }) => jump(Number(target.value)));
  byId("play").addEventListener("click", () => (isPlaying() ? pause() : play()));
  byId("close").addEventListener("click", close);
  byId("result").addEventListener("keydown", ({ key, target }) => {
    if (key === "Escape" && !byId("close").hidden && !target.closest(".editing")) close();
  });
  byId("shades").addEventListener("change", showPlace);
  byId("views").addEventListener("change", () => {
    showMeaning();
    bringIntoView();
  });
  narrow.addEventListener("change", showMeaning);
  byId("numbers").addEventListener("change", ({ target }) => byId("text").classList.toggle("numbered", target.checked));
}

function listenToForm() {
  byId("form").addEventListener("submit", (event) => {
    event.preventDefault();
    readOwn();
  });
  byId("stop").addEventListener("click", stopReading);
  byId("examples").addEventListener("click", ({ target }) => {
    if (target.dataset.example) readExample(Number(target.dataset.example));
  });
  byId("file").addEventListener("change", async ({ target }) => {
    const [file] = target.files;
    if (!file) return;
    try {
      const { characters } = await described; // a file can be chosen before the server has answered
      if (file.size > 4 * characters) {
        complain(`${file.name} has ${file.size.toLocaleString("en")} bytes; the limit is ${characters.toLocaleString("en")} characters.`);
        return;
      }
    } catch (error) {
      complain(error.message);
      return;
    }
    try {
      byId("input").value = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
    } catch {
      complain(`${file.name} is not UTF-8 text.`);
      return;
    }
    readOwn();
  });
  byId("export").addEventListener("click", async () => {
    try {
      await askForAll();
      await save({ ...current.state, model: byId("model").textContent });
      say("Saved as reading.html.");
    } catch (error) {
      complain(error.message);
    }
  });
}

function pressExample(number) {
  for (const chip of byId("examples").querySelectorAll("button")) {
    chip.setAttribute("aria-pressed", String(chip.dataset.example === String(number)));
  }
}

function readOwn() {
  pressExample(null);
  byId("input").scrollTop = 0;
  read(byId("input").value);
}

function readExample(number) {
  const { text, edit: [sentence, instead] } = about.examples[number];
  pressExample(number);
  read(text, { plays: !still.matches, suggested: { s: sentence - 1, text: instead } });
}

function showGiven() {
  current.state = given;
  for (const id of ["source", "export"]) byId(id).remove();
  byId("model").textContent = given.model;
  byId("result").hidden = false;
  showText();
  showAll();
  if (given.place) choose(given.place.sentence, given.place.position);
}

async function start() {
  listenToText();
  if (given) {
    showGiven();
    return;
  }
  described = ask("/api/about").then((answer) => answer.json());
  listenToForm();
  try {
    about = await described;
  } catch (error) {
    complain(error.message);
    return;
  }
  byId("read").disabled = false; // only now is there a choice of what to track
  byId("model").textContent = `${about.model}. Compared with ${about.static}.`;
  byId("examples").append(...about.examples.map(({ word }, i) => element("button", { type: "button", "data-example": i, "aria-pressed": "false" }, word)));
  byId("entities").append(...about.entities.map(({ value, title }) => element("option", { value }, title)));
  if (location.hash !== OWN) readExample(0);
}

start();
