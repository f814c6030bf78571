// The trail of a meaning: the entities, and for the chosen one its nearest words after each mention.

import { element } from "./dom.js";
import { hue } from "./shade.js";

export function called(state, entity) {
  return state.names[entity] ?? `[${entity}]`;
}

// Every state of an entity, in order: the sentence (from zero) and what the reader said there.
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

export function showChips(view, state) {
  const found = mentioned(state);
  const chips = found.map(([entity, count]) => element(
    "button",
    {
      type: "button",
      class: "chip",
      "data-entity": entity,
      "aria-label": `${called(state, entity)}, entity ${entity}, ${count} mentions`,
      "aria-pressed": String(entity === state.entity),
      style: { "--hue": String(hue(entity)) },
    },
    element("sup", {}, String(entity)),
    element("span", { class: "name" }, called(state, entity)),
    element("span", { class: "count" }, `×${count}`),
  ));
  const none = "No name or unknown word of this text comes back, so there is no entity to follow.";
  const focused = view.contains(document.activeElement) ? document.activeElement.dataset.entity : null;
  view.replaceChildren(...(found.length ? chips : [element("p", { class: "note" }, none)]));
  if (focused) view.querySelector(`[data-entity="${focused}"]`)?.focus();
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

function mention(one, state, space) {
  const now = one.s + 1 === state.at;
  return element(
    "li",
    { class: now ? "now" : one.s >= state.at ? "later" : "" },
    element(
      "button",
      { type: "button", class: "go", "data-go": one.s, "aria-label": `Meanings after sentence ${one.s + 1}` },
      String(one.s + 1),
    ),
    element(
      "div",
      {},
      element("p", { class: "nearest" }, one[`${space}_words`].slice(0, 5).map((w) => w.word).join(", ")),
      space === state.changing ? moved("nearer", "▲", one.gained) : "",
      space === state.changing ? moved("farther", "▼", one.lost) : "",
    ),
  );
}

export function showTrail(view, state, space) {
  if (!state.entity) {
    view.replaceChildren();
    return;
  }
  const all = states(state, state.entity);
  const current = all.findLast((one) => one.s < state.at);
  const name = called(state, state.entity);
  const now = current
    ? wordList(current[`${space}_words`].slice(0, 6), `Nearest words of ${name}`)
    : element("p", { class: "note" }, `${name} has not been mentioned yet: its meaning is empty.`);
  const when = current ? `after its mention in sentence ${current.s + 1}` : "before its first mention";
  view.replaceChildren(
    element("h3", { style: { "--hue": String(hue(state.entity)) } }, element("span", { class: "name" }, name), " ", element("small", {}, when)),
    now,
    element("h3", { class: "quiet" }, "Its trail, mention by mention"),
    element("ol", { class: "trail" }, all.map((one) => mention(one, state, space))),
  );
}
