#!/usr/bin/env node
// Runs `strew mcp` of the package that belongs to this platform, with the same arguments.
import { spawn } from "node:child_process";
import { createRequire } from "node:module";

const name = `strew-mcp-${process.platform}-${process.arch}`;
const program = process.platform === "win32" ? "strew.exe" : "strew";
let path;
try {
  path = createRequire(import.meta.url).resolve(`${name}/${program}`);
} catch {
  console.error(`strew-mcp: the package ${name} is not installed: there is none for this platform, or optional dependencies were left out`);
  process.exit(3);
}
const child = spawn(path, ["mcp", ...process.argv.slice(2)], { stdio: "inherit" });
for (const signal of ["SIGINT", "SIGTERM"]) {
  process.on(signal, () => child.kill(signal));
}
child.on("error", (error) => {
  console.error(`strew-mcp: ${error.message}`);
  process.exit(3);
});
child.on("exit", (code) => process.exit(code ?? 1));
