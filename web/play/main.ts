// strew in a page: files, a command, what it says, and its picture.

import examples from "strew:examples";
import { counted, h } from "../src/dom.ts";
import { Editor } from "./editor.ts";
import * as link from "./link.ts";
import type { Sheet } from "./link.ts";
import { program, Runner } from "./runner.ts";
import type { Result } from "./runner.ts";
import { shown } from "./text.ts";
import type { Ended } from "./wasi.ts";
import { COMMANDS, command, split } from "./words.ts";

/** Where strew writes its picture; no file of the editor can be called so. */
const PICTURE = ".strew/picture.html";
/** The commands that draw one. */
const DRAWN = new Set(["simulate", "audit"]);
/** Longer texts are saved rather than shown: a page with millions of lines is slow. */
const SHOWN_MAX = 1 << 20;
/** Longer links are cut off by some programs that carry messages. */
const LINK_MAX = 8000;

const runner = new Runner(program());
const editor = new Editor(() => renew());
const line = h("input", { type: "text", id: "command", spellcheck: "false", autocomplete: "off", autocapitalize: "off" });
const status = h("p", { class: "status", role: "status" });
/** How long a run goes on, beside the status: read out each second it would be noise. */
const clock = h("span", { class: "dim num", "aria-hidden": "true" });
const cancel = h("button", { type: "button", hidden: true, onclick: () => runner.cancel() }, "Cancel");
const output = h("pre", { class: "output", tabindex: 0, role: "region", "aria-label": "What strew says" });
const actions = h("div", { class: "row" });
const picture = h("div", { class: "picture" });
const choice = h("select", { id: "example" },
  h("option", { value: "" }, "Choose…"),
  ...examples.map(({ title }, index) => h("option", { value: index }, title)));
/** The command of a button that was pressed last, which follows the names of files; `null`: the line was typed. */
let pressed: string | null = "simulate";

/** The number of the newest run. */
let newest = 0;

/** Runs the line; `extra` are words that it does not show. What comes out is drawn, unless another run has begun since. */
async function start(extra: readonly string[], environment: Record<string, string>, draw: (ended: Ended) => void): Promise<void> {
  const number = (newest += 1);
  const words = split(line.value).filter((word, index) => index > 0 || word !== "strew");
  const begin = performance.now();
  let done = "";
  const tick = setInterval(() => { clock.textContent = `${Math.round((performance.now() - begin) / 1000)} s${done}`; }, 1000);
  say("running…");
  cancel.hidden = false;
  document.body.dataset["state"] = "running";
  const call = { words: [...words, ...extra], files: [...editor.files], environment };
  const result = await runner.run(call, (percent) => { done = `, ${percent} % done`; });
  clearInterval(tick);
  clock.textContent = "";
  if (number !== newest) return;
  cancel.hidden = true;
  finish(result, draw);
  document.body.dataset["first"] ??= String(Math.round(performance.now()));
  document.body.dataset["state"] = "rest";
}

function finish(result: Result, draw: (ended: Ended) => void): void {
  if (result === "cancelled") {
    say("cancelled");
  } else if ("failed" in result) {
    const isDeep = /call stack/.test(result.failed);
    say(isDeep ? "the input is nested deeper than a browser allows" : `strew broke off: ${result.failed}`);
  } else {
    say(`exit code ${result.ended.exit}: ${meaning(result.ended.exit)}, after ${seconds(result.milliseconds)}`);
    draw(result.ended);
  }
}

const meaning = (exit: number) => ["all holds", "something is wrong", "wrong input", "something outside failed"][exit] ?? "ended";
const seconds = (milliseconds: number) => `${(milliseconds / 1000).toFixed(milliseconds < 9950 ? 2 : 0)} s`;
const say = (text: string) => { status.textContent = text; };

/** Runs the line for people, with its picture. */
function play(): Promise<void> {
  const words = split(line.value), isDrawn = DRAWN.has(words[0] === "strew" ? words[1] ?? "" : words[0] ?? "");
  const isPlain = words.some((word) => /^(-o|--output|--html|--help|-h|--print-scenario|--new|--schema)/.test(word));
  return start(isDrawn && !isPlain ? ["--html", PICTURE] : [], people(), write);
}

/** The width of the output in characters, and colours. */
function people(): Record<string, string> {
  const probe = h("span", {}, "0".repeat(100));
  output.replaceChildren(probe);
  const width = probe.getBoundingClientRect().width / 100;
  output.replaceChildren();
  const fit = Math.floor((output.clientWidth - 28) / (width || 8));
  const columns = String(Math.max(60, Math.min(120, fit)));
  document.body.dataset["columns"] = columns;
  return { COLUMNS: columns, CLICOLOR_FORCE: "1" };
}

function write(ended: Ended): void {
  const text = ended.said.map(({ text }) => text).join("");
  const names = editor.files.map(([name]) => name);
  const nodes = shown(text.slice(0, SHOWN_MAX), names, ({ file, line, column }) => editor.show(file, line, column));
  output.replaceChildren(...nodes.map((node) => (node instanceof Node ? node : document.createTextNode(String(node)))));
  if (text.length > SHOWN_MAX) output.append(`\n… ${counted(text.length - SHOWN_MAX, "character")} more: save it`);
  output.scrollTop = 0;
  const plain = ended.said.filter(({ fd }) => fd === 1).map(({ text }) => text).join("").replace(/\x1b\[[\d;]*m/g, "");
  const files = ended.written.filter(([name]) => name !== PICTURE);
  actions.replaceChildren(
    h("button", { type: "button", onclick: () => save("strew.txt", [plain]) }, "Save the text"),
    h("button", { type: "button", onclick: () => void json() }, "Save as JSON"),
    ...files.map(([name, bytes]) => h("button", { type: "button", onclick: () => save(name.split("/").pop()!, [bytes]) }, `Save ${name}`)),
  );
  const page = ended.written.find(([name]) => name === PICTURE)?.[1];
  if (page) draw(page);
  else picture.replaceChildren();
}

/** The page of `--html` in a frame of its own, which can reach nothing. */
function draw(page: Uint8Array<ArrayBuffer>): void {
  const address = URL.createObjectURL(new Blob([page], { type: "text/html" }));
  const frame = h("iframe", { src: address, title: "The picture of this run", sandbox: "allow-scripts", allow: "clipboard-write *" });
  frame.addEventListener("load", () => URL.revokeObjectURL(address));
  picture.replaceChildren(frame);
  actions.append(h("button", { type: "button", onclick: () => save("strew.html", [page]) }, "Save the picture"));
}

/** Runs the line again for programs, and saves what it writes. */
function json(): Promise<void> {
  return start(["-o", "json"], {}, (ended) => {
    const texts = ended.said.filter(({ fd }) => fd === 1).map(({ text }) => text);
    if (texts.length > 0) save("strew.json", texts);
    // There is no result, and standard error says why.
    else write(ended);
  });
}

function save(name: string, parts: BlobPart[]): void {
  const address = URL.createObjectURL(new Blob(parts));
  h("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

async function share(): Promise<void> {
  const fragment = await link.written({ command: line.value, files: [...editor.files] });
  history.replaceState(null, "", fragment);
  const long = fragment.length > LINK_MAX ? "; some programs cut links of this length off" : "";
  const done = await navigator.clipboard?.writeText(location.href).then(() => "the link was copied", () => null) ?? null;
  say(`${done ?? "the address is the link now"}: ${counted(fragment.length, "character")}, with all files in it${long}`);
}

/** Writes the line of a button anew, after a change of files. */
function renew(): void {
  if (pressed !== null) line.value = command(pressed, editor.files);
}

function press(name: string): void {
  pressed = name;
  renew();
  void play();
}

function load(sheet: Sheet): void {
  editor.files = sheet.files;
  line.value = sheet.command;
  const isOf = ([name]: readonly [string, string]) => sheet.command === command(name, editor.files);
  pressed = COMMANDS.find(isOf)?.[0] ?? null;
  void play();
}

/** Loads what the address carries; without a link the first example. */
async function open(): Promise<void> {
  try {
    const sheet = await link.read(location.hash);
    if (sheet) load(sheet);
    else if (document.body.dataset["state"] === undefined) load(examples[0]!);
  } catch (error) {
    say(String(error instanceof Error ? error.message : error));
    document.body.dataset["state"] = "rest";
  }
}

choice.addEventListener("change", () => {
  const example = examples[Number(choice.value)];
  if (choice.value !== "" && example) load(example);
});
line.addEventListener("input", () => { pressed = null; });
const form = h("form", { class: "row command" },
  h("label", { for: "command" }, h("code", {}, "strew")), line, h("button", { type: "submit" }, "Run"), cancel, clock);
form.addEventListener("submit", (event) => {
  event.preventDefault();
  void play();
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) void play();
  if (event.key === "Escape") runner.cancel();
});
addEventListener("hashchange", () => void open());

document.getElementById("page")!.replaceChildren(
  h("header", {},
    h("h1", {}, "strew"),
    h("p", { class: "dim" }, "Where Kubernetes puts your pods, computed in this page: nothing that you type leaves it."),
    h("span", { class: "example" }, h("label", { for: "example" }, "Example "), choice)),
  h("main", { class: "play" },
    h("section", { class: "card", "aria-label": "Manifests" }, editor.element),
    h("section", { class: "card", "aria-label": "Result" },
      h("div", { class: "row", role: "group", "aria-label": "Commands" },
        ...COMMANDS.map(([name, title]) => h("button", { type: "button", title, onclick: () => press(name) }, name)),
        h("button", { type: "button", class: "share", onclick: () => void share() }, "Copy a link")),
      form, status, output, actions)),
  picture,
  h("footer", { class: "foot" }, h("a", { href: "THIRD-PARTY.txt" }, "Licences of others"), " whose work is in this page"),
);
void open();
