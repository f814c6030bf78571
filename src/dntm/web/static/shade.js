// Colors and numbers: a hue per entity, a shade per surprisal.

const GOLDEN_ANGLE = 137.508;
const DARKEST = 16; // bits at which the shade is full
const WIDEST = 6; // bits of difference at which it is full

export function hue(entity) {
  return Math.round((205 + (entity - 1) * GOLDEN_ANGLE) % 360);
}

export function bits(value, signed = false) {
  const text = Math.abs(value).toFixed(1);
  if (!signed) return text;
  return Number(text) === 0 ? "0.0" : (value > 0 ? "+" : "−") + text;
}

export function percent(share) {
  const value = 100 * share;
  if (value >= 9.95) return `${value.toFixed(0)}\u00a0%`;
  if (value >= 0.1) return `${value.toFixed(1)}\u00a0%`;
  return "<\u00a00.1\u00a0%";
}

// The difference is static minus dynamic surprisal.
export function shown(token, mode) {
  if (mode === "static") return token.static_surprisal;
  if (mode === "difference") return token.static_surprisal - token.surprisal;
  return token.surprisal;
}

export function strength(value, mode) {
  const full = mode === "difference" ? WIDEST : DARKEST;
  return Math.min(1, Math.abs(value) / full);
}

export const LEGENDS = {
  off: "Colored words are unknown to the model. The label above a word is the model’s best guess after that sentence. Known names are underlined. Select any word for details.",
  dynamic: "Darker words have a higher surprisal: the model expected them less.",
  static: "Darker words have a higher surprisal without memory.",
  difference: "Green: lower surprisal with memory. Red with a dotted outline: higher surprisal with memory.",
};
