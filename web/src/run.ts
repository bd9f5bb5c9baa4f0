// One run: what there was at each of its moments.
//
// Counts, skews and verdicts come from the report and from the series, which strew computed. From the log come names:
// which pod is on which node, and the labels of nodes.

import { seconds } from "./clock.ts";
import type { Data, Expectation, Explanation, Line, Picture, RunReport, Scenario, SeriesLine, Spread, Step, Subset, Variant, Workload } from "./types.ts";

/** A moment that can be shown: the state after `lines` lines of the log and `series` lines of the series. */
export interface Frame {
  at: number;
  clock: string;
  /** True: the end of a step, before the next one begins at the same time. */
  isBefore: boolean;
  lines: number;
  series: number;
  /** The index of its step; -1 before the first. */
  step: number;
}

export interface PodState { node: string; isReady: boolean; isTerminating: boolean; isFinished: boolean }
export interface Pod { key: string; name: string; owner: string; workload: string; state: PodState }
export interface NodeState { name: string; labels: Record<string, string>; isReady: boolean; isCordoned: boolean; isTainted: boolean }

interface History<T> { at: number[]; states: (T | null)[] }
interface PodHistory extends History<PodState> {
  key: string; name: string; owner: string; workload: string;
  /** The pod as it was asked for last: most pods stay as they are from moment to moment. */
  last?: Pod;
}

export interface Mark {
  frame: number;
  kind: "step" | "verb" | "breach" | "warning";
  text: string;
}

/** Marks of one kind beyond these are left out: the slider could not tell them apart. */
const WARNINGS_MAX = 60;

export class Run {
  readonly head: Line;
  readonly lines: Line[];
  readonly frames: Frame[] = [];
  readonly marks: Mark[] = [];
  readonly scenario?: Scenario;
  readonly variant?: Variant;
  readonly report: RunReport;
  /** Names as the log writes them: `Deployment shop/web`. */
  readonly workloads: string[];
  /** The keys by which pods are counted. */
  readonly keys: string[];
  readonly nodeKeys: string[];
  private readonly pods: PodHistory[] = [];
  private readonly nodes: { name: string; history: History<NodeState> }[] = [];
  private readonly counts = new Map<string, { at: number[]; lines: SeriesLine[] }>();
  /** The times of the lines of the series. */
  private readonly times: number[];
  private lastNodes: NodeState[] = [];
  /** Workloads as findings name them. */
  private written?: { of: string; lower: string; begin: string }[];
  private readonly whys = new Map<string, Explanation>();
  private readonly rooms: { step: number; nodes: string[]; allocatable: number[]; requested: number[] }[] = [];
  /** Of a run that is too large to be seen pod by pod: what is seen at the start and at the end of each step. */
  readonly sums: Picture[] | null;
  /** The files and options of the command that explains a pod. */
  readonly explain: string;
  private readonly refusals = new Map<string, { at: number; note: string }[]>();

  constructor(data: Data, index: number) {
    const lines = data.runs[index]!;
    this.head = lines.find((line) => line.type === "run") ?? { type: "run" };
    this.lines = lines.filter((line) => line.at !== undefined);
    const found = find(data, this.head);
    this.scenario = found?.scenario;
    this.variant = found?.variant;
    this.report = found?.run ?? { seed: this.head.seed ?? 0, held: true, ended: "0s", always: [], steps: [] };
    this.explain = data.explain?.[index] ?? "";
    this.sums = data.sums[index] ?? null;
    const series = data.series[index]!.filter((line) => line.at !== undefined);
    for (const line of data.series[index]!) {
      if (line.type === "why") this.whys.set(`${line.step} ${line.of}`, line.explanation!);
      if (line.type === "room") this.readRoom(line);
    }
    this.readSeries(series);
    this.workloads = [...new Set(series.filter((line) => line.type === "workload").map((line) => line.of!))];
    this.keys = [...new Set(series.filter((line) => line.by).map((line) => line.by!))];
    this.times = series.map((line) => seconds(line.at!));
    this.readLog(this.times);
    if (this.sums) this.addTimes(series);
    const keys = new Set<string>();
    for (const { history } of this.nodes) {
      for (const state of history.states) for (const key of Object.keys(state?.labels ?? {})) keys.add(key);
    }
    this.nodeKeys = [...keys].sort();
    this.mark();
  }

  get name(): string {
    const many = this.variant?.name && this.variant.name !== "base" ? `${this.head.variant}, ` : "";
    return `${this.head.scenario}: ${many}seed ${this.report.seed}`;
  }

  private readSeries(series: SeriesLine[]): void {
    series.forEach((line, i) => {
      const id = `${line.type} ${line.of ?? ""} ${line.by ?? ""}`;
      let found = this.counts.get(id);
      if (!found) this.counts.set(id, (found = { at: [], lines: [] }));
      found.at.push(i + 1);
      found.lines.push(line);
    });
  }

  private readRoom(line: SeriesLine): void {
    const last = this.rooms[this.rooms.length - 1];
    this.rooms.push({
      step: line.step ?? -1, requested: line.requested!, nodes: line.nodes?.split(" ") ?? last?.nodes ?? [], allocatable: line.allocatable ?? last?.allocatable ?? [],
    });
  }

  /** Moments of the series: the log of a large run has no lines about pods. */
  private addTimes(series: SeriesLine[]): void {
    const known = new Set(this.frames.map((frame) => frame.at)), before = this.frames.splice(0);
    let next = 0;
    const take = (until: number) => {
      while (next < before.length && before[next]!.at <= until) this.frames.push(before[next++]!);
    };
    this.times.forEach((at, i) => {
      if (known.has(at) || at === this.times[i + 1]) return;
      take(at);
      const last = this.frames[this.frames.length - 1];
      this.frames.push({ at, clock: series[i]!.at!, isBefore: false, lines: last?.lines ?? 0, series: i + 1, step: last?.step ?? -1 });
    });
    take(Infinity);
  }

  private readLog(times: number[]): void {
    const owners = new Map<string, string>(), pods = new Map<string, PodHistory>();
    const nodes = new Map<string, History<NodeState>>(), known = new Set(this.workloads);
    let step = -1;
    const push = (at: number, clock: string, isBefore: boolean, lines: number) => {
      const series = isBefore ? lower(times, at) : upper(times, at);
      this.frames.push({ at, clock, isBefore, lines, series, step });
    };
    const begins = this.begins();
    // Pods may come before the workloads that own them: a dump's objects are there from the start.
    for (const { key, type, changed } of this.lines) {
      if (key && type === "created" && typeof changed?.["owner"] === "string") owners.set(key, changed["owner"]);
    }
    this.lines.forEach((line, i) => {
      const at = seconds(line.at!), last = this.frames[this.frames.length - 1];
      if (begins.has(i)) {
        // The end of the step before is a moment of its own, with the counts of the moment before.
        if (i > 0 && step >= 0) {
          if (last && last.at === at && !last.isBefore) this.frames.pop();
          push(at, line.at!, true, i);
        }
        step = begins.get(i)!;
        push(at, line.at!, false, i + 1);
      } else if (last && last.at === at && !last.isBefore) last.lines = i + 1;
      else push(at, line.at!, false, i + 1);
      if (line.type === "event" && line.reason === "FailedScheduling") {
        const pod = line.regarding ?? "";
        const notes = this.refusals.get(pod) ?? [];
        notes.push({ at: i + 1, note: line.note ?? "" });
        this.refusals.set(pod, notes);
      }
      const key = line.key;
      if (!key) return;
      if (key.startsWith("Pod ")) this.readPod(line, i + 1, key, pods, owners, known);
      if (key.startsWith("Node ")) readNode(line, i + 1, key.slice(5), nodes);
    });
    if (!this.frames.length) push(0, "0s", false, 0);
    for (const [name, history] of nodes) this.nodes.push({ name, history });
  }

  /** Steps by the line of the log with which they begin: a step without a name has no line of its own. */
  private begins(): Map<number, number> {
    const found = new Map<number, number>();
    let from = 0;
    this.report.steps.forEach((step, s) => {
      const at = seconds(step.began);
      let i = this.lines.findIndex((line, i) => i >= from && line.type === "step" && line.step === step.name && seconds(line.at!) === at);
      if (i < 0) i = this.lines.findIndex((line, i) => i >= from && line.type === "verb" && seconds(line.at!) === at);
      if (i < 0) i = this.lines.findIndex((line, i) => i >= from && seconds(line.at!) >= at);
      if (i < 0) return;
      found.set(i, s);
      from = i + 1;
    });
    return found;
  }

  private readPod(
    line: Line, at: number, key: string, pods: Map<string, PodHistory>, owners: Map<string, string>, known: Set<string>,
  ): void {
    let pod = pods.get(key);
    if (!pod) {
      const owner = owners.get(key) ?? "";
      let workload = owner || key;
      for (let up = workload; !known.has(workload) && up; up = owners.get(up) ?? "") workload = up;
      pod = { key, name: key.slice(key.indexOf("/") + 1), owner, workload, at: [], states: [] };
      pods.set(key, pod);
      this.pods.push(pod);
    }
    const was = pod.states[pod.states.length - 1];
    pod.at.push(at);
    if (line.type === "deleted") { pod.states.push(null); return; }
    const change = line.changed ?? {};
    const now = (name: string) => newest(change[name]);
    const phase = now("phase");
    pod.states.push({
      node: (now("node") ?? was?.node ?? "") as string,
      isReady: (now("ready") ?? was?.isReady ?? false) as boolean,
      isTerminating: Boolean(now("terminating") ?? was?.isTerminating),
      isFinished: phase === undefined ? was?.isFinished ?? false : phase === "Succeeded" || phase === "Failed",
    });
  }

  /** Steps, verbs, breaches and warnings on the slider. */
  private mark(): void {
    const { steps, always } = this.report;
    const add = (frame: number, kind: Mark["kind"], text: string) => {
      if (!this.marks.some((mark) => mark.frame === frame && mark.kind === kind)) this.marks.push({ frame, kind, text });
    };
    steps.forEach((step, s) => {
      const begin = this.frames.findIndex((frame) => frame.step === s);
      if (begin >= 0) add(begin, "step", `step ${step.name ?? s + 1} begins`);
      const broken = step.expectations.filter(isBroken);
      for (const one of broken) add(this.judged(one.at ?? step.ended, s), "breach", one.why || one.text);
      for (const one of step.refused ?? []) if (one.breach && begin >= 0) add(begin, "breach", `${one.verb}: ${one.why}`);
      for (const one of step.findings ?? []) {
        if (one.severity !== "note" && step.verdict !== "broken") add(this.end(s), "warning", one.message);
      }
    });
    for (const one of always) if (isBroken(one)) add(this.at(one.at ?? this.report.ended), "breach", one.why || one.text);
    let warnings = 0;
    this.frames.forEach((frame, f) => {
      const begin = f ? this.frames[f - 1]!.lines : 0;
      const lines = this.lines.slice(begin, frame.lines);
      const verb = lines.find((line) => line.type === "verb");
      if (verb) add(f, "verb", verb.verb ?? "");
      const warning = lines.find((line) => line.type === "event" && line.warning);
      if (warning && warnings++ < WARNINGS_MAX) add(f, "warning", `${warning.regarding} ${warning.reason}`);
    });
    this.marks.sort((a, b) => a.frame - b.frame);
  }

  /** The moment at which an expectation of a step was judged: before the next step begins. */
  private judged(clock: string, step: number): number {
    const at = seconds(clock);
    let found = -1;
    this.frames.forEach((frame, f) => { if (frame.step === step && frame.at <= at) found = f; });
    return Math.max(0, found);
  }

  /** The last moment of a step at which the numbers of the report hold; of a step that was ended, its last moment. */
  end(step: number): number {
    const rest = this.frames.findLastIndex((frame) => frame.step === step && this.atRest(frame));
    return rest >= 0 ? rest : Math.max(0, this.frames.findLastIndex((frame) => frame.step === step));
  }

  /** The last moment that is not after a time; `~` behind it means before a step begins then. */
  at(clock: string): number {
    const at = seconds(clock), isBefore = clock.endsWith("~");
    const exact = this.frames.findIndex((frame) => frame.clock === clock.replace("~", "") && frame.isBefore === isBefore);
    if (exact >= 0) return exact;
    return Math.max(0, this.frames.findLastIndex((frame) => frame.at <= at));
  }

  /** The first moment at which something broke; otherwise where a warning is seen, otherwise the end. */
  opening(): number {
    const first = this.marks.find((mark) => mark.kind === "breach");
    if (first) return first.frame;
    const { steps } = this.report;
    const warned = steps.findIndex((step) => (step.findings ?? []).some((one) => one.severity !== "note"));
    return warned >= 0 ? this.end(warned) : this.frames.length - 1;
  }

  /** The report of the step whose end this moment is; undefined while the step goes on. */
  atRest(frame: Frame): Step | undefined {
    const step = this.report.steps[frame.step];
    if (!step) return undefined;
    const ended = seconds(step.ended);
    // Counts may go on changing after a step was judged.
    return frame.at === ended || (frame.at > ended && frame.series <= upper(this.times, ended)) ? step : undefined;
  }

  step(frame: Frame): Step | undefined {
    return this.report.steps[frame.step];
  }

  /** What is requested of each node at the end of a step; empty while a step goes on. */
  room(frame: Frame): Map<string, { allocatable: number; requested: number }> {
    const found = this.atRest(frame) && this.rooms.find((room) => room.step === frame.step);
    const cpu = (milli: number | undefined) => (milli ?? 0) / 1000;
    return new Map((found ? found.nodes : []).map((name, i) => [name, { allocatable: cpu(found!.allocatable[i]), requested: cpu(found!.requested[i]) }]));
  }

  /** Of a large run: what was seen last, at the end of a step or at the start, and of which step. */
  picture(frame: Frame): { picture: Picture; when: string } | undefined {
    const step = this.atRest(frame) ? frame.step : frame.step - 1;
    const picture = this.sums?.findLast((one) => (one.step ?? -1) <= step);
    if (!picture) return undefined;
    const name = picture.step === null ? undefined : this.report.steps[picture.step]?.name ?? `step ${picture.step + 1}`;
    return { picture, when: name ? `at the end of ${name}` : "at the start" };
  }

  /** Numbers of a kind, as the series has them at a moment. */
  numbers(type: "workload" | "ledger", of: string, frame: Frame): SeriesLine | undefined {
    const found = this.counts.get(`${type} ${of} `);
    return found && found.lines[upper(found.at, frame.series) - 1];
  }

  /** A workload's own pods by domain. */
  spread(of: string, by: string, frame: Frame): { counts: Map<string, number>; skew: number } | undefined {
    const found = this.counts.get(`spread ${of} ${by}`);
    const end = found ? upper(found.at, frame.series) : 0;
    if (!found || !end) return undefined;
    const counts = new Map<string, number>();
    for (let i = 0; i < end; i++) {
      const changed = Object.entries(found.lines[i]!.changed!);
      // Of many domains there are no counts, but the skew.
      if (!changed.length) return undefined;
      for (const [domain, n] of changed) {
        if (n === null) counts.delete(domain); else counts.set(domain, n);
      }
    }
    return { counts, skew: found.lines[end - 1]!.skew! };
  }

  /** The skew of a workload's own pods from moment to moment. */
  skews(of: string, by: string): { at: number; skew: number }[] {
    return (this.counts.get(`spread ${of} ${by}`)?.lines ?? []).map((line) => ({ at: seconds(line.at!), skew: line.skew! }));
  }

  ledgers(of: string, frame: Frame): { of: string; rows: Subset[] }[] {
    const found: { of: string; rows: Subset[] }[] = [];
    for (const [id, { lines }] of this.counts) {
      if (!id.startsWith("ledger ") || lines[0]!.target !== of) continue;
      const line = this.numbers("ledger", lines[0]!.of!, frame);
      if (line?.rows?.length) found.push({ of: line.of!, rows: line.rows });
    }
    return found;
  }

  /** True if it is about a hub. */
  get isHub(): boolean {
    return [...this.counts.keys()].some((id) => id.startsWith("fleet "));
  }

  /** The rows of Placements and clusters by key. */
  *fleet(frame: Frame): Iterable<[string, unknown]> {
    for (const [id, { at, lines }] of this.counts) {
      const line = id.startsWith("fleet ") ? lines[upper(at, frame.series) - 1] : undefined;
      if (line?.row) yield [line.of!, line.row];
    }
  }

  podsAt(frame: Frame): Pod[] {
    const found: Pod[] = [];
    for (const pod of this.pods) {
      const state = at(pod, frame.lines);
      if (!state) continue;
      if (pod.last?.state !== state) pod.last = { key: pod.key, name: pod.name, owner: pod.owner, workload: pod.workload, state };
      found.push(pod.last);
    }
    return found;
  }

  /** The nodes of a moment; the same list while no node changes. */
  nodesAt(frame: Frame): NodeState[] {
    const found: NodeState[] = [], last = this.lastNodes;
    for (const { history } of this.nodes) {
      const state = at(history, frame.lines);
      if (state) found.push(state);
    }
    if (found.length === last.length && found.every((node, i) => node === last[i])) return last;
    return (this.lastNodes = found);
  }

  /** Why a pod of a workload stays Pending, at the end of a step. */
  why(of: string, frame: Frame): Explanation | undefined {
    return this.atRest(frame) && this.whys.get(`${frame.step} ${of}`);
  }

  /** Why the scheduler refused a pod when it last tried. */
  refusal(pod: string, frame: Frame): string | undefined {
    return this.refusals.get(pod)?.findLast((one) => one.at <= frame.lines)?.note;
  }

  /** The workload that a finding is about by its object (`deployment/web`, `Deployment shop/web`) or else its message. */
  about(object: string, message: string): string | undefined {
    const lower = object.toLowerCase(), text = `${object} ${message}`;
    this.written ??= this.workloads.map((of) => {
      const kind = of.slice(0, of.indexOf(" ")).toLowerCase(), name = of.slice(of.indexOf("/") + 1);
      return { of, lower: `${kind}/${name}`.toLowerCase(), begin: `${kind}/${name}:` };
    });
    return (this.written.find((one) => object === one.of || lower === one.lower) ?? this.written.find((one) => text.includes(one.begin)))?.of;
  }

  /** The report of a workload at the end of a step. */
  workload(of: string, step: Step | undefined): Workload | undefined {
    return step?.workloads.find((one) => idOf(one) === idOfLog(of));
  }

  /** The constraint of a workload over a key, as the report of its step, or of a neighbour, has it. */
  constraints(of: string, frame: Frame): Spread[] {
    const steps = this.report.steps, from = Math.max(0, frame.step);
    const order = [...steps.slice(from), ...steps.slice(0, from).reverse()];
    for (const step of order) {
      const found = this.workload(of, step);
      if (found?.spread.length) return found.spread;
    }
    return [];
  }
}

/** The pods of each workload. */
export function byWorkload(pods: Pod[]): Map<string, Pod[]> {
  const found = new Map<string, Pod[]>();
  for (const pod of pods) {
    const of = found.get(pod.workload);
    if (of) of.push(pod); else found.set(pod.workload, [pod]);
  }
  return found;
}

export function isBroken(one: Expectation): boolean {
  return !one.held && !one.open;
}

/** `deployment/web` and its namespace, and `Deployment shop/web`, as one text. */
export function idOf(one: { of: string; namespace: string }): string {
  return `${one.of} ${one.namespace}`.toLowerCase();
}

export function idOfLog(of: string): string {
  const [kind = "", rest = ""] = of.split(" ");
  const [namespace = "", name = ""] = rest.split("/");
  return `${kind}/${name} ${namespace}`.toLowerCase();
}

function find(data: Data, head: Line): { scenario: Scenario; variant: Variant; run?: RunReport } | undefined {
  for (const scenario of data.report.scenarios) {
    for (const variant of scenario.variants) {
      const isIt = scenario.name === head.scenario && variant.name === head.variant
        && (head.file === undefined || scenario.file === head.file);
      if (isIt) return { scenario, variant, run: variant.runs.find((run) => run.seed === head.seed) };
    }
  }
  return undefined;
}

function readNode(line: Line, i: number, name: string, nodes: Map<string, History<NodeState>>): void {
  let history = nodes.get(name);
  if (!history) nodes.set(name, (history = { at: [], states: [] }));
  const was = history.states[history.states.length - 1];
  history.at.push(i);
  if (line.type === "deleted") { history.states.push(null); return; }
  const change = line.changed ?? {};
  const now = (key: string) => newest(change[key]);
  const taints = now("taints") as unknown[] | null | undefined;
  history.states.push({
    name,
    labels: (now("labels") ?? was?.labels ?? {}) as Record<string, string>,
    isReady: change["ready"] === undefined ? was?.isReady ?? false : now("ready") === "True" || now("ready") === true,
    isCordoned: Boolean(now("unschedulable") ?? was?.isCordoned),
    isTainted: "taints" in change ? Boolean(taints?.length) : was?.isTainted ?? false,
  });
}

/** The new value of a change `[old, new]`, or the value of an object that was created. */
function newest(value: unknown): unknown {
  return Array.isArray(value) && value.length === 2 && !isObject(value[0]) ? value[1] ?? null : value;
}

function isObject(value: unknown): boolean {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function at<T>(history: History<T>, line: number): T | null | undefined {
  return history.states[upper(history.at, line) - 1];
}

/** How many of the sorted values are not above one. */
function upper(values: number[], value: number): number {
  let low = 0, high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle]! <= value) low = middle + 1; else high = middle;
  }
  return low;
}

function lower(values: number[], value: number): number {
  let low = 0, high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle]! < value) low = middle + 1; else high = middle;
  }
  return low;
}
