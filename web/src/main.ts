// Reads the data of the page and draws it.

import { audit } from "./audit.ts";
import { cluster } from "./cluster.ts";
import { isTable, rows } from "./columns.ts";
import { fleet } from "./fleet.ts";
import { simulation } from "./simulation.ts";
import type { AuditData, ClusterData, Data, FleetData, Line, SeriesLine } from "./types.ts";

async function data(): Promise<unknown> {
  const element = document.getElementById("data")!;
  const text = element.textContent!;
  if (element.dataset["packed"] === undefined) return JSON.parse(text);
  const packed = atob(text.trim()), bytes = new Uint8Array(packed.length);
  for (let i = 0; i < packed.length; i++) bytes[i] = packed.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).json();
}

/** Runs as lists of lines; long ones come as columns. */
function whole(data: Data): Data {
  const lines = <T>(one: unknown): T[] => (isTable(one) ? rows(one) : one) as T[];
  return { ...data, runs: data.runs.map(lines<Line>), series: data.series.map(lines<SeriesLine>) };
}

const begin = performance.now();
const found = await data();
const root = document.getElementById("page")!;
const pages: Record<string, () => unknown> = {
  Audit: () => audit(found as AuditData, root),
  Cluster: () => cluster(found as ClusterData, root),
  Fleet: () => fleet(found as FleetData, root),
};
const draw = pages[(found as Data).report.kind] ?? (() => simulation(whole(found as Data), root));
(window as unknown as Record<string, unknown>)["strew"] = draw();
document.body.dataset["drawn"] = String(Math.round(performance.now() - begin));
