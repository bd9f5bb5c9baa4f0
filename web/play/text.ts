// What strew writes for people: its colours, and places in files as buttons.

import { h } from "../src/dom.ts";
import type { Child } from "../src/dom.ts";

export interface Place {
  file: string;
  line: number;
  column: number;
}

/** Styles of a terminal that strew uses, as classes. */
const STYLES: Record<string, string> = { 1: "strong", 2: "dim", 31: "bad", 32: "ok", 33: "warn", 36: "blue" };

/** The text as nodes; `open` is called with the place of a button. */
export function shown(text: string, files: readonly string[], open: (place: Place) => void): Child[] {
  const styles = new Set<string>();
  const children: Child[] = [];
  for (const part of text.split(/(\x1b\[[\d;]*m)/)) {
    if (part.startsWith("\x1b[")) {
      for (const code of part.slice(2, -1).split(";")) {
        const style = STYLES[code];
        if (style) styles.add(style);
        else styles.clear();
      }
    } else if (part !== "") {
      const inside = places(part, files, open);
      children.push(...(styles.size > 0 ? [h("span", { class: [...styles].join(" ") }, ...inside)] : inside));
    }
  }
  return children;
}

/** `name:line:column` of known files as buttons. */
function places(text: string, files: readonly string[], open: (place: Place) => void): Child[] {
  const names = [...files].sort((a, b) => b.length - a.length).map((name) => name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  if (names.length === 0) return [text];
  const children: Child[] = [];
  let end = 0;
  for (const match of text.matchAll(new RegExp(`(?<![\\w./-])(${names.join("|")}):(\\d+):(\\d+)`, "g"))) {
    const [whole, file, line, column] = match;
    const place = { file: file!, line: Number(line), column: Number(column) };
    children.push(text.slice(end, match.index), h("button", { type: "button", class: "place", onclick: () => open(place) }, whole));
    end = match.index + whole.length;
  }
  return [...children, text.slice(end)];
}
