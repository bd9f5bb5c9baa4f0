// The rows of `strew ui`, and what Headlamp draws of them. Counts and skews are strew's: nothing is counted here.

export interface Constraint { whenUnsatisfiable: string; maxSkew: number; withoutEffect?: boolean }
export interface Spread { by: string; constraint?: Constraint | null; counts: Record<string, number>; skew: number }
export interface Workload {
  of: string; namespace: string; replicas: number; ready: number; pending: { count: number; message: string; pod: string }[]; spread: Spread[];
}
export interface Node { labels: Record<string, string>; ready: boolean }
export type Rows = Record<string, unknown>;

/** The part of the answer of `data.json` that is read. */
export function rowsOf(data: unknown): Rows {
  const rows = (data as { rows?: Rows } | null)?.rows;
  if (typeof rows !== 'object' || rows === null) throw new Error('this is not the data of strew ui');
  return rows;
}

/** A workload; undefined: strew ui does not show it. */
export function workload(rows: Rows, kind: string, namespace: string, name: string): Workload | undefined {
  return rows[`workload ${kind} ${namespace}/${name}`] as Workload | undefined;
}

/** Whether a constraint is exceeded, as strew says it: the skew is above maxSkew. */
export function isOver({ constraint, skew }: Spread): boolean {
  return !!constraint && !constraint.withoutEffect && skew > constraint.maxSkew;
}

/** `hard, maxSkew 1: skew 2, over maxSkew` */
export function words(spread: Spread): string {
  const { constraint, skew } = spread;
  if (!constraint) return `skew ${skew}; no constraint`;
  const kind = constraint.whenUnsatisfiable === 'DoNotSchedule' ? 'hard' : 'soft';
  return `${kind}, maxSkew ${constraint.maxSkew}: skew ${skew}, ${isOver(spread) ? 'over' : 'within'} maxSkew`;
}

/** `zone` of `topology.kubernetes.io/zone`. */
export function short(key: string): string {
  return key === 'kubernetes.io/hostname' ? 'node' : key.slice(key.lastIndexOf('/') + 1);
}

export interface MapNode { id: string; label: string; subtitle: string; status?: 'error' | 'success'; weight?: number }
export interface MapEdge { id: string; source: string; target: string; label: string }

const ZONE = 'topology.kubernetes.io/zone';

/** Zones, and an edge from each workload to a zone in which it has pods, with their number. */
export function graph(rows: Rows): { nodes: MapNode[]; edges: MapEdge[] } {
  const zones = new Map<string, { nodes: number; away: number }>(), nodes: MapNode[] = [], edges: MapEdge[] = [];
  for (const [key, row] of Object.entries(rows)) {
    if (!key.startsWith('node ')) continue;
    const { labels, ready } = row as Node, zone = labels[ZONE];
    if (zone === undefined) continue;
    const known = zones.get(zone) ?? { nodes: 0, away: 0 };
    zones.set(zone, { nodes: known.nodes + 1, away: known.away + (ready ? 0 : 1) });
  }
  for (const [zone, { nodes: n, away }] of zones) {
    const subtitle = `${n} ${n === 1 ? 'node' : 'nodes'}${away ? `, ${away} not ready` : ''}`;
    nodes.push({ id: `strew zone ${zone}`, label: zone, subtitle, status: away ? 'error' : 'success', weight: 1000 });
  }
  for (const [key, row] of Object.entries(rows)) {
    if (!key.startsWith('workload ')) continue;
    const one = row as Workload, spread = one.spread.find(({ by }) => by === ZONE);
    if (!spread) continue;
    const id = `strew ${key}`, name = key.slice(key.indexOf('/') + 1);
    const isBad = one.pending.length > 0 || one.spread.some((other) => isOver(other) && other.constraint!.whenUnsatisfiable === 'DoNotSchedule');
    nodes.push({ id, label: `${one.namespace}/${name}`, subtitle: `${one.ready} of ${one.replicas} ready; ${words(spread)}`, status: isBad ? 'error' : 'success' });
    for (const [zone, n] of Object.entries(spread.counts)) {
      if (n && zones.has(zone)) edges.push({ id: `${id} ${zone}`, source: id, target: `strew zone ${zone}`, label: String(n) });
    }
  }
  return { nodes, edges };
}
