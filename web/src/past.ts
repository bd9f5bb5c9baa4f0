// The past of a live page, since it was opened: what rows were before each change, so that a moment costs what changed.

/** Moments that are kept. */
const MOMENTS_MAX = 1000;
/** Rows that are kept over all moments: some tens of megabytes. */
const ROWS_MAX = 200_000;

/** A change: when it came, and the rows before it; undefined: there was none. */
interface Change { at: number; before: [key: string, row: unknown][] }

export class Past {
  private changes: Change[] = [];
  private nRows = 0;
  /** The changes that were forgotten. */
  private nForgotten = 0;

  /** A change came at this time, in milliseconds. */
  note(at: number, before: [string, unknown][]): void {
    this.changes.push({ at, before });
    this.nRows += before.length;
    while (this.changes.length > 1 && (this.changes.length > MOMENTS_MAX || this.nRows > ROWS_MAX)) {
      this.nRows -= this.changes.shift()!.before.length;
      this.nForgotten += 1;
    }
  }

  /** The first and the last moment: moment n is the state after n changes. */
  get first(): number { return this.nForgotten; }
  get last(): number { return this.nForgotten + this.changes.length; }

  /** When a moment began; undefined for the first one. */
  began(moment: number): number | undefined { return this.changes[moment - this.nForgotten - 1]?.at; }

  /** The rows of a moment; `now` are those of the last one. */
  rows(moment: number, now: Map<string, unknown>): Map<string, unknown> {
    const rows = new Map(now);
    for (let i = this.changes.length; i > moment - this.nForgotten; i--) {
      for (const [key, row] of this.changes[i - 1]!.before) if (row === undefined) rows.delete(key); else rows.set(key, row);
    }
    return rows;
  }

  /** A row over time, from moment to moment in which it changed, the first one included. */
  of(key: string, now: Map<string, unknown>): { moment: number; row: unknown }[] {
    const found: { moment: number; row: unknown }[] = [];
    let row = now.get(key);
    for (let i = this.changes.length; i > 0; i--) {
      const before = this.changes[i - 1]!.before.find(([other]) => other === key);
      if (!before) continue;
      found.push({ moment: this.nForgotten + i, row });
      row = before[1];
    }
    found.push({ moment: this.first, row });
    return found.reverse();
  }
}

/** What rows were that are not so now: every row of a list, by its text. */
export function differing(before: Map<string, unknown>, now: Map<string, unknown>): [string, unknown][] {
  const found: [string, unknown][] = [];
  for (const [key, row] of before) if (JSON.stringify(row) !== JSON.stringify(now.get(key))) found.push([key, row]);
  for (const key of now.keys()) if (!before.has(key)) found.push([key, undefined]);
  return found;
}
