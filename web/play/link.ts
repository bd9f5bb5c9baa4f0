// A link that carries files and a command in its fragment, which no browser sends to a server.

import { path } from "./wasi.ts";

export interface Sheet {
  /** The words after `strew`, as typed. */
  command: string;
  files: [name: string, text: string][];
}

const FIRST = "v1=";
/** The largest size of what a link unpacks to, in bytes: a link of a stranger cannot fill the memory. */
const SIZE_MAX = 8 << 20;
const FILES_MAX = 100;

export async function written(sheet: Sheet): Promise<string> {
  const text = JSON.stringify([sheet.command, ...sheet.files]);
  const packed = new Blob([text]).stream().pipeThrough(new CompressionStream("deflate-raw"));
  const bytes = new Uint8Array(await new Response(packed).arrayBuffer());
  let letters = "";
  for (const byte of bytes) letters += String.fromCharCode(byte);
  return `#${FIRST}${btoa(letters).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "")}`;
}

/** `null`: the fragment is none of these links. Fails if it is one and broken. */
export async function read(fragment: string): Promise<Sheet | null> {
  const text = fragment.replace(/^#/, "");
  if (!text.startsWith(FIRST)) return null;
  try {
    return sheet(JSON.parse(await unpacked(text.slice(FIRST.length))));
  } catch (error) {
    throw new Error(`the link is broken or was cut off (${error instanceof Error ? error.message : error})`);
  }
}

async function unpacked(text: string): Promise<string> {
  const letters = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  const bytes = Uint8Array.from(letters, (letter) => letter.charCodeAt(0));
  const reader = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw")).getReader();
  const decoder = new TextDecoder();
  let found = "", size = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return found + decoder.decode();
    size += value.length;
    if (size > SIZE_MAX) throw new Error(`more than ${SIZE_MAX >> 20} MiB`);
    found += decoder.decode(value, { stream: true });
  }
}

function sheet(found: unknown): Sheet {
  if (!Array.isArray(found)) throw new Error("no list");
  const [command, ...files] = found as unknown[];
  const isFile = (file: unknown): file is [string, string] => (
    Array.isArray(file) && file.length === 2 && file.every((part) => typeof part === "string")
  );
  if (typeof command !== "string" || files.length > FILES_MAX || !files.every(isFile)) throw new Error("no command and files");
  const names = new Set<string>();
  for (const [name] of files) {
    if (name !== named(name) || names.has(name)) throw new Error("a file has no name of its own");
    names.add(name);
  }
  return { command, files };
}

/** The name that a file gets: relative, without what a terminal or a command line would take for something else. */
export function named(name: string): string {
  const plain = path("", name.replace(/[\p{Cc}\p{Cf}]/gu, "")).replace(/^-+/, "");
  return plain || "file.yaml";
}
