// What the dynamic and the static model expected at a word, side by side.

import { element } from "./dom.js";
import { bits, hue, percent } from "./shade.js";

function hasAppeared(entity, state, { sentence, position }) {
  const here = state.sentences[sentence].tokens.slice(0, position);
  const earlier = state.sentences.slice(0, sentence).flatMap(({ tokens }) => tokens);
  return [...earlier, ...here].some((token) => token.entity === entity);
}

// What comes later in the text is not told: an entity has its name from its first mention on.
function label(candidate, state, place) {
  if (candidate.entity) {
    const known = hasAppeared(candidate.entity, state, place);
    return element(
      "span",
      { class: "entity", style: { "--hue": String(hue(candidate.entity)) } },
      element("span", { class: "word" }, known ? state.names[candidate.entity] : "a new entity"),
      element("sup", {}, String(candidate.entity)),
    );
  }
  if (candidate.word === "<unk>") return element("span", { class: "rare" }, "some rare word");
  return candidate.word === "<eos>" ? "¶ end of the sentence" : candidate.word;
}

function isActual(candidate, token) {
  if (token.entity || candidate.entity) return candidate.entity === token.entity;
  return token.end ? candidate.word === "<eos>" : candidate.word === token.word;
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
        element("span", { class: "candidate" }, label(candidate, state, place), isActual(candidate, token) ? element("span", { class: "tick-mark", role: "img", "aria-label": ", the word here" }, " ✓") : ""),
        element("span", { class: "part" }, percent(candidate[field])),
      )),
    ),
  );
}

function lead(sentence, position) {
  const words = sentence.tokens.slice(0, position);
  return words.map((token, p) => (token.space && p > 0 ? ` ${token.word}` : token.word)).join("");
}

export function showPredictions(view, state, place, found) {
  const sentence = state.sentences[place.sentence];
  const token = sentence.tokens[place.position];
  const word = token.end ? "the end" : `“${token.word}”`;
  const beginning = lead(sentence, place.position).slice(-60);
  view.replaceChildren(
    element(
      "p",
      { class: "place" },
      element("span", { class: "note" }, `Sentence ${place.sentence + 1} `),
      beginning ? `… ${beginning} ` : "at its beginning ",
      element("b", {}, "▁"),
    ),
    element(
      "p",
      { class: "note" },
      `In its place stands ${word}: ${bits(token.surprisal)} ${state.unit} for the dynamic model, ${bits(token.static_surprisal)} for the static one.`,
    ),
    found
      ? element("div", { class: "columns" }, column("dynamic", found.dynamic, "probability", state, place), column("static", found.static, "static_probability", state, place))
      : "",
  );
}
