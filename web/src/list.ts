// A list of workloads of which the first are shown, with a search.

import { counted, h } from "./dom.ts";

const FIRST = 6, MORE = 30;

/** Draws a list of workloads into an element, the chosen one always among them; `redraw` is called when more are asked for. */
export function fewWorkloads(redraw: () => void, word = "workload") {
  let filter = "", limit = FIRST;
  const input = h("input", { type: "search", "aria-label": `${word}s with`, placeholder: "name" });
  input.addEventListener("input", () => {
    filter = input.value.toLowerCase();
    redraw();
    input.focus();
  });
  const search = h("p", { class: "search" }, h("label", {}, "Find ", input));
  return (list: HTMLElement, order: string[], chosen: string, draw: (of: string) => HTMLElement): void => {
    const focused = (document.activeElement as HTMLElement | null)?.closest?.("article")?.dataset["of"];
    const meant = order.filter((of) => of.toLowerCase().includes(filter));
    const shown = meant.slice(0, limit);
    if (chosen && !shown.includes(chosen) && meant.includes(chosen)) shown.unshift(chosen);
    const rest = meant.length - shown.length;
    const isSearching = document.activeElement === input;
    list.replaceChildren(order.length > FIRST ? search : "", ...shown.map(draw), rest <= 0 ? "" : h("p", { class: "foot" },
      `${counted(rest, word)} more `,
      h("button", { type: "button", onclick: () => { limit += MORE; redraw(); } }, `Show ${Math.min(rest, MORE)}`)));
    if (isSearching) input.focus();
    if (focused) list.querySelector<HTMLElement>(`article[data-of="${CSS.escape(focused)}"] button`)?.focus();
  };
}
