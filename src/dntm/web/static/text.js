// The text: one row per sentence, one button per word; tracked words are marked, surprisal is a shade.

import { element } from "./dom.js";
import { bits, hue, shown, strength } from "./shade.js";

const LITTLE = 0.3; // bits below which a difference is not marked
const LONGEST = 30; // letters that fit on one line of a phone

function spoken(token, best, state) {
  const name = token.end ? "end of the sentence" : token.word;
  const kind = !token.entity ? "" : state.unknown.includes(token.entity) ? ", unknown word" : ", name";
  const guess = best ? `, best guess ${best}` : "";
  return `${name}${kind}${guess}, surprisal ${bits(token.surprisal)} ${state.unit} with memory, ${bits(token.static_surprisal)} without`;
}

function wordButton(token, s, p, state) {
  const after = state.sentences[s].entities.find((one) => one.entity === token.entity);
  const best = after?.predicted_words[0]?.word ?? "";
  const kind = !token.entity ? "" : state.unknown.includes(token.entity) ? " entity new" : " entity";
  return element(
    "button",
    {
      type: "button",
      class: `token${kind}${token.end ? " end" : ""}`,
      tabindex: "-1",
      "data-s": s,
      "data-p": p,
      "aria-label": spoken(token, best, state),
      "aria-pressed": "false",
      style: token.entity ? { "--hue": String(hue(token.entity)) } : {},
    },
    best ? element("span", { class: "best", dir: "ltr" }, best) : "",
    element("span", { class: "word" }, token.end ? "end" : token.word),
    element("span", { class: "bits" }),
  );
}

export function sentenceRow(state, s, editable) {
  const sentence = state.sentences[s];
  const words = element("p", { class: "words", dir: "auto" });
  let together = null; // tokens without a space between them stay on one line, unless too long
  let letters = 0;
  sentence.tokens.forEach((token, p) => {
    if (token.space || !together) {
      together = element("span", { class: "together" });
      letters = 0;
      words.append(p > 0 ? " " : "", together);
    }
    letters += token.word.length;
    together.append(wordButton(token, s, p, state));
    together.classList.toggle("together", letters <= LONGEST);
  });
  const go = element(
    "button",
    { type: "button", class: "go", tabindex: "-1", "data-go": s, "aria-label": `Guesses after sentence ${s + 1}`, title: `Sentence ${s + 1}: show the guesses after it` },
    String(s + 1),
  );
  const edit = element(
    "button",
    { type: "button", class: "edit", tabindex: "-1", "data-edit": s, "aria-label": `Edit sentence ${s + 1}` },
    "Edit",
  );
  const starts = sentence.starts ? " starts" : "";
  return element("div", { class: `sentence${starts}`, "data-row": s }, go, words, editable ? edit : "");
}

// A suggested edit, below the sentence that it changes.
export function suggestionRow(text, s) {
  return element(
    "button",
    { type: "button", class: "try", "data-try": s },
    "Try it: change this sentence to ",
    element("q", {}, text),
  );
}

export function editorRow(text, s, done, cancel) {
  const field = element("textarea", { rows: "3", id: "sentence", spellcheck: "false" });
  field.value = text;
  field.addEventListener("keydown", (event) => {
    if (event.key === "Escape") cancel();
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) done(field.value);
  });
  return element(
    "div",
    { class: "sentence editing", "data-row": s },
    element("span", { class: "go" }, String(s + 1)),
    element(
      "div",
      {},
      element("label", { for: "sentence" }, `Sentence ${s + 1}`),
      field,
      element(
        "div",
        { class: "row" },
        element("button", { type: "button", class: "primary", on: { click: () => done(field.value) } }, "Read from here"),
        element("button", { type: "button", on: { click: cancel } }, "Cancel"),
      ),
    ),
  );
}

// Joins sentences to a text: one line per paragraph, separated by blank lines.
export function whole(sentences) {
  const paragraphs = [];
  sentences.forEach(({ text, paragraph }, s) => {
    if (s === 0 || paragraph !== sentences[s - 1].paragraph) paragraphs.push([]);
    paragraphs.at(-1).push(text);
  });
  return paragraphs.map((parts) => parts.join(" ")).join("\n\n");
}

export function paint(view, state, mode) {
  view.dataset.mode = mode;
  for (const row of view.querySelectorAll("[data-row]")) {
    row.classList.toggle("now", Number(row.dataset.row) + 1 === state.at && state.at < state.total);
  }
  for (const button of view.querySelectorAll(".token")) {
    const token = state.sentences[button.dataset.s].tokens[button.dataset.p];
    const value = shown(token, mode);
    button.style.setProperty("--shade", mode === "off" ? "0" : strength(value, mode).toFixed(3));
    button.classList.toggle("worse", mode === "difference" && value < -LITTLE);
    button.classList.toggle("later", Number(button.dataset.s) >= state.at);
    button.classList.toggle("chosen", token.entity > 0 && token.entity === state.entity);
    button.lastChild.textContent = bits(value, mode === "difference");
  }
  const isComplete = state.sentences.length === state.total; // an edit is compared with the whole reading
  for (const button of view.querySelectorAll(".try")) button.classList.toggle("later", !isComplete || Number(button.dataset.try) >= state.at);
}

export function mark(view, place) {
  for (const button of view.querySelectorAll('.token[aria-pressed="true"]')) {
    button.setAttribute("aria-pressed", "false");
  }
  const button = place && find(view, place.sentence, place.position);
  if (button) button.setAttribute("aria-pressed", "true");
}

export function find(view, s, p) {
  return view.querySelector(`.token[data-s="${s}"][data-p="${p}"]`);
}

export function rowOf(view, s) {
  return view.querySelector(`[data-row="${s}"]`);
}

// Tab reaches one word and the buttons of its sentence; arrow keys move between words and sentences.
export function rove(view, button) {
  for (const other of view.querySelectorAll('[tabindex="0"]')) other.tabIndex = -1;
  const row = button?.closest("[data-row]").querySelectorAll(".go, .edit") ?? [];
  for (const one of button ? [button, ...row] : []) one.tabIndex = 0;
}

export function arrows(view, event) {
  const from = event.target.closest(".token");
  if (!from) return;
  const all = [...view.querySelectorAll(".token")].filter((button) => button.checkVisibility());
  const here = all.indexOf(from);
  const s = Number(from.dataset.s);
  const first = (row) => all.find((button) => Number(button.dataset.s) === row);
  const to = {
    ArrowRight: all[here + 1],
    ArrowLeft: all[here - 1],
    ArrowDown: first(s + 1),
    ArrowUp: first(s - 1),
    Home: first(s),
    End: all.findLast((button) => Number(button.dataset.s) === s),
  }[event.key];
  if (!to) return;
  event.preventDefault();
  rove(view, to);
  to.focus();
}
