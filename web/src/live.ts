// The rows of a live cluster: all of them first, then changes, and again after the connection was lost.

import { differing } from "./past.ts";
import type { Rows } from "./types.ts";

/** strew sends something at least every ten seconds. */
const SILENT_MAX = 25_000;
const AGAIN_AFTER = 2_000;

export interface Listener {
  /** Other rows than before; `before` are those that differ, as they were, and undefined the first time. */
  rows(rows: Map<string, unknown>, before: [string, unknown][] | undefined): void;
  /** The connection is lost since then; undefined: it is there again. */
  lost(since: Date | undefined): void;
}

/**
 * Follows the events of this page's server while the page is shown: a browser has few connections to a server, and tabs
 * that nobody looks at would take them.
 */
export function follow(listener: Listener): void {
  let rows = new Map<string, unknown>(), isFirst = true, heard = Date.now(), since: Date | undefined, source: EventSource | undefined;
  const hear = () => {
    heard = Date.now();
    if (since) listener.lost((since = undefined));
  };
  const lose = () => {
    if (!since) listener.lost((since = new Date(heard)));
  };
  const on = (name: string, take: (data: unknown) => void) => source!.addEventListener(name, (event) => {
    hear();
    take(JSON.parse((event as MessageEvent<string>).data));
  });
  const open = () => {
    source = new EventSource("events");
    on("beat", () => {});
    on("whole", (data) => {
      const before = rows;
      rows = new Map(Object.entries((data as { rows: Rows }).rows));
      listener.rows(rows, isFirst ? undefined : differing(before, rows));
      isFirst = false;
    });
    on("change", (data) => {
      const { set, gone } = data as { set: Rows; gone: string[] };
      const before = [...gone, ...Object.keys(set)].map((key): [string, unknown] => [key, rows.get(key)]);
      for (const key of gone) rows.delete(key);
      for (const [key, row] of Object.entries(set)) rows.set(key, row);
      listener.rows(rows, before);
    });
    const opened = source;
    opened.addEventListener("error", () => {
      lose();
      // After an answer that is an error, a browser does not try again by itself.
      if (opened.readyState === EventSource.CLOSED) setTimeout(() => { if (source === opened && !document.hidden) again(); }, AGAIN_AFTER);
    });
  };
  const again = () => {
    source?.close();
    heard = Date.now();
    open();
  };
  if (!document.hidden) open();
  document.addEventListener("visibilitychange", () => { if (document.hidden) source?.close(); else again(); });
  setInterval(() => {
    if (document.hidden || Date.now() - heard < SILENT_MAX) return;
    lose();
    again();
  }, AGAIN_AFTER);
}
