// Calls every tool of `strew mcp` with the official TypeScript client, which judges each result by its outputSchema.
//
// Usage: node client.mjs PROGRAM FOLDER MODULES, where MODULES is the folder in which npm installed the client.
import assert from "node:assert";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [program, folder, modules] = process.argv.slice(2);
const sdk = (file) => import(pathToFileURL(join(modules, "@modelcontextprotocol/sdk/dist/esm/client", file)));
const { Client } = await sdk("index.js");
const { StdioClientTransport } = await sdk("stdio.js");

const calls = JSON.parse(readFileSync(new URL("calls.json", import.meta.url)));
const client = new Client({ name: "strew-e2e", version: "1.0.0" });
await client.connect(new StdioClientTransport({ command: program, args: ["mcp", "--root", folder] }));
// The client judges results by the schemas that it has listed.
const names = new Set((await client.listTools()).tools.map((tool) => tool.name));
for (const call of calls) {
  const result = await client.callTool({ name: call.tool, arguments: call.arguments });
  assert(!result.isError, JSON.stringify([call, result.content]));
  assert(JSON.stringify(result.structuredContent).includes(call.has ?? "apiVersion"), JSON.stringify(call));
}
assert.deepStrictEqual(new Set(calls.map((call) => call.tool)), names);
await client.close();
console.log(`${calls.length} calls of ${names.size} tools: each result is of its schema`);
