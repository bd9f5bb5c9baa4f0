// Which browser the tests run: $CHROMIUM, or Debian's.
import { existsSync } from "node:fs";

export function browser() {
  const found = [process.env.CHROMIUM, "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find((path) => path && existsSync(path));
  if (!found) throw new Error("no chromium: install it, or name it in CHROMIUM");
  return { executablePath: found, args: ["--no-sandbox"] };
}
