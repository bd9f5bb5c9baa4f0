// What is shown, kept in the address, so that a link shows the same.

export interface State {
  /** The index of the run. */
  run: number;
  /** The moment: the log's time, with `~` for the end of a step before the next one begins then. */
  at: string;
  /** The chosen workload, as the log names it. */
  workload: string;
  /** The key whose skew is drawn over time. */
  by: string;
  /** The labels that nest the boxes of the map, outermost first. */
  boxes: string;
  /** What is audited, and the chosen cell. */
  cell: string;
  /** The chosen Placement. */
  placement: string;
}

export function read(): Partial<State> {
  const found: Partial<State> = {};
  const values = new URLSearchParams(location.hash.slice(1));
  for (const key of ["at", "workload", "by", "boxes", "cell", "placement"] as const) {
    const value = values.get(key);
    if (value !== null) found[key] = value;
  }
  const run = Number(values.get("run"));
  if (Number.isInteger(run) && values.has("run")) found.run = run;
  return found;
}

export function write(state: Partial<State>): void {
  const values = new URLSearchParams();
  for (const [key, value] of Object.entries(state)) if (value !== "" && value !== undefined) values.set(key, String(value));
  const hash = `#${values}`;
  if (hash !== location.hash) history.replaceState(null, "", hash);
}
