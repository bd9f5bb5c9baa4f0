// Elements. Names and messages go in as text nodes, so they are never markup.

export type Child = Node | string | number | null | undefined | false;
type Properties = Record<string, string | number | boolean | ((event: Event) => void) | undefined>;

/** An element: `on…` properties are listeners, `style:x` CSS properties, others attributes; `undefined` and `false` are left out. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  properties: Properties = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else if (name.startsWith("style:")) element.style.setProperty(name.slice(6), String(value));
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  append(element, children);
  return element;
}

export function append(parent: Node, children: Child[]): void {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    parent.appendChild(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

/** An SVG element with attributes. */
export function svg(tag: string, attributes: Record<string, string | number>, ...children: Node[]): SVGElement {
  const element = document.createElementNS(SVG, tag) as SVGElement;
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...children);
  return element;
}
// Put together, so that the page has no address in it.
const SVG = ["http", "://www.w3.org/2000/svg"].join("");

/** `1,830` */
export const grouped = (n: number): string => n.toLocaleString("en-US");

/** `1 pod`, `2 pods`, `1,830 pods`. */
export function counted(n: number, word: string, words = `${word}s`): string {
  return `${grouped(n)} ${n === 1 ? word : words}`;
}

/** Facts in a line, which breaks after a dot and not before it. */
export const dotted = (facts: string[]): string => facts.join("\u00a0· ");

/** The same as elements: a line breaks between two facts, and within one only if it is longer than the line. */
export const unbroken = (facts: string[]): Child[] => (
  facts.flatMap((fact, i) => [i ? " " : "", h("span", { class: "fact" }, dotted(i + 1 < facts.length ? [fact, ""] : [fact]).trim())]));

export const natural = new Intl.Collator("en", { numeric: true }).compare;

/** A button that copies a text and says so. */
export function copyButton(text: string, label = "Copy"): HTMLButtonElement {
  const button = h("button", { type: "button" }, label);
  button.addEventListener("click", () => {
    const done = () => { button.textContent = "Copied"; };
    navigator.clipboard?.writeText(text).then(done, () => { button.textContent = "Not copied"; });
  });
  return button;
}

/** Draws below an element anew: what was open stays open, and the focus stays where it was. */
export function keep(root: HTMLElement, draw: () => void): void {
  const place = (element: Element) => {
    const of = element.closest<HTMLElement>("[data-of]")?.dataset["of"] ?? "";
    return JSON.stringify([of, element.tagName, element.getAttribute("aria-label") ?? element.textContent]);
  };
  const opened = new Set([...root.querySelectorAll("details[open] > summary")].map(place));
  const focused = document.activeElement && root.contains(document.activeElement) ? place(document.activeElement) : undefined;
  draw();
  for (const summary of root.querySelectorAll("summary")) {
    if (opened.has(place(summary))) (summary.parentElement as HTMLDetailsElement).open = true;
  }
  if (focused === undefined) return;
  const same = [...root.querySelectorAll<HTMLElement>("button, summary, input, select, [tabindex]")].find((one) => place(one) === focused);
  same?.focus({ preventScroll: true });
}
