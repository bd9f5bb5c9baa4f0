// Makes dist/page.html, which strew has in it: one file with style and script, and a place for the data.
// `node build.mjs --check` only compares.

import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

const LIMIT = 250 * 1024;
const here = (name) => new URL(name, import.meta.url).pathname;
const bundle = async (entry) => {
  const result = await build({
    entryPoints: [here(entry)], bundle: true, minify: true, format: "esm", target: "es2022", charset: "utf8",
    legalComments: "none", write: false, logLevel: "warning",
  });
  return result.outputFiles[0].text.trim();
};
const hash = (text) => `sha256-${createHash("sha256").update(text).digest("base64")}`;

const script = await bundle("src/main.ts"), style = await bundle("src/style.css");
if (script.includes("</") || style.includes("</")) throw new Error("a script or a style with </ in it ends its element");
const fill = { STYLE: style, SCRIPT: script, "STYLE-HASH": hash(style), "SCRIPT-HASH": hash(script) };
const page = readFileSync(here("src/page.html"), "utf8").replace(/\{\{([A-Z-]+)\}\}/g, (whole, name) => fill[name] ?? whole);
const size = gzipSync(page).length;
if (size > LIMIT) throw new Error(`the page has ${size} bytes after gzip, at most ${LIMIT} are allowed`);
const path = here("dist/page.html");
if (process.argv.includes("--check")) {
  if (readFileSync(path, "utf8") !== page) {
    console.error("web/dist/page.html is not what web/src makes: run cargo xtask web");
    process.exit(1);
  }
} else writeFileSync(path, page);
console.log(`web/dist/page.html: ${page.length} bytes, ${size} after gzip`);
