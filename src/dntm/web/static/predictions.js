// Predictions at a word, with and without memory, side by side.

import { element } from "./dom.js";
import { bits, hue, percent } from "./shade.js";

const HINT = "Select a word in the text to see the predictions at its position.";
const MEMORY = "Surprisal measures how unexpected the word was. Memory is what the model has learned about tracked words in this text.";
const UNSEEN = -1; // the server's number for unknown words and names that have not been mentioned yet

export function placeKey({ sentence, position }) {
  return `${sentence}.${position}`;
}

// Entities without a mention so far are one row, so that later text is not revealed.
function label(candidate, state) {
  if (candidate.entity === UNSEEN) return element("span", { class: "rare" }, "a new name or unknown word");
  if (candidate.entity) {
    return element(
      "span",
      { class: "entity", style: { "--hue": String(hue(candidate.entity)) } },
      element("span", { class: "word" }, state.names[candidate.entity]),
    );
  }
  return candidate.word === "<eos>" ? element("span", { class: "rare" }, "the end of the sentence") : candidate.word;
}

function isActual(candidate, token) {
  if (token.entity) return candidate.entity === (token.occurrence === 1 ? UNSEEN : token.entity);
  if (token.unknown) return candidate.entity === UNSEEN;
  if (candidate.entity) return false;
  if (token.end) return candidate.word === "<eos>";
  return [token.word, token.word.toLowerCase()].includes(candidate.word);
}

function column(title, candidates, field, state, place) {
  const token = state.sentences[place.sentence].tokens[place.position];
  const most = Math.max(...candidates.map((candidate) => candidate[field]), 1e-9);
  return element(
    "div",
    {},
    element("h3", {}, title),
    element(
      "ol",
      { class: "candidates" },
      candidates.map((candidate) => element(
        "li",
        { class: isActual(candidate, token) ? "actual" : "", style: { "--part": (candidate[field] / most).toFixed(3) } },
        element("span", { class: "candidate" }, label(candidate, state), isActual(candidate, token) ? element("span", { class: "tick-mark", role: "img", "aria-label": ", the actual word" }, " ✓") : ""),
        element("span", { class: "part" }, percent(candidate[field])),
      )),
    ),
  );
}

function lead(sentence, position) {
  const words = sentence.tokens.slice(0, position);
  return words.map((token, p) => (token.space && p > 0 ? ` ${token.word}` : token.word)).join("");
}

export function predictions(state) {
  const { place } = state;
  if (!place) return [element("p", { class: "note" }, HINT)];
  const sentence = state.sentences[place.sentence];
  const token = sentence.tokens[place.position];
  const word = token.end ? "the end of the sentence" : `“${token.word}”`;
  const found = state.predictions[placeKey(place)];
  return [
    element("p", { class: "place" }, `… ${lead(sentence, place.position).slice(-60)} `, element("b", {}, "▁")),
    element(
      "p",
      { class: "note" },
      `Actual word: ${word}${token.unknown && !token.entity ? " (unknown to the model)" : ""}. Surprisal: ${bits(token.surprisal)} ${state.unit} with memory, ${bits(token.static_surprisal)} without.`,
    ),
    found
      ? element("div", { class: "columns" }, column("With memory", found.dynamic, "probability", state, place), column("Without memory", found.static, "static_probability", state, place))
      : element("p", { class: "problem" }, place.problem ?? ""),
    element("p", { class: "note" }, MEMORY),
  ];
}
