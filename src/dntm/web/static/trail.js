// Best guesses for each tracked word, after each mention, and before and after an edit.

import { element } from "./dom.js";
import { hue, percent } from "./shade.js";

const WORDS = 3; // words per guess

export function called(state, entity) {
  return state.names[entity] ?? `[${entity}]`;
}

// Every state of an entity, in order, with its sentence (from 0).
export function states(state, entity) {
  return state.sentences.flatMap((sentence, s) =>
    (sentence.entities ?? []).filter((one) => one.entity === entity).map((one) => ({ ...one, s })));
}

export function mentioned(state) {
  const counts = new Map();
  for (const sentence of state.sentences) {
    for (const token of sentence.tokens ?? []) {
      if (token.entity) counts.set(token.entity, (counts.get(token.entity) ?? 0) + 1);
    }
  }
  return [...counts.entries()].sort((one, other) => other[1] - one[1] || one[0] - other[0]);
}

function times(count) {
  return count === 1 ? "after 1 mention" : `after ${count} mentions`;
}

function guess(one) {
  return one.predicted_words.slice(0, WORDS).map(({ word }) => word).join(", ");
}

function confidence(one) {
  if (one.confidence === null || one.confidence === undefined) return "";
  return element(
    "span",
    { class: "confidence", style: { "--part": one.confidence.toFixed(3) }, title: "Total probability of these words" },
    `${one.confidence_label}, ${percent(one.confidence)}`,
  );
}

// One line: "after 3 mentions: horse, dog, cow".
function guessLine(one) {
  if (!one) return element("span", { class: "line note" }, "not mentioned yet");
  if (!one.predicted_words.length) return element("span", { class: "line note" }, "this model does not make guesses");
  return element(
    "span",
    { class: "line" },
    element("span", { class: "when" }, `${times(one.occurrence)}: `),
    element("b", { class: "guess" }, guess(one)),
    " ",
    confidence(one),
  );
}

export function showChips(view, state) {
  const found = mentioned(state);
  const chips = found.map(([entity, count]) => element(
    "button",
    {
      type: "button",
      class: "chip",
      "data-entity": entity,
      "aria-pressed": String(entity === state.entity),
      style: { "--hue": String(hue(entity)) },
    },
    element("span", { class: "name" }, called(state, entity)),
    " ",
    element("span", { class: "count", "aria-label": `${count} times in the text` }, `×${count}`),
    " ",
    guessLine(states(state, entity).findLast((one) => one.s < state.at)),
  ));
  const none = "This text contains no names or unknown words to track.";
  const focused = view.contains(document.activeElement) ? document.activeElement.dataset.entity : null;
  view.replaceChildren(...(found.length ? chips : [element("p", { class: "note" }, none)]));
  if (focused) view.querySelector(`[data-entity="${focused}"]`)?.focus();
}

function mention(one, state) {
  return element(
    "li",
    { class: one.s + 1 === state.at ? "now" : "" },
    element(
      "button",
      { type: "button", class: "go", "data-go": one.s, "aria-label": `Go to sentence ${one.s + 1}`, title: `sentence ${one.s + 1}` },
      String(one.s + 1),
    ),
    guessLine(one),
  );
}

// The selected word, mention by mention.
export function showTrail(view, state) {
  const all = states(state, state.entity).filter((one) => one.s < state.at);
  if (!all.length) {
    view.replaceChildren();
    return;
  }
  const name = called(state, state.entity);
  view.replaceChildren(
    element("h3", { style: { "--hue": String(hue(state.entity)) } }, element("span", { class: "name" }, name), ", mention by mention"),
    element("ol", { class: "trail" }, all.map((one) => mention(one, state))),
  );
}

function wordList(words, name) {
  return element(
    "ul",
    { class: "near", "aria-label": name },
    words.map(({ word, similarity }) => element(
      "li",
      { style: { "--part": Math.max(0, similarity).toFixed(3) } },
      element("span", { class: "word" }, word),
      element("span", { class: "part" }, similarity.toFixed(2)),
    )),
  );
}

function moved(title, sign, words) {
  if (!words.length) return "";
  return element("p", { class: "moved" }, element("b", {}, `${sign} ${title}: `), words.slice(0, 4).map((w) => w.word).join(", "));
}

// The nearest words of the selected word in one of the two spaces, and what the sentence changed.
export function showNearest(view, state, space) {
  const one = states(state, state.entity).findLast((found) => found.s < state.at);
  if (!one) {
    view.replaceChildren();
    return;
  }
  const changes = space === state.naming_space;
  view.replaceChildren(
    wordList(one[`${space}_words`].slice(0, 6), `Nearest words of ${called(state, state.entity)}`),
    changes ? moved("more likely after the last mention", "▲", one.gained) : "",
    changes ? moved("less likely after the last mention", "▼", one.lost) : "",
  );
}

// The last guesses by name, because an edit can change the numbers.
export function lastStates(state) {
  return Object.fromEntries(mentioned(state).map(([entity]) => [called(state, entity), states(state, entity).at(-1)]));
}

// The guesses before and after an edit, side by side; unchanged ones are left out.
export function showCompare(view, state) {
  view.hidden = !state.edit;
  if (!state.edit) return;
  const { s, from, to, before } = state.edit;
  const after = lastStates(state);
  const names = [...new Set([...Object.keys(after), ...Object.keys(before)])]
    .filter((name) => !before[name] || !after[name] || guess(before[name]) !== guess(after[name]));
  const gone = () => element("span", { class: "note" }, "not in the text");
  const rows = names.map((name) => element(
    "tr",
    {},
    element("th", { scope: "row" }, name),
    element("td", {}, before[name] ? guessLine(before[name]) : gone()),
    element("td", {}, after[name] ? guessLine(after[name]) : gone()),
  ));
  const head = element("tr", {}, element("td", {}), element("th", { scope: "col" }, "before"), element("th", { scope: "col" }, "after"));
  view.querySelector("#changed").replaceChildren(
    element("p", { class: "note" }, `Sentence ${s + 1}: `, element("del", {}, from), " ", element("ins", {}, to)),
    names.length
      ? element("table", {}, element("thead", {}, head), element("tbody", {}, rows))
      : element("p", {}, "No guesses have changed."),
  );
}
