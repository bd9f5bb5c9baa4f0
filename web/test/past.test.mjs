// The past of a live page: every moment that is kept is as it was.

import assert from "node:assert/strict";
import { test } from "node:test";
import { build } from "esbuild";

const source = new URL("../src/past.ts", import.meta.url).pathname;
const made = await build({ entryPoints: [source], bundle: true, format: "esm", write: false });
const { Past, differing } = await import(`data:text/javascript,${encodeURIComponent(made.outputFiles[0].text)}`);

/** 1,500 random changes of six rows: more than are kept. */
function played() {
  const now = new Map([["a", 1], ["b", 1]]), past = new Past(), states = [new Map(now)];
  let seed = 1;
  const random = (n) => (seed = (seed * 1103515245 + 12345) & 0x7fffffff) % n;
  for (let i = 0; i < 1500; i++) {
    const before = new Map();
    for (let k = 0; k <= random(3); k++) {
      const key = "abcdef"[random(6)];
      if (before.has(key)) continue;
      before.set(key, now.get(key));
      if (random(4)) now.set(key, i); else now.delete(key);
    }
    past.note(i, [...before]);
    states.push(new Map(now));
  }
  return { now, past, states };
}
const sorted = (rows) => [...rows].sort();

test("the moments that are kept are as they were, and their number is bounded", () => {
  const { now, past, states } = played();
  assert.deepEqual([past.first, past.last], [500, 1500]);
  for (let moment = past.first; moment <= past.last; moment++) assert.deepEqual(sorted(past.rows(moment, now)), sorted(states[moment]), String(moment));
  assert.equal(past.began(past.last), 1499);
  assert.equal(past.began(past.first), undefined);
});

test("a row over time is as it was", () => {
  const { now, past, states } = played();
  const found = past.of("a", now);
  assert.ok(found.length > 100);
  for (const { moment, row } of found) assert.equal(states[moment].get("a"), row, String(moment));
});

test("what differs makes the earlier rows of the later ones", () => {
  const { now, states } = played();
  const back = new Map(now);
  for (const [key, row] of differing(states[1400], now)) if (row === undefined) back.delete(key); else back.set(key, row);
  assert.deepEqual(sorted(back), sorted(states[1400]));
});

test("large changes push out more moments", () => {
  const past = new Past();
  for (let i = 0; i < 10; i++) past.note(i, Array.from({ length: 60_000 }, (_, n) => [`row ${n}`, i]));
  assert.equal(past.last - past.first, 3);
});
