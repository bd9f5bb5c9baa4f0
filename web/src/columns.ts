// Rows of JSON that were written as columns: crates/strew/src/html/columns.rs says how.

type Row = Record<string, unknown>;
interface Table { rows: number; shapes: string[][]; shape?: number[]; columns: Record<string, Column>; parts?: string[] }
interface Column { values?: unknown[]; words?: string[] | Divided; at?: number[]; steps?: number[]; table?: Table }
interface Divided { lengths: number[]; by: Record<string, number[][]> }

export const isTable = (data: unknown): data is Table => !Array.isArray(data);

/** The rows, their fields in the order in which they were. */
export function rows(table: Table, parts = table.parts ?? []): Row[] {
  const columns = new Map(Object.entries(table.columns).map(([field, column]) => [field, { values: values(column, parts), next: 0 }]));
  // No name of Kubernetes is `__proto__`, and to set it is no way to make a field.
  const named = (fields: string[]) => fields.filter((field) => field !== "__proto__");
  const shapes = table.shapes.map((fields) => named(fields).map((field) => ({ field, from: columns.get(field)! })));
  return Array.from({ length: table.rows }, (_, i) => {
    const row: Row = {};
    for (const { field, from } of shapes[table.shape?.[i] ?? 0]!) row[field] = from.values[from.next++];
    return row;
  });
}

function values(column: Column, parts: string[]): unknown[] {
  if (column.table) return rows(column.table, parts);
  if (column.steps) return sums(column.steps);
  if (!column.words) return column.values!;
  const words = Array.isArray(column.words) ? column.words : joined(column.words, parts);
  return sums(column.at!).map((at) => words[at]);
}

/** Texts from the places of their parts. */
function joined(words: Divided, parts: string[]): string[] {
  const by = new Map(Object.entries(words.by).map(([length, columns]) => [Number(length), { columns: columns.map(sums), next: 0 }]));
  return sums(words.lengths).map((length) => {
    const from = by.get(length)!, i = from.next++;
    return from.columns.map((places) => parts[places[i]!]!).join(" ");
  });
}

/** Each number is the difference from the one before. */
function sums(steps: number[]): number[] {
  let sum = 0;
  return steps.map((step) => (sum += step));
}
