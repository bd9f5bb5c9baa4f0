// Files by name, one of them in a text area with the numbers of its lines.

import { h } from "../src/dom.ts";
import { named } from "./link.ts";

type File = [name: string, text: string];

export class Editor {
  readonly element: HTMLElement;
  readonly #files: File[] = [["", ""]];
  #chosen = 0;
  readonly #tabs = h("div", { class: "files", role: "group", "aria-label": "Files" });
  readonly #name = h("input", { type: "text", class: "file-name", "aria-label": "Name of the file", spellcheck: "false", autocomplete: "off" });
  readonly #numbers = h("pre", { class: "numbers", "aria-hidden": "true" });
  readonly #text = h("textarea", { "aria-label": "Text of the file", spellcheck: "false", autocomplete: "off", autocapitalize: "off", wrap: "off", rows: 20 });
  readonly #open = h("input", { type: "file", multiple: true, class: "sr", tabindex: -1, "aria-hidden": "true" });
  readonly #changed: () => void;

  /** `changed` is called after names or their number have changed. */
  constructor(changed: () => void) {
    this.#changed = changed;
    const button = (label: string, title: string, click: () => void) => h("button", { type: "button", title, onclick: click }, label);
    this.element = h("div", { class: "editor" },
      this.#tabs,
      h("div", { class: "row" },
        this.#name,
        button("Add", "Add an empty file", () => this.#add([["manifest.yaml", ""]])),
        button("Open…", "Read files of this computer: they stay in this page", () => this.#open.click()),
        button("Remove", "Remove this file", () => this.#remove()),
        this.#open),
      h("div", { class: "sheet" }, this.#numbers, this.#text));
    this.#text.addEventListener("input", () => {
      this.#files[this.#chosen]![1] = this.#text.value;
      this.#number();
    });
    this.#text.addEventListener("scroll", () => { this.#numbers.scrollTop = this.#text.scrollTop; });
    this.#name.addEventListener("change", () => {
      this.#files[this.#chosen]![0] = this.#free(this.#name.value, this.#chosen);
      this.#draw();
      this.#changed();
    });
    this.#open.addEventListener("change", () => void this.#read());
    this.files = [["manifest.yaml", ""]];
  }

  get files(): readonly File[] {
    return this.#files;
  }

  set files(files: readonly File[]) {
    this.#files.length = 0;
    this.#files.push(...files.map(([name, text]): File => [name, text]));
    if (this.#files.length === 0) this.#files.push(["manifest.yaml", ""]);
    this.#choose(0);
  }

  /** Goes to a place, counted from 1; the column counts characters. */
  show(name: string, line: number, column: number): void {
    const index = this.#files.findIndex(([other]) => other === name);
    if (index < 0) return;
    this.#choose(index);
    const lines = this.#text.value.split("\n");
    const before = lines.slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
    const at = before + [...(lines[line - 1] ?? "")].slice(0, column - 1).join("").length;
    this.#text.focus();
    this.#text.setSelectionRange(at, before + (lines[line - 1] ?? "").length);
    const height = this.#text.scrollHeight / Math.max(1, lines.length);
    this.#text.scrollTop = Math.max(0, (line - 4) * height);
  }

  #choose(index: number): void {
    this.#chosen = index;
    this.#draw();
    this.#text.value = this.#files[index]![1];
    this.#text.scrollTop = 0;
    this.#number();
  }

  #draw(): void {
    const tab = ([name]: File, index: number) => h("button", {
      type: "button", "aria-pressed": index === this.#chosen ? "true" : "false", onclick: () => this.#choose(index),
    }, name);
    this.#tabs.replaceChildren(...this.#files.map(tab));
    this.#name.value = this.#files[this.#chosen]![0];
  }

  #number(): void {
    const n = this.#text.value.split("\n").length;
    if (this.#numbers.dataset["n"] === String(n)) return;
    this.#numbers.dataset["n"] = String(n);
    // One line more, so that the numbers can be scrolled as far as a text with a scroll bar below it.
    this.#numbers.textContent = Array.from({ length: n }, (_, i) => i + 1).join("\n") + "\n\n";
  }

  #add(files: readonly File[]): void {
    for (const [name, text] of files) this.#files.push([this.#free(name, -1), text]);
    this.#choose(this.#files.length - 1);
    this.#changed();
  }

  #remove(): void {
    this.#files.splice(this.#chosen, 1);
    if (this.#files.length === 0) this.#files.push(["manifest.yaml", ""]);
    this.#choose(Math.max(0, this.#chosen - 1));
    this.#changed();
  }

  async #read(): Promise<void> {
    const files = [...(this.#open.files ?? [])];
    this.#open.value = "";
    const texts = await Promise.all(files.map(async (file): Promise<File> => [file.name, await file.text()]));
    if (texts.length > 0) this.#add(texts);
  }

  /** A name that no other file has. */
  #free(wanted: string, index: number): string {
    const name = named(wanted);
    const isTaken = (name: string) => this.#files.some(([other], i) => other === name && i !== index);
    const dot = name.lastIndexOf(".") > 0 ? name.lastIndexOf(".") : name.length;
    let found = name;
    for (let n = 2; isTaken(found); n += 1) found = `${name.slice(0, dot)}-${n}${name.slice(dot)}`;
    return found;
  }
}
