// The data of a page in the page that is built now: node test/refill.mjs PAGE...
import { readFileSync, writeFileSync } from "node:fs";

const page = readFileSync(new URL("../dist/page.html", import.meta.url), "utf8");
for (const path of process.argv.slice(2)) {
  const [, data] = readFileSync(path, "utf8").split(/(<script type="application\/json" id="data"[^>]*>[^<]*)/);
  writeFileSync(path, page.replace('<script type="application/json" id="data">{{DATA}}', () => data));
}
