// Editing one sentence in place; the text is read again from there.

import { byId } from "./dom.js";
import { read } from "./reading.js";
import { current, say, showPlace } from "./show.js";
import { editorRow, rowOf, whole } from "./text.js";
import { lastStates } from "./trail.js";

let opened = null; // the sentence being edited

export function edit(s) {
  if (opened?.editor.isConnected) {
    if (opened.field.value !== opened.text) {
      say(`Sentence ${opened.s + 1} is being edited: click “Read from here” or “Cancel” first.`);
      opened.field.focus();
      return;
    }
    opened.cancel();
  }
  const { text } = current.state.sentences[s];
  const row = rowOf(byId("text"), s);
  const cancel = () => {
    editor.replaceWith(row);
    showPlace();
    row.querySelector(".edit").focus();
  };
  const editor = editorRow(text, s, (changed) => readWith(s, changed), cancel);
  const field = editor.querySelector("textarea");
  opened = { s, text, editor, field, cancel };
  if (row.contains(byId("answer"))) byId("side").append(byId("answer"));
  row.replaceWith(editor);
  field.focus();
}

export function readWith(s, text) {
  const edit = { s, from: current.state.raw[s].text, to: text, before: lastStates(current.state) };
  const sentences = current.state.raw.map((one, i) => (i === s ? { ...one, text } : one));
  const edited = whole(sentences.filter((one) => one.text.trim()));
  const isExample = byId("examples").querySelector('[aria-pressed="true"]');
  if (!isExample) byId("input").value = edited;
  byId("text").focus({ preventScroll: true });
  read(edited, { edit });
}
