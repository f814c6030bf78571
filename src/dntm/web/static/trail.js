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
    sentence.entities.filter((one) => one.entity === entity).map((one) => ({ ...one, s })));
}

// Tracked words: unknown words first, then by number of mentions.
export function mentioned(state) {
  const counts = new Map();
  for (const { entity } of state.sentences.flatMap(({ tokens }) => tokens)) {
    if (entity) counts.set(entity, (counts.get(entity) ?? 0) + 1);
  }
  const isNew = (entity) => Number(state.unknown.includes(entity));
  return [...counts.keys()].sort((one, other) =>
    isNew(other) - isNew(one) || counts.get(other) - counts.get(one) || one - other);
}

function guess(one) {
  return one.predicted_words.slice(0, WORDS).map(({ word }) => word).join(", ");
}

// "dog, boy, horse" with the best guess in bold.
function guessIn(tag, one) {
  const [best, ...others] = guess(one).split(", ");
  return element(tag, { class: "guess" }, element("b", {}, best), others.length ? `, ${others.join(", ")}` : "");
}

const CONFIDENCE = "Confidence is the probability that one of these words is right.";

function confidence(one, name = "") {
  if (one.confidence === null || one.confidence === undefined) return "";
  return element(
    "span",
    { class: "confidence", style: { "--part": one.confidence.toFixed(3) }, title: CONFIDENCE },
    name + percent(one.confidence),
  );
}

export function showChips(view, state) {
  const found = mentioned(state);
  const chips = found.map((entity) => {
    const best = states(state, entity).findLast((one) => one.s < state.at)?.predicted_words[0]?.word;
    const isNew = state.unknown.includes(entity);
    return element(
      "button",
      {
        type: "button",
        class: `chip${isNew ? " new" : ""}`,
        "data-entity": entity,
        "aria-pressed": String(entity === state.entity),
        style: { "--hue": String(hue(entity)) },
      },
      element("span", { class: "name" }, called(state, entity)),
      isNew && best ? `: ${best}` : "",
    );
  });
  const none = "This text contains no names or unknown words to track.";
  const focused = view.contains(document.activeElement) ? document.activeElement.dataset.entity : null;
  view.replaceChildren(...(found.length ? [element("span", { class: "note" }, "Tracked words:"), ...chips] : [element("p", { class: "note" }, none)]));
  if (focused) view.querySelector(`[data-entity="${focused}"]`)?.focus();
}

function heads(...titles) {
  return element("thead", {}, element("tr", {}, titles.map((title) => (title ? element("th", { scope: "col" }, title) : element("td")))));
}

function mention(one, isShown) {
  return element(
    "tr",
    { class: isShown ? "now" : "" },
    element(
      "td",
      {},
      element("button", { type: "button", class: "go", "data-go": one.s, "aria-label": `Go to sentence ${one.s + 1}` }, String(one.s + 1)),
    ),
    guessIn("td", one),
    element("td", {}, confidence(one)),
  );
}

// The guesses for the selected word: after the selected sentence, and after each sentence that mentions it.
export function guesses(state) {
  const all = states(state, state.entity).filter((one) => one.s < state.at);
  const last = all.find((one) => one.s === state.place?.sentence) ?? all.at(-1);
  if (!last) return [element("p", { class: "note" }, "Not mentioned yet.")];
  if (!last.predicted_words.length) return [element("p", { class: "note" }, "This model does not make guesses.")];
  const words = last.predicted_words.slice(0, WORDS).map(({ word }) => word);
  const sure = last.confidence ?? null;
  return [
    element("p", { class: "result" }, element("b", {}, words[0]), words.length > 1 ? `, ${words.slice(1).join(" or ")}` : ""),
    element("p", { class: "note" }, `after sentence ${last.s + 1}${sure === null ? "" : `, with a confidence of ${percent(sure)}`}`),
    element("div", { class: "trail" }, element("table", {}, heads("Sentence", "Best guesses", sure === null ? "" : "Confidence"), element("tbody", {}, all.map((one) => mention(one, one === last))))),
    sure === null ? "" : element("p", { class: "note" }, CONFIDENCE),
  ];
}

// The last guesses by name, because an edit can change the numbers.
export function lastStates(state) {
  return Object.fromEntries(mentioned(state).map((entity) =>
    [called(state, entity), { ...states(state, entity).at(-1), isNew: state.unknown.includes(entity) }]));
}

function changedCell(one) {
  if (!one) return element("td", { class: "note" }, "not in the text");
  return element("td", {}, guessIn("span", one), " ", confidence(one, "confidence "));
}

// The guesses before and after an edit, side by side; unchanged ones are left out.
export function comparison(state) {
  const { from, to, before } = state.edit;
  const after = lastStates(state);
  const changed = [...new Set([...Object.keys(after), ...Object.keys(before)])]
    .filter((name) => !before[name] || !after[name] || guess(before[name]) !== guess(after[name]));
  const unknown = changed.filter((name) => (after[name] ?? before[name]).isNew);
  const rows = (unknown.length ? unknown : changed).map((name) =>
    element("tr", {}, element("th", { scope: "row" }, name), changedCell(before[name]), changedCell(after[name])));
  return [
    element("p", { class: "diff" }, element("del", {}, from), " ", element("ins", {}, to)),
    rows.length
      ? element("table", { class: "compare" }, heads("", "Before", "After"), element("tbody", {}, rows))
      : element("p", {}, "No guesses have changed."),
  ];
}
