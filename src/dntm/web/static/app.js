// The page: event listeners and startup.

import { byId, element } from "./dom.js";
import { edit, readWith } from "./editing.js";
import { save } from "./export.js";
import { askForAll, choose, read, stopReading } from "./reading.js";
import { complain, current, given, goTo, isPlaying, pause, play, say, showAll, showMeaning, showPlace, showText } from "./show.js";
import { ask } from "./stream.js";
import { arrows, rove } from "./text.js";

let about = null; // the server's answer to /api/about
let described = null; // the promise of that answer

const OWN = "#own"; // a URL with this fragment opens without an example

function jump(s) {
  pause();
  goTo(s);
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
  });
  byId("text").addEventListener("keydown", (event) => arrows(byId("text"), event));
  byId("result").addEventListener("click", ({ target }) => {
    const go = target.closest("[data-go]");
    if (go) jump(Number(go.dataset.go) + 1);
    const chip = target.closest("[data-entity]");
    if (chip) {
      Object.assign(current.state, { entity: Number(chip.dataset.entity), picked: true });
      showPlace();
      showMeaning();
    }
  });
  byId("slider").addEventListener("input", ({ target }) => jump(Number(target.value)));
  byId("play").addEventListener("click", () => (isPlaying() ? pause() : play()));
  byId("close").addEventListener("click", () => {
    current.state.edit = null;
    showMeaning();
    byId("text").focus();
  });
  byId("shades").addEventListener("change", showPlace);
  byId("spaces").addEventListener("change", showMeaning);
  byId("numbers").addEventListener("change", ({ target }) => byId("text").classList.toggle("numbered", target.checked));
}

function listenToForm() {
  byId("form").addEventListener("submit", (event) => {
    event.preventDefault();
    byId("try").hidden = true;
    byId("example").value = "";
    read(byId("input").value);
  });
  byId("stop").addEventListener("click", stopReading);
  byId("example").addEventListener("change", ({ target }) => {
    if (target.value) readExample(Number(target.value));
  });
  byId("try").addEventListener("click", () => {
    const [sentence, instead] = about.examples[Number(byId("example").value)].edit;
    byId("try").hidden = true;
    readWith(sentence - 1, instead);
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
    byId("example").value = "";
    byId("try").hidden = true;
    read(byId("input").value);
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

function readExample(number) {
  const { text, edit: [sentence, instead] } = about.examples[number];
  byId("input").value = text;
  byId("example").value = String(number);
  byId("try").textContent = `Try it: change sentence ${sentence} to “${instead}”`;
  byId("try").hidden = false;
  read(text, { plays: !matchMedia("(prefers-reduced-motion: reduce)").matches });
}

function showGiven() {
  current.state = given;
  for (const id of ["source", "export", "try"]) byId(id).remove();
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
  byId("example").append(...about.examples.map(({ title }, i) => element("option", { value: i }, title)));
  byId("entities").append(...about.entities.map(({ value, title }) => element("option", { value }, title)));
  if (location.hash !== OWN) readExample(0);
}

start();
