// A command line as words, and words as a command line.

/** The words of a line; quotes keep spaces, as in a shell. */
export function split(line: string): string[] {
  const words: string[] = [];
  for (const [whole] of line.matchAll(/(?:'[^']*'?|"[^"]*"?|[^\s'"]+)+/g)) {
    words.push(whole.replace(/'([^']*)'?|"([^"]*)"?/g, (_, single?: string, double?: string) => single ?? double ?? ""));
  }
  return words;
}

export function quoted(word: string): string {
  return /^[\w./:=,@+-]+$/.test(word) ? word : `'${word.replaceAll("'", `'"'"'`)}'`;
}

export const COMMANDS = [
  ["simulate", "Deploys, restarts, loses a zone, restores it and scales down"],
  ["lint", "Finds what the API server accepts and nobody means"],
  ["audit", "Takes every zone away, and says what would prevent the damage"],
  ["explain", "Says why pods are Pending, and what would place them"],
  ["place", "Chooses clusters for Placements of Open Cluster Management"],
] as const;

/** What a button runs on these files. */
export function command(name: string, files: readonly (readonly [name: string, text: string])[]): string {
  const isNode = ([, text]: readonly [string, string]) => /\bkind"?\s*:\s*["']?Node\b/.test(text);
  // The other commands make nodes where files have none.
  const nodes = name === "explain" && !files.some(isNode) ? ["--nodes", "12"] : [];
  return [name, ...files.map(([file]) => quoted(file)), ...nodes].join(" ");
}
