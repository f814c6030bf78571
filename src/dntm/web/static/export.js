// Export: the page with this reading in one file that needs no server.

import { ask } from "./stream.js";

const SLOT = 'id="reading-data">'; // the reading is inserted after its first occurrence

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

// "<" is escaped because it could end the script element.
export async function save(state) {
  const page = await (await ask("/static/export.html")).text();
  const data = JSON.stringify(state).replaceAll("<", "\\u003c");
  download(page.replace(SLOT, () => SLOT + data), "reading.html");
}

export function embedded() {
  const slot = document.querySelector('script[type="application/json"]#reading-data');
  return slot ? JSON.parse(slot.textContent) : null;
}
