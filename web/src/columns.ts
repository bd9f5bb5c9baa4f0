// Rows of JSON that were written as columns: crates/strew/src/html/columns.rs says how.

type Row = Record<string, unknown>;
interface Table { rows: number; shapes: string[][]; shape?: number[]; columns: Record<string, Column> }
interface Column { values?: unknown[]; words?: string[]; at?: number[]; steps?: number[]; table?: Table }

export const isTable = (data: unknown): data is Table => !Array.isArray(data);

/** The rows, their fields in the order in which they were. */
export function rows(table: Table): Row[] {
  const columns = new Map(Object.entries(table.columns).map(([field, column]) => [field, { values: values(column), next: 0 }]));
  // No name of Kubernetes is `__proto__`, and to set it is no way to make a field.
  const named = (fields: string[]) => fields.filter((field) => field !== "__proto__");
  const shapes = table.shapes.map((fields) => named(fields).map((field) => ({ field, from: columns.get(field)! })));
  return Array.from({ length: table.rows }, (_, i) => {
    const row: Row = {};
    for (const { field, from } of shapes[table.shape?.[i] ?? 0]!) row[field] = from.values[from.next++];
    return row;
  });
}

function values(column: Column): unknown[] {
  if (column.table) return rows(column.table);
  if (column.steps) return sums(column.steps);
  const words = column.words;
  return words ? sums(column.at!).map((at) => words[at]) : column.values!;
}

/** Each number is the difference from the one before. */
function sums(steps: number[]): number[] {
  let sum = 0;
  return steps.map((step) => (sum += step));
}
