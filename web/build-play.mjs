// Makes the page in which strew runs: `node build-play.mjs PROGRAM FILE`. PROGRAM is strew for wasm32-wasip1, FILE the page.

import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

/** How long the page shall be after gzip at most, and how long it may be, in bytes. */
const GOAL = 3 * 1024 * 1024, LIMIT = 6 * 1024 * 1024;
const [program, file] = process.argv.slice(2);
const here = (name) => new URL(name, import.meta.url).pathname;
const example = (name) => readFileSync(here(`../examples/${name}`), "utf8");
const hash = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;

const shop = ["shop.yaml", example("shop.yaml")];
const EXAMPLES = [
  // One seed: this is the first answer of the page, and 20 take 3 seconds.
  { title: "A shop loses a zone", command: "simulate shop.yaml --seed 0", files: [shop] },
  { title: "The same with 20 seeds", command: "simulate shop.yaml", files: [shop] },
  { title: "What would keep the shop up", command: "audit shop.yaml", files: [shop] },
  {
    title: "Rollouts end uneven: a line is missing", command: "lint shop.yaml",
    files: [["shop.yaml", shop[1].replace("matchLabelKeys", "# matchLabelKeys")]],
  },
  { title: "Red: pods that stay Pending", command: "simulate tight.yaml", files: [["tight.yaml", example("tight.yaml")]] },
  { title: "Why they are Pending", command: "explain deployment/web tight.yaml", files: [["tight.yaml", example("tight.yaml")]] },
  { title: "A scenario: what must hold after each rollout", command: "simulate rollout.yaml", files: [["rollout.yaml", example("scenarios/rollout.yaml")]] },
  { title: "OpenKruise: a WorkloadSpread", command: "lint elastic.yaml", files: [["elastic.yaml", example("elastic.yaml")]] },
  { title: "Kubernetes' documentation: nginx-deployment", command: "simulate nginx-deployment.yaml", files: [["nginx-deployment.yaml", readFileSync(here("play/nginx-deployment.yaml"), "utf8")]] },
  {
    title: "Open Cluster Management: a Placement", command: "place use-case-4.yaml fleet.yaml",
    files: [["use-case-4.yaml", example("placement/use-case-4.yaml")], ["fleet.yaml", example("placement/fleet.yaml")]],
  },
];

const options = {
  bundle: true, minify: true, target: "es2022", charset: "utf8", legalComments: "none", write: false, logLevel: "warning",
};
const bundle = async (entry, more) => (await build({ ...options, ...more, entryPoints: [here(entry)] })).outputFiles[0].text.trim();
const made = { "strew:worker": await bundle("play/worker.ts", { format: "iife" }), "strew:examples": EXAMPLES };
const parts = {
  name: "strew",
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^strew:/ }, ({ path }) => ({ path, namespace: "strew" }));
    onLoad({ filter: /.*/, namespace: "strew" }, ({ path }) => ({ contents: JSON.stringify(made[path]), loader: "json" }));
  },
};
// Only in strings could `</` stand, where a backslash changes nothing.
const script = (await bundle("play/main.ts", { format: "esm", plugins: [parts] })).replaceAll("</", "<\\/");
const style = await bundle("play/style.css", {});
// The page of a run inherits the policy of this one.
const report = readFileSync(here("dist/page.html"), "utf8");
const hashes = (of) => report.match(new RegExp(`${of}-src ('sha256-[^']*')`))[1];

const fill = {
  STYLE: style, SCRIPT: script,
  STYLES: `${hash(style)} ${hashes("style")}`, SCRIPTS: `${hash(script)} ${hashes("script")}`,
  PROGRAM: gzipSync(readFileSync(program), { level: 9 }).toString("base64"),
};
const page = readFileSync(here("play/page.html"), "utf8").replace(/\{\{([A-Z-]+)\}\}/g, (whole, name) => fill[name] ?? whole);
writeFileSync(file, page);
const size = gzipSync(page, { level: 9 }).length;
console.log(`${file}: ${page.length} bytes, ${size} after gzip`);
if (size > GOAL) console.log(`longer than the goal of ${GOAL} bytes`);
if (size > LIMIT) {
  console.error(`the page is too long: at most ${LIMIT} bytes after gzip`);
  process.exit(1);
}
