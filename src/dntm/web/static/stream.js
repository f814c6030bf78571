// Requests to the server: a reading arrives as one JSON value per line, as it is computed.

const CUT_OFF = "The connection was lost before the reading was complete.";

// The server's messages look like those in the terminal: no capital letter, no period.
export class Refusal extends Error {
  constructor(message) {
    super(message.replace(/^[a-z]/, (first) => first.toUpperCase()).replace(/[^.?!]$/, "$&."));
  }
}

async function refusal(response) {
  let message = response.status === 503 ? "The server is busy. Try again in a moment." : `The server returned status ${response.status}.`;
  try {
    message = (await response.json()).message ?? message;
  } catch {
    // not JSON: only the status is known
  }
  return new Refusal(message);
}

export async function ask(path, body, signal) {
  const options = body === undefined ? {} : {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  };
  let response;
  try {
    response = await fetch(path, { ...options, signal });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refusal("The server is not responding. Is `dntm serve` still running?");
  }
  if (!response.ok) throw await refusal(response);
  return response;
}

export async function* events(body, signal) {
  const response = await ask("/api/read", body, signal);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  let last = "";
  for (;;) {
    const { value, done } = await piece(reader);
    if (done) break;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const text of lines) {
      const event = JSON.parse(text);
      last = event.kind;
      yield event;
    }
  }
  if (last !== "end" && last !== "error") throw new Refusal(CUT_OFF);
}

async function piece(reader) {
  try {
    return await reader.read();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refusal(CUT_OFF);
  }
}
