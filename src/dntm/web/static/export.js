// The export: the page with this reading inside, in one file that needs no server.

import { ask } from "./stream.js";

const SLOT = 'id="reading-data">'; // its first place in the page: where the reading goes

function download(text, name) {
  const address = URL.createObjectURL(new Blob([text], { type: "text/html" }));
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

// A "<" inside the data could end its script element, so none is written.
export async function save(state) {
  const page = await (await ask("/static/export.html")).text();
  const data = JSON.stringify(state).replaceAll("<", "\\u003c");
  download(page.replace(SLOT, () => SLOT + data), "reading.html");
}

export function embedded() {
  const slot = document.querySelector('script[type="application/json"]#reading-data');
  return slot ? JSON.parse(slot.textContent) : null;
}
